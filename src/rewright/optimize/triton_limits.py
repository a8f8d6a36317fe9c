"""Which tiles a Triton kernel goes through, and what has to be finite for others to be skipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rewright.optimize.expressions import Expression
from rewright.optimize.finite import Certain, needs
from rewright.optimize.kernel import Kernel, Sweep
from rewright.optimize.phases import Variants
from rewright.optimize.planning import Plan
from rewright.optimize.triton_scalars import atoms, everywhere, padded
from rewright.optimize.triton_values import Context, Values
from rewright.terms.index import Index, Variable

WIDE = 2048
"""Elements of a lane that are looked at together."""


class Limits(Values):
    """Prints the limits of sweeps."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        super().__init__(plan, kernel)
        self.certain = Certain(plan)

    def limits(self, c: Context, sweep: Sweep, found: Variants) -> tuple[str, str, list[str]]:
        """First and last tile, and conditions that skip others."""
        bounds = {loop.name: (loop.name, loop.name) for loop in self.kernel.grid}
        bounds[self.row_name] = ("first", f"tl.minimum(first + BM - 1, {self.rows - 1})")
        bounds[sweep.lane.name] = ("begin", "(begin + BN - 1)")
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
        values = [e for e in values if not self.certain.finite(self.kernel, e)]
        both = {self.row_name, sweep.lane.name}
        return None if any(both <= e.free for e in values) else values

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
        index = atom.arguments[0].index
        assert index is not None
        if not value:  # index < 0 everywhere: -index - 1 >= 0
            index = index * -1 - 1
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
