"""That two programs compute the same for all sizes: the obligations, in the order that makes them sound.

1. Equations among the conditions are solved for a symbol and replace it.
2. What is assumed (conditions, validity of the left side) must be possible.
3. Every demand of the right side's operators and the equality of shapes are proved before an index is in scope, so
   that they hold for empty tensors too.
4. For an index in range both sides are denoted, and their values are equal on every path.
5. What one side needs to be defined, and every read at a place computed from data, follows from the other side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rewright.ir.dims import Dim, Rounded, SizeExpr
from rewright.ir.graph import Graph
from rewright.terms.conditions import AtMost, IsFloor, Same, Simple, SizeCondition, cases, sizes_of
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.atoms import ONE, ZERO, Element, Polynomial, Symbol, polynomial, symbol
from rewright.terms.normal.context import Context, OutOfTime, Signed, TooHard
from rewright.terms.normal.denote import Denoter
from rewright.terms.normal.division import floor_quotient
from rewright.terms.normal.equality import difference
from rewright.terms.normal.functions import Grade
from rewright.terms.normal.guards import Choice, Guard, Value, at_least, is_zero, with_value
from rewright.terms.normal.needs import Need, unmet
from rewright.terms.normal.substitution import substitute
from rewright.terms.parameters import Sort, parameters, sort_of

Status = Literal["proved", "unknown", "vacuous"]


@dataclass(frozen=True)
class Claim:
    """Two graphs with the same outputs over inputs of the same names, under conditions on sizes and on elements."""

    left: Graph
    right: Graph
    conditions: tuple[SizeCondition, ...] = ()
    facts: Graph | None = None
    """Boolean outputs whose elements are all true."""


@dataclass
class Outcome:
    """What came of a proof."""

    status: Status = "proved"
    reason: str = ""
    sizes: dict[str, int] | None = None
    """Small sizes on the path that stayed open: the first place to look for a counterexample."""
    queries: int = 0
    seconds: float = 0.0
    demands: list[str] = field(default_factory=list[str])
    """What had to hold for both sides to be defined, as it was proved to coincide."""


class _Open(Exception):
    """A part of the claim that could not be shown."""

    def __init__(self, reason: str, sizes: dict[str, int] | None = None) -> None:
        super().__init__(reason)
        self.sizes = sizes


class _Vacuous(Exception):
    """The assumptions contradict each other."""


def prove(claim: Claim, seconds: float = 10.0, grade: Grade = "real") -> Outcome:
    """Prove a claim within a time; running out of it is ``unknown``, and so is everything that is too hard."""
    started = time.monotonic()
    outcome = Outcome()
    possible = 0
    try:
        for case in cases(claim.conditions):
            left = seconds - (time.monotonic() - started)
            proof = _Proof(claim, case, new_context(left), grade)
            try:
                proof.run()
                possible += 1
            except _Vacuous:
                continue
            finally:
                outcome.queries += proof.context.queries
                outcome.demands += [d for d in proof.defined if d not in outcome.demands]
        if not possible:
            outcome.status, outcome.reason = "vacuous", "no sizes satisfy the conditions"
    except _Open as error:
        outcome.status, outcome.reason, outcome.sizes = "unknown", str(error), error.sizes
    except TooHard as error:
        outcome.status, outcome.reason = "unknown", f"no rules for {error}"
    except OutOfTime:
        outcome.status, outcome.reason = "unknown", f"the budget of {seconds:g} s is used up"
    except ZeroDivisionError:
        outcome.status, outcome.reason = "unknown", "a division by zero"
    except RecursionError:
        outcome.status, outcome.reason = "unknown", "the term is nested too deeply"
    outcome.seconds = time.monotonic() - started
    return outcome


class _Proof:
    """The proof of one case of the conditions."""

    def __init__(self, claim: Claim, case: tuple[Simple, ...], context: Context, grade: Grade) -> None:
        self.claim = claim
        self.case = case
        self.context = context
        self.grade: Grade = grade
        self.defined: list[str] = []
        self.solved: dict[str, Polynomial] = {}
        self.sorts = parameters(_all_sizes(claim))
        self._sizes: dict[Dim, Polynomial] = {}

    def run(self) -> None:
        """Raises _Open, _Vacuous, TooHard or OutOfTime where the case is not proved."""
        self._solve()
        self._assume()
        self._demands(self.claim.left, proved=False)
        alternatives = self._assume_facts()
        possible = False
        for alternative in alternatives:
            with self.context.scope():
                for guard, polarity in alternative:
                    self.context.add(guard, polarity)
                if not self.context.contradictory():
                    possible = True
                    self._obligations()
        if not possible:
            raise _Vacuous

    def _obligations(self) -> None:
        left, right = self._denoter(self.claim.left), self._denoter(self.claim.right)
        self._demands(self.claim.right, proved=True)
        if list(self.claim.left.outputs) != list(self.claim.right.outputs):
            raise _Open("the sides have different outputs")
        for name in self.claim.left.outputs:
            self._shapes(left, right, name)
        self._lookups(left, right)
        for name in self.claim.left.outputs:
            self._values(left, right, name)

    # --- sizes

    def size(self, expression: Dim) -> Polynomial:
        """A size in the symbols of the proof, those that equations determine replaced."""
        found = self._sizes.get(expression)
        if found is None:
            found = self._sizes[expression] = substitute(self.context, self._translated(expression), self.solved)
        return found

    def _translated(self, expression: Dim) -> Polynomial:
        if not isinstance(expression, SizeExpr):
            return polynomial(expression)
        total = ZERO
        for names, coefficient in expression.terms:
            product = polynomial(coefficient)
            for name in names:
                product = product * self._symbol(name)
            total = total + product
        return total

    def _symbol(self, name: str) -> Polynomial:
        parameter, sort = sort_of(name)
        if isinstance(name, Rounded):
            top, bottom = self._translated(name.numerator), self._translated(name.denominator)
            return ONE - floor_quotient(self.context, -top, bottom)
        if sort == "constant":
            return polynomial(int(parameter))
        if sort == "natural":
            return symbol(parameter) + 1
        if sort == "integer":
            return symbol(parameter) + 1 if name.endswith("__high") else ONE
        return symbol(parameter)

    def _solve(self) -> None:
        """Equations as substitutions: of a symbol with coefficient one, attributes before sizes."""
        waiting = [(p, None) for c in self.case if isinstance(c, Same) for p in [self._difference(c.left, c.right)]]
        floors = [c for c in self.case if isinstance(c, IsFloor)]
        waiting += [(self._translated(c.result), c) for c in floors]
        self.residue: list[Polynomial] = []
        for value, floor in waiting:
            if floor is not None:
                top = substitute(self.context, self._translated(floor.numerator), self.solved)
                bottom = substitute(self.context, self._translated(floor.denominator), self.solved)
                value = value - floor_quotient(self.context, top, bottom)
            equation = substitute(self.context, value, self.solved)
            found = self._pivot(equation)
            if found is None:
                self.residue.append(equation)
                continue
            name, solution = found
            one = {name: solution}
            self.solved = {k: substitute(self.context, v, one) for k, v in self.solved.items()}
            self.solved[name] = solution

    def _difference(self, left: Dim, right: Dim) -> Polynomial:
        return self._translated(left) - self._translated(right)

    def _pivot(self, equation: Polynomial) -> tuple[str, Polynomial] | None:
        order = {"integer": 0, "natural": 1, "size": 2}
        names = (n for n in equation.free if n in self.sorts)
        for name in sorted(names, key=lambda n: (order[self.sorts[n]], n)):
            split = equation.linear(name)
            if split is not None and split[0] in (1, -1):
                return name, split[1] * -split[0]
        return None

    def _assume(self) -> None:
        for name, sort in self.sorts.items():
            low: dict[Sort, int] = {"size": 1, "natural": 0}
            if name not in self.solved:
                if sort in low:
                    self.context.size(name, low[sort])
            elif sort in low:
                self.context.add(at_least(self.solved[name], low[sort]))
        for equation in self.residue:
            self.context.add(is_zero(substitute(self.context, equation, self.solved)))
        for condition in self.case:
            if isinstance(condition, AtMost):
                self.context.add(at_least(self.size(condition.high), self.size(condition.low)))
            elif isinstance(condition, IsFloor):
                self.context.add(at_least(self.size(condition.denominator), 1))

    def _assume_facts(self) -> list[tuple[Signed, ...]]:
        """Facts about all elements of inputs, to be instantiated where an element occurs.

        Returns the ways in which facts about scalars hold, of which one does.
        """
        facts = self.claim.facts
        if facts is None:
            return [()]
        self._demands(facts, proved=False)
        alternatives: list[tuple[Signed, ...]] = [()]
        for position in facts.outputs.values():
            names = [self.context.fresh("u") for _ in facts.nodes[position].type.shape]
            denoter = Denoter(self.context, facts, self.size)
            ways = list(_ways_to_hold(denoter.value(position, tuple(symbol(name) for name in names))))
            if not names:
                alternatives = [(*before, *way) for before in alternatives for way in ways]
            elif len(ways) == 1:
                for guard, polarity in ways[0]:
                    for element in (a for a in guard.value.atoms() if isinstance(a, Element)):
                        self._instantiated(element, names, guard, polarity)
        return alternatives

    def _instantiated(self, pattern: Element, names: Sequence[str], guard: Guard, polarity: bool) -> None:
        """A fact that is used wherever the tensor is read: the pattern's index must be the fact's own variables."""
        own = [i.atom() for i in pattern.index]
        bound = [a.name for a in own if isinstance(a, Symbol)]
        if len(bound) != len(own) or set(bound) != set(names) or len(set(bound)) != len(bound):
            return

        def make(element: Element) -> Iterator[tuple[Guard | bool, bool]]:
            values = dict(zip(bound, element.index, strict=True))
            value = substitute(self.context, guard.value, values)
            yield with_value(guard, value), polarity

        self.context.universal.setdefault(pattern.tensor, []).append(make)

    # --- obligations

    def _denoter(self, graph: Graph) -> Denoter:
        return Denoter(self.context, graph, self.size, self.grade)

    def _demands(self, graph: Graph, proved: bool) -> None:
        for node in graph.nodes:
            demands = getattr(node.op, "demands", None)
            if demands is None:
                continue
            for demand in demands([graph.nodes[p].type for p in node.operands]):
                guard = at_least(self.size(demand.high), self.size(demand.low))
                if not proved and not demand.form:
                    self.context.add(guard)
                elif not self.context.holds(guard):
                    side = "right" if proved else "left"
                    raise self._open(f"{node.op.name} on the {side} side needs {demand.what}", guard)
        for node in graph.nodes:
            for size in node.type.shape:
                guard = at_least(self.size(size), 0)
                if not proved:
                    self.context.add(guard)
                elif not self.context.holds(guard):
                    raise self._open(f"{node.op.name} on the right side may have a negative size", guard)

    def _open(self, reason: str, guard: Guard | bool) -> _Open:
        """An open obligation with small sizes at which it fails."""
        with self.context.scope():
            if isinstance(guard, Guard):
                self.context.add(guard, False)
            return _Open(reason, self.context.small_model(self._names()))

    def _names(self) -> list[str]:
        return [name for name in self.sorts if name not in self.solved]

    def _shapes(self, left: Denoter, right: Denoter, name: str) -> None:
        mine, other = self.claim.left.outputs[name], self.claim.right.outputs[name]
        types = self.claim.left.nodes[mine].type, self.claim.right.nodes[other].type
        if types[0].rank != types[1].rank or types[0].dtype is not types[1].dtype:
            raise _Open(f"the sides have types {types[0]} and {types[1]}", self.context.small_model(self._names()))
        for a, b in zip(left.shape(mine), right.shape(other), strict=True):
            if not self.context.equal(a, b):
                raise self._open(f"the sides have sizes {a} and {b}", is_zero(a - b))

    def _values(self, left: Denoter, right: Denoter, name: str) -> None:
        position = self.claim.left.outputs[name]
        with self.context.scope():
            index = self._index(left.shape(position))
            if self.context.contradictory():
                return
            left.needs.clear()
            right.needs.clear()
            values = left.value(position, index), right.value(self.claim.right.outputs[name], index)
            found = difference(self.context, *values)
            if found is not None:
                where = " and ".join(f"{'' if polarity else 'not '}({guard})" for guard, polarity in found.path[-4:])
                sizes = {k: v for k, v in (found.sizes or {}).items() if k in self.sorts}
                raise _Open(f"left is {_short(found.left)} and right is {_short(found.right)} where {where}", sizes)
            self._defined(left.needs, right.needs)

    def _index(self, shape: Sequence[Polynomial]) -> tuple[Polynomial, ...]:
        """A fresh index in range; along an axis of size one it is zero."""
        index: list[Polynomial] = []
        for size in shape:
            if size == ONE:
                index.append(ZERO)
                continue
            name = self.context.fresh("i")
            self.context.range(name, ZERO, size)
            index.append(symbol(name))
        return tuple(index)

    def _defined(self, left: list[Need], right: list[Need]) -> None:
        """Each side is defined where the other is."""
        for side, wanted, given in (("right", right, left), ("left", left, right)):
            missing = unmet(self.context, wanted, given)
            if missing:
                shown = "; ".join(f"{_short(n.value)} is {n.kind} for {n.operation}" for n in missing[:2])
                raise _Open(f"the {side} side is defined only where {shown}: state it as a condition")
        self.defined += [f"{need.value} is {need.kind}" for need in left if str(need.value) not in self.defined]

    def _lookups(self, left: Denoter, right: Denoter) -> None:
        """Every read at a place computed from data is in range, or the other side reads there too."""
        with self.context.scope():
            found = self._all_lookups(left), self._all_lookups(right)
        for side, wanted, given in (("right", found[1], found[0]), ("left", found[0], found[1])):
            missing = unmet(self.context, wanted, given)
            if missing:
                shown = _short(missing[0].value)
                raise _Open(f"the {side} side reads out of range unless {shown} >= 0: state it as a condition")

    def _all_lookups(self, denoter: Denoter) -> list[Need]:
        """The reads of every node, whichever of its elements are used later."""
        found: list[Need] = []
        for position, node in enumerate(denoter.graph.nodes):
            if position not in denoter.graph.live() or not denoter.looks_up(position):
                continue
            with self.context.scope():
                found += denoter.lookups_of(position, self._named_index(denoter.shape(position)), node)
        return found

    def _named_index(self, shape: Sequence[Polynomial]) -> list[tuple[str, Polynomial, Polynomial]]:
        binders = [(self.context.fresh("k"), ZERO, size) for size in shape]
        for name, low, high in binders:
            self.context.range(name, low, high)
        return binders


def _ways_to_hold(value: Value) -> Iterator[tuple[Signed, ...]]:
    """The paths on which a truth value is true."""
    if isinstance(value, Choice):
        for polarity, arm in ((True, value.yes), (False, value.no)):
            for way in _ways_to_hold(arm):
                yield (value.guard, polarity), *way
    elif value != ZERO:
        yield ()


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."


def _all_sizes(claim: Claim) -> Iterator[Dim]:
    graphs = [claim.left, claim.right, *([claim.facts] if claim.facts is not None else [])]
    for graph in graphs:
        for node in graph.nodes:
            yield from node.type.shape
            yield from attribute_sizes(node.op)
    for condition in claim.conditions:
        yield from sizes_of(condition)


def attribute_sizes(op: object) -> Iterator[Dim]:
    """The size expressions among the attributes of an operator, at any depth of tuples."""
    for name in getattr(op, "__dataclass_fields__", ()):
        yield from _nested(getattr(op, name))


def _nested(value: object) -> Iterator[Dim]:
    if isinstance(value, SizeExpr):
        yield value
    elif isinstance(value, tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _nested(item)  # pyright: ignore[reportUnknownArgumentType]
