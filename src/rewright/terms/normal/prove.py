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
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rewright.ir.graph import Graph
from rewright.terms.claim import Claim
from rewright.terms.conditions import Simple, cases
from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.decision.assumptions import Assumptions, Restricted
from rewright.terms.normal.decision.entailment import fails, met_where_a_number, unmet
from rewright.terms.normal.decision.equality import difference
from rewright.terms.normal.denoting.denote import Denoter
from rewright.terms.normal.denoting.functions import Grade
from rewright.terms.normal.denoting.needs import Need
from rewright.terms.normal.facts.context import TOO_DEEP, Context, OutOfTime
from rewright.terms.normal.facts.guards import Guard, Value, is_zero
from rewright.terms.normal.polynomials.atoms import ONE, ZERO, Polynomial, TooHard, symbol

Status = Literal["proved", "unknown", "vacuous"]


@dataclass
class Outcome:
    """What came of a proof."""

    status: Status = "proved"
    reason: str = ""
    sizes: dict[str, int] | None = None
    """Small sizes on the path that stayed open: the first place to look for a counterexample."""
    queries: int = 0
    seconds: float = 0.0
    needs: list[list[Need]] = field(default_factory=list[list[Need]])
    """By case, what had to hold for both sides to be defined, as it was proved to coincide."""

    @property
    def demands(self) -> list[str]:
        """The needs in words, which may be long."""
        found: list[str] = []
        for case in self.needs:
            found += [text for need in case if (text := f"{need.value} is {need.kind}") not in found]
        return found


class _Open(Exception):
    """A part of the claim that could not be shown."""

    def __init__(self, reason: str, sizes: dict[str, int] | None = None) -> None:
        super().__init__(reason)
        self.sizes = sizes


class _Vacuous(Exception):
    """The assumptions contradict each other."""


def prove(claim: Claim, seconds: float = 10.0, grade: Grade = "real", *, has_poles: bool = True) -> Outcome:
    """Prove a claim within a number of seconds of the processor, so that what else it does decides nothing.

    Running out of them is ``unknown``, and so is everything that is too hard. Without ``has_poles`` the right side is
    only asked about where its logarithms are numbers, which must be wherever the left side is defined: the right side
    then may have a value where the left one has none, as where one replaces the other.
    """
    started = time.process_time()
    outcome = Outcome()
    possible = 0
    try:
        for case in cases(claim.conditions):
            left = seconds - (time.process_time() - started)
            proof = _Proof(claim, case, new_context(left), grade, has_poles)
            try:
                proof.run()
                possible += 1
            except _Vacuous:
                continue
            finally:
                outcome.queries += proof.context.queries
                outcome.needs.append(proof.defined)
        if not possible:
            outcome.status, outcome.reason = "vacuous", "no sizes satisfy the conditions"
    except _Open as error:
        outcome.status, outcome.reason, outcome.sizes = "unknown", str(error), error.sizes
    except Restricted as error:
        outcome.status, outcome.reason = "unknown", f"{error} on the left side: state it as a condition"
    except TooHard as error:
        outcome.status, outcome.reason = "unknown", f"no rules for {error}"
    except OutOfTime:
        outcome.status, outcome.reason = "unknown", f"the budget of {seconds:g} s is used up"
    except ZeroDivisionError:
        outcome.status, outcome.reason = "unknown", "a division by zero"
    except (*TOO_DEEP, OverflowError):
        outcome.status, outcome.reason = "unknown", "the term is nested too deeply, or a number is too large"
    outcome.seconds = time.process_time() - started
    return outcome


def may_hold(claim: Claim, seconds: float = 2.0) -> bool:
    """Whether the conditions on elements are not seen to contradict each other wherever there is an element."""
    if claim.facts is None:
        return True
    try:
        return any(_Proof(claim, case, new_context(seconds), "real").may_hold() for case in cases(claim.conditions))
    except (Restricted, TooHard, OutOfTime, ZeroDivisionError, *TOO_DEEP, OverflowError):
        return True


