"""That a rewritten plan computes what the plan before it does: every step is a rule's, and the result is proved again.

Stored value by stored value: what a kernel stored before, and what it stores now, are programs of the tensors that it
reads, and the prover of rules compares them. A value that was not stored before is compared with what it stands for. A
tensor that is a sum of exponentials is known to be positive, or not to be negative, by its facts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning.plan import Plan
from rewright.optimize.proving.claims import claim_of, key_of
from rewright.optimize.proving.masks import with_mask_inputs
from rewright.optimize.proving.regraph import Assumed, NoGraph, value_graph
from rewright.optimize.proving.rewriting import Rewritten, log_two
from rewright.optimize.scalars.constants import closed_value
from rewright.optimize.scalars.expressions import Expression, walk
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove


def unproved_rewrite(plan: Plan, found: Rewritten, seconds: float) -> str:
    """Why the rewritten plan is not known to compute what the plan does; nothing where it is proved."""
    left = _Left(seconds, time.process_time() + PATIENCE * seconds)
    before = {kernel.name: {s.tensor: s.value for s in kernel.stores} for kernel in plan.kernels}
    for kernel in found.plan.kernels:
        for store in kernel.stores:
            old = {**found.made, **before[kernel.name]}[store.tensor]
            new = plan.table.replace(store.value, lambda e: found.read.get(e.number))
            if old is new:
                continue
            try:
                why = _Comparison(found.plan, kernel, left, found.divisors).unproved(old, new, store.axes)
            except NoGraph as error:
                why = str(error)
            if why:
                return f"{kernel.name} stores another value than before, for all that is proved: {why}"
    return ""


PATIENCE = 4
"""All values of a plan together may take this many times as long as one claim."""


@dataclass
class _Left:
    """The time that is left, and what was proved: layers that repeat make the same claims."""

    each: float
    deadline: float
    known: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])

    def reason(self, claim: Claim) -> str:
        """Why a claim is not proved; nothing where it is."""
        key = key_of(claim)
        if key in self.known:
            return ""
        why = ""
        for has_poles in (False, True):
            seconds = min(self.each, self.deadline - time.process_time())
            if seconds <= 0:
                return "the time for proofs of rules is used up"
            outcome = prove(claim, seconds, has_poles=has_poles)
            if outcome.status == "proved":
                self.known.add(key)
                return ""
            why = why or outcome.reason
        return why


@dataclass
class _Comparison:
    """Proofs that values of one kernel are equal."""

    plan: Plan
    kernel: Kernel
    left: _Left
    divisors: tuple[Expression, ...]

    def unproved(self, old: Expression, new: Expression, axes: tuple[str, ...]) -> str:
        """Why a value is not known to be another one: with any conditions on indices, and with them as they are.

        Sums that both have are one variable first. Where the prover has no law for a maximum over elements that are
        masked, it is given what the rule ``max-over`` says of it: the maximum is one variable in both values, once the
        elements are proved to be those over a number.
        """
        shared = self.shared(old, new)
        extrema = self.extrema(old, new, shared)
        ways = [{**shared, **extrema}]
        ways += [way for way in (extrema, shared, {}) if way not in ways]
        why = [self.reason(old, new, axes, way) for way in ways[:1]]
        for way in ways[1:]:
            if not why[-1]:
                return ""
            why.append(self.reason(old, new, axes, way))
        return why[-1]

    def reason(self, old: Expression, new: Expression, axes: tuple[str, ...], assumed: Mapping[int, Assumed]) -> str:
        """Why two values are not proved to be equal; nothing where they are."""
        read = sorted({e.tensor for e in walk(old, new) if e.op == "load" and e.tensor >= 0})
        plain = [value_graph(self.plan, self.kernel, v, axes, read, assumed) for v in (old, new)]
        masked = [with_mask_inputs(g) for g in plain]
        if not self.left.reason(claim_of(masked, _signs(self.plan, read, masked))):
            return ""
        return self.left.reason(claim_of(plain, _signs(self.plan, read, plain)))

    def shared(self, old: Expression, new: Expression) -> dict[int, Assumed]:
        """The largest sums for every element of the lane that both values have: whatever they are, they are equal."""
        both = {e.number for e in walk(old)} & {e.number for e in walk(new)}
        outer = frozenset(loop.name for loop in (*self.kernel.grid, self.kernel.rows, self.kernel.features) if loop)
        found: dict[int, Assumed] = {}
        stack, seen = [new], set[int]()
        while stack:
            e = stack.pop()
            if e.number in seen:
                continue
            seen.add(e.number)
            if e.number in both and e.bound is not None and e.bound.kind == "sum" and not e.free <= outer:
                found[e.number] = Assumed(f"sum {e.number}")
            else:
                stack.extend(e.arguments)
        return found

    def extrema(self, old: Expression, new: Expression, shared: Mapping[int, Assumed]) -> dict[int, Assumed]:
        """Extrema of the new value that are those of the old one over a number, by their elements and a rule."""
        found: dict[int, Assumed] = {}
        kept = {e.number for e in walk(old)}
        for theirs in (e for e in walk(new) if e.number not in kept and _is_extremum(e)):
            for own in (e for e in walk(old) if _is_extremum(e) and (e.bound, e.free) == (theirs.bound, theirs.free)):
                number = self.quotient(own, theirs, shared)
                if number is not None:
                    label = f"extremum {own.number}"
                    found |= {own.number: Assumed(label), theirs.number: Assumed(label, number)}
                    break
        return found

    def quotient(self, own: Expression, theirs: Expression, shared: Mapping[int, Assumed]) -> Expression | None:
        """The positive number that the elements of one extremum, over it, are proved to be those of another one."""
        assert own.bound is not None
        axes = (*sorted(own.free), own.bound.index)
        convert = f"convert_{own.dtype.value}"
        for divisor in (log_two(self.plan.table, own.dtype), *self.divisors):
            number = self.plan.table.apply(convert, divisor)
            over = self.plan.table.plain("divide", (own.arguments[0], number))
            positive = (closed_value(number) or 0) > 0
            if positive and not self.reason(over, theirs.arguments[0], axes, shared):
                return number
        return None


def _is_extremum(e: Expression) -> bool:
    return e.bound is not None and e.bound.kind in ("maximum", "minimum") and e.dtype.is_float


def _signs(plan: Plan, read: Sequence[int], sides: Sequence[Graph]) -> Graph | None:
    """That tensors are positive, or not negative, of those whose facts say so."""
    builder = GraphBuilder("signs")
    for tensor in read:
        name = f"t{tensor}"
        kind, known = plan.graph.nodes[tensor].type, plan.defined[tensor]
        if not known.is_nonnegative or not kind.dtype.is_float or not any(name in g.inputs for g in sides):
            continue
        value = builder.input(name, ops.Input(name, kind))
        zero = builder.add(ops.Constant(TensorType((), kind.dtype), (0.0,)))
        if kind.rank:
            zero = builder.add(ops.BroadcastInDim(kind.shape, ()), zero)
        builder.output(name, builder.add(ops.Compare("GT" if known.is_positive else "GE"), value, zero))
    facts = builder.build()
    return facts if facts.outputs else None
