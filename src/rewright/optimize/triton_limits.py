"""Which tiles a Triton kernel goes through, and what has to be finite for others to be skipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rewright.optimize.expressions import Expression
from rewright.optimize.finite import Certain, needs
from rewright.optimize.kernel import Kernel, Sweep
from rewright.optimize.phases import Variants, Work
from rewright.optimize.planning import Plan
from rewright.optimize.triton_scalars import all_of, atoms, everywhere, padded
from rewright.optimize.triton_values import Context, Values
from rewright.terms.index import Index, Variable

WIDE = 2048
"""Elements of a lane that are looked at together."""


@dataclass(frozen=True)
class Part:
    """Some of the tiles of a sweep, one after the other."""

    low: str
    high: str
    work: Work
    tests: tuple[str, ...] = ()
    """Conditions of which each is enough to skip a tile."""
    whole: bool = False
    """Whether no tile of them goes over the end of the lane."""
    when: str = ""
    """The condition, which is known when the kernel is compiled, that there are any."""


class Limits(Values):
    """Prints the limits of sweeps."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        super().__init__(plan, kernel)
        self.certain = Certain(plan)
        self.later_is_longer = False
        """Whether blocks of later rows have more tiles."""

    def parts(self, c: Context, sweep: Sweep, found: Variants) -> list[Part]:
        """The tiles of a sweep in order: whole ones that no mask changes are apart, for they need no masks."""
        low, high, tests = self.limits(c, sweep, found)
        mixed = Part(low, high, found.mixed, tuple(tests))
        return self.split(c, sweep, found, mixed) or [mixed]

    def split(self, c: Context, sweep: Sweep, found: Variants, mixed: Part) -> list[Part]:
        """The tiles before those that need no masks, these, and those behind; nothing where they are not told apart."""
        if not self.kernel.has_products:
            return []
        if found.special:
            return self.halves(c, sweep, found, mixed)
        starts, ends, sound, work = list[str](), [f"{sweep.lane.size} // BN * BN"], "", found.mixed
        if found.conditions:
            if found.plain is None or (values := self.checked(sweep, found.taken[found.plain[0]])) is None:
                return []
            test, work = found.plain
            bounds = self.bounds(sweep)
            wanted = [a for n, value in test for a in all_of(found.conditions[n], value)]
            limits = [self.limit(atom, flag, sweep, bounds) for atom, flag in wanted]
            for limit in limits:
                if limit is None:
                    return []
                way, text = limit
                if way == "high":
                    starts.append(f"(tl.maximum({text}, 0) + BN - 1) // BN * BN")
                else:
                    ends.append(f"({text}) // BN * BN")
            sound = self.all_finite(c, sweep, values) if values else ""
        first, last = mixed.low, ends[0]
        if starts:
            first = self.fresh("from")
            c.line(f"{first} = tl.minimum({_joined('maximum', [mixed.low, *starts])}, {mixed.high})")
        if found.conditions:
            last = self.fresh("to")
            c.line(f"{last} = tl.maximum({first}, {_joined('minimum', ends)})")
            if sound:
                c.line(f"{last} = tl.where({sound}, {last}, {first})")
        end = last if mixed.high == str(sweep.lane.size) else f"tl.minimum({last}, {mixed.high})"
        before = [Part(mixed.low, first, mixed.work, mixed.tests)] if starts else []
        ragged = "" if len(ends) > 1 or sound else f"{sweep.lane.size} % BN != 0"
        return [
            *before,
            Part(first, end, work, whole=True),
            Part(last, mixed.high, mixed.work, mixed.tests, when=ragged),
        ]

    def halves(self, c: Context, sweep: Sweep, found: Variants, mixed: Part) -> list[Part]:
        """The tiles where the one condition is true, those where it is both, and those where it is false, in order."""
        sides: dict[str, tuple[str, str, Work]] = {}
        for (number, value), work in found.special:
            wanted = all_of(found.conditions[number], value)
            limit = self.limit(*wanted[0], sweep, self.bounds(sweep)) if len(wanted) == 1 else None
            values = self.checked(sweep, found.taken[(number, value),])
            if limit is None or values is None:
                return []
            sides[limit[0]] = limit[1], self.all_finite(c, sweep, values) if values else "", work
        if len(sides) != 2:
            return []
        first, last, size = self.fresh("to"), self.fresh("from"), sweep.lane.size
        (text, sound, work), whole = sides["low"], f"{size} // BN * BN"
        c.line(f"{first} = tl.minimum(({text}) // BN * BN, {whole})")
        if sound:
            c.line(f"{first} = tl.where({sound}, {first}, 0)")
        before = Part("0", first, work, whole=True)
        text, sound, work = sides["high"]
        c.line(f"{last} = tl.maximum({first}, (tl.maximum({text}, 0) + BN - 1) // BN * BN)")
        if sound:
            c.line(f"{last} = tl.where({sound}, {last}, {size})")
        return [
            before,
            Part(first, f"tl.minimum({last}, {size})", mixed.work),
            Part(last, whole, work, whole=True),
            Part(f"tl.maximum({last}, {whole})", str(size), mixed.work, when=f"{size} % BN != 0"),
        ]

    def bounds(self, sweep: Sweep) -> dict[str, tuple[str, str]]:
        """The first and the last value of indices in a tile."""
        bounds = {loop.name: (loop.name, loop.name) for loop in self.kernel.grid}
        bounds[self.row_name] = ("first", f"tl.minimum(first + BM - 1, {self.rows - 1})")
        bounds[sweep.lane.name] = ("begin", "(begin + BN - 1)")
        return bounds

    def limits(self, c: Context, sweep: Sweep, found: Variants) -> tuple[str, str, list[str]]:
        """First and last tile, and conditions that skip others."""
        bounds = self.bounds(sweep)
        low, high, tests = "0", str(sweep.lane.size), list[str]()
        whole = low, high
        skip = {one: self.checked(sweep, found.taken[one,]) for one in found.skip}
        sound = [e for values in skip.values() for e in values or ()]
        for number, value in (one for one, values in skip.items() if values is not None):
            for atom, flag in atoms(found.conditions[number], value):
                limit = self.limit(atom, flag, sweep, bounds)
                if limit is None:
                    tests += everywhere(atom, flag, bounds)
                elif limit[0] == "high":
                    name = self.fresh("last")
                    self.later_is_longer |= (Variable(self.row_name), -1) in _index(atom, flag).terms
                    c.line(f"{name} = tl.minimum({high}, tl.maximum({limit[1]}, 0))")
                    high = name
                else:
                    name = self.fresh("start")
                    c.line(f"{name} = tl.maximum({low}, ({limit[1]}) // BN * BN)")
                    low = name
        if sound and (tests or (low, high) != whole):
            name = self.all_finite(c, sweep, sound)
            tests = [f"{name} & ({test})" for test in tests]
            low, high = (
                new if new == old else f"tl.where({name}, {new}, {old})"
                for new, old in zip((low, high), whole, strict=True)
            )
        return low, high, tests

    def checked(self, sweep: Sweep, taken: Iterable[Expression]) -> list[Expression] | None:
        """What has to be looked at before tiles are skipped; None where that would take the tile itself."""
        values = needs(self.graph, self.table, self.kernel, sweep, taken)
        values = None if values is None else [e for e in values if not self.certain.finite(self.kernel, e)]
        both = {self.row_name, sweep.lane.name}
        return None if values is None or any(both <= e.free for e in values) else values

    def all_finite(self, c: Context, sweep: Sweep, values: Iterable[Expression]) -> str:
        """Whether values of the rows, and of all elements of the lane, are finite: a row without elements has none."""
        name, lane = self.fresh("sound"), sweep.lane
        ways = [[e for e in dict.fromkeys(values) if (lane.name in e.free) is way] for way in (False, True)]
        c.line(f"{name} = first >= 0")
        for along, found in enumerate(ways):
            inner = c.inner(along)
            if along and found:  # in steps as wide as registers allow: there is nothing to do but to look
                width = min(padded(lane.size), WIDE)
                c.line(f"for begin in range(0, {lane.size}, {width}):")
                inner.line(f"{lane.name} = (begin + tl.arange(0, {width}))[None, :]")
                inner.line(f"lane_in = {lane.name} < {lane.size}")
                inner.places[lane.name], inner.guards[lane.name] = lane.name, "lane_in"
            for e in found:
                guard = "lane_in" if along else "row_in"
                bad = f'({guard} & ~(tl.abs({self.value(inner, e)}) < float("inf"))).to(tl.int32)'
                inner.line(f"{name} = {name} & (tl.max({bad}) == 0)")
        return name

    def limit(
        self, atom: Expression, value: bool, sweep: Sweep, bounds: Mapping[str, tuple[str, str]]
    ) -> tuple[str, str] | None:
        """A condition that holds for all tiles from one on, or up to one, as the end of the loop."""
        if atom.op != "at_least_zero":
            return None
        index = _index(atom, value)
        own = [f for a, f in index.terms if isinstance(a, Variable) and a.name == sweep.lane.name]
        rest = Index(index.constant, tuple(t for t in index.terms if t[0] != Variable(sweep.lane.name)))
        if len(own) != 1 or own[0] not in (1, -1) or (rest.terms == () and not isinstance(rest.constant, int)):
            return None
        parts = [str(rest.constant)]
        for a, factor in rest.terms:
            if not isinstance(a, Variable) or a.name not in bounds or not isinstance(factor, int):
                return None
            parts.append(f"{factor} * {bounds[a.name][0 if factor > 0 else 1]}")
        least = " + ".join(parts)  # the least value of what is added to the lane
        return ("high", f"-({least})") if own[0] == 1 else ("low", f"tl.maximum({least} + 1, 0)")


def _index(atom: Expression, value: bool) -> Index:
    """The index that is at least nought where the condition has the value."""
    index = atom.arguments[0].index
    assert index is not None
    return index if value else index * -1 - 1  # index < 0 everywhere


def _joined(call: str, values: list[str]) -> str:
    """The largest or the least of values."""
    text = values[0]
    for value in values[1:]:
        text = f"tl.{call}({text}, {value})"
    return text