class _Proof:
    """The proof of one case of the conditions."""

    def __init__(
        self, claim: Claim, case: tuple[Simple, ...], context: Context, grade: Grade, has_poles: bool = True
    ) -> None:
        self.claim = claim
        self.context = context
        self.grade: Grade = grade
        self.has_poles = has_poles
        self.defined: list[Need] = []
        self.given = Assumptions(claim, case, context)
        self.size = self.given.size

    def run(self) -> None:
        """Raises _Open, _Vacuous, TooHard or OutOfTime where the case is not proved."""
        self._same_inputs()
        self.given.solve()
        self.given.assume()
        self.given.assume_valid(self.claim.left)
        alternatives = self.given.assume_facts()
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

    def may_hold(self) -> bool:
        """Whether the facts about elements may hold together at one index of each, in this case of the conditions."""
        self.given.solve()
        self.given.assume()
        self.given.assume_valid(self.claim.left)
        for alternative in self.given.assume_facts():
            with self.context.scope():
                for guard, polarity in alternative:
                    self.context.add(guard, polarity)
                if not self.context.contradictory() and all(self.given.fact_may_hold()):
                    return True
        return False

    def _same_inputs(self) -> None:
        """A name stands for one tensor wherever it is read."""
        claim = self.claim
        types: dict[str, object] = {}
        for graph in (claim.left, claim.right, *([claim.facts] if claim.facts is not None else [])):
            for name, position in graph.inputs.items():
                if types.setdefault(name, graph.nodes[position].type) != graph.nodes[position].type:
                    raise _Open(f"input {name!r} has type {types[name]} in one place and another type elsewhere")

    def _obligations(self) -> None:
        left, right = self._denoter(self.claim.left), self._denoter(self.claim.right, has_poles=self.has_poles)
        self._demands(self.claim.right)
        if list(self.claim.left.outputs) != list(self.claim.right.outputs):
            raise _Open("the sides have different outputs")
        for name in self.claim.left.outputs:
            self._shapes(left, right, name)
        self._lookups(left, right)
        for name in self.claim.left.outputs:
            self._values(left, right, name)

    # --- obligations

    def _denoter(self, graph: Graph, *, has_poles: bool = True) -> Denoter:
        return Denoter(self.context, graph, self.size, self.grade, has_poles=has_poles)

    def _demands(self, graph: Graph) -> None:
        """Every demand of the right side's operators, and that no size is negative."""
        for what, guard in self.given.demands(graph):
            if not self.context.holds(guard):
                raise self._open(f"the right side needs {what}", guard)

    def _open(self, reason: str, guard: Guard | bool) -> _Open:
        """An open obligation with small sizes at which it fails."""
        with self.context.scope():
            if isinstance(guard, Guard):
                self.context.add(guard, False)
            return _Open(reason, self.context.small_model(self.given.names()))

    def _shapes(self, left: Denoter, right: Denoter, name: str) -> None:
        mine, other = self.claim.left.outputs[name], self.claim.right.outputs[name]
        types = self.claim.left.nodes[mine].type, self.claim.right.nodes[other].type
        if types[0].rank != types[1].rank or types[0].dtype is not types[1].dtype:
            raise _Open(f"the sides have types {types[0]} and {types[1]}", self.context.small_model(self.given.names()))
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
            sides = left.needs, right.needs
            found = difference(self.context, *values, lambda here: (fails(here, sides[0]), fails(here, sides[1])))
            if found is not None:
                where = " and ".join(f"{'' if polarity else 'not '}({guard})" for guard, polarity in found.path[-4:])
                sizes = {k: v for k, v in (found.sizes or {}).items() if k in self.given.sorts}
                raise _Open(f"left is {_short(found.left)} and right is {_short(found.right)} where {where}", sizes)
            self._define(left.needs, right.needs, values)

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

    def _define(self, left: list[Need], right: list[Need], values: tuple[Value, Value]) -> None:
        """Each side is defined where the other is."""
        for side, wanted, given, other in (("right", right, left, values[0]), ("left", left, right, values[1])):
            missing = unmet(self.context, wanted, given)
            missing = [need for need in missing if not met_where_a_number(self.context, need, given, other)]
            if missing:
                shown = "; ".join(f"{_short(n.value)} is {n.kind} for {n.operation}" for n in missing[:2])
                raise _Open(f"the {side} side is defined only where {shown}: state it as a condition")
        self.defined += left

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


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
