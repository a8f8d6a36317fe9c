"""That a rewritten plan computes what the plan before it does: every step is a rule's, and the result is proved again.

Stored value by stored value: what a kernel stored before, and what it stores now, are programs of the tensors that it
reads, and the prover of rules compares them. A value that was not stored before is compared with what it stands for. A
tensor that is a sum of exponentials is known not to be negative, by its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType
from rewright.optimize.expressions import Expression, walk
from rewright.optimize.kernel import Kernel
from rewright.optimize.masks import with_mask_inputs
from rewright.optimize.planning import Plan
from rewright.optimize.proofs import claim_of
from rewright.optimize.properties import properties
from rewright.optimize.regraph import Assumed, NoGraph, value_graph
from rewright.optimize.rewriting import Rewritten, log_two
from rewright.terms.normal.prove import prove


def unproved_rewrite(plan: Plan, found: Rewritten, seconds: float) -> str:
    """Why the rewritten plan is not known to compute what the plan does; nothing where it is proved."""
    before = {kernel.name: {s.tensor: s.value for s in kernel.stores} for kernel in plan.kernels}
    for kernel in found.plan.kernels:
        for store in kernel.stores:
            old = {**found.made, **before[kernel.name]}[store.tensor]
            new = plan.table.replace(store.value, lambda e: found.read.get(e.number))
            if old is new:
                continue
            try:
                why = _Comparison(found.plan, kernel, seconds).unproved(old, new, store.axes)
            except NoGraph as error:
                why = str(error)
            if why:
                return f"{kernel.name} stores another value than before, for all that is proved: {why}"
    return ""


@dataclass
class _Comparison:
    """Proofs that values of one kernel are equal."""

    plan: Plan
    kernel: Kernel
    seconds: float

    def unproved(self, old: Expression, new: Expression, axes: tuple[str, ...]) -> str:
        """Why a value is not known to be another one: with the conditions on indices as they are, and with any.

        Where the prover has no law for a maximum over elements that are masked, it is given what the rule ``max-over``
        says of it: the maximum is one variable in both values, once the elements are proved to be those over log 2.
        """
        first = self.reason(old, new, axes, {})
        if not first:
            return ""
        assumed = self.extrema(old, new)
        return first if not assumed else self.reason(old, new, axes, assumed)

    def reason(self, old: Expression, new: Expression, axes: tuple[str, ...], assumed: Mapping[int, Assumed]) -> str:
        """Why two values are not proved to be equal; nothing where they are."""
        read = sorted({e.tensor for e in walk(old, new) if e.op == "load" and e.tensor >= 0})
        plain = [value_graph(self.plan, self.kernel, v, axes, read, assumed) for v in (old, new)]
        outcome = prove(claim_of(plain, _signs(self.plan, read, plain)), self.seconds)
        if outcome.status == "proved":
            return ""
        masked = [with_mask_inputs(g) for g in plain]
        again = prove(claim_of(masked, _signs(self.plan, read, masked)), self.seconds)
        return "" if again.status == "proved" else outcome.reason

    def extrema(self, old: Expression, new: Expression) -> dict[int, Assumed]:
        """Extrema of the new value that are those of the old one over log 2, by their elements and a rule."""
        found: dict[int, Assumed] = {}
        kept = {e.number for e in walk(old)}
        for theirs in (e for e in walk(new) if e.number not in kept and _is_extremum(e)):
            for own in (e for e in walk(old) if _is_extremum(e) and (e.bound, e.free) == (theirs.bound, theirs.free)):
                assert own.bound is not None
                over = self.plan.table.plain("divide", (own.arguments[0], log_two(self.plan.table, own.dtype)))
                axes = (*sorted(own.free), own.bound.index)
                if not self.reason(over, theirs.arguments[0], axes, {}):
                    label = f"extremum {own.number}"
                    found |= {own.number: Assumed(label, False), theirs.number: Assumed(label, True)}
                    break
        return found


def _is_extremum(e: Expression) -> bool:
    return e.bound is not None and e.bound.kind in ("maximum", "minimum") and e.dtype.is_float


def _signs(plan: Plan, read: Sequence[int], sides: Sequence[Graph]) -> Graph | None:
    """That tensors are not negative, of those whose bounds say so."""
    builder = GraphBuilder("signs")
    bounds = properties(plan.graph)
    for tensor in read:
        name = f"t{tensor}"
        kind = plan.graph.nodes[tensor].type
        if bounds[tensor].bounds.low < 0 or not kind.dtype.is_float or not any(name in g.inputs for g in sides):
            continue
        value = builder.input(name, ops.Input(name, kind))
        zero = builder.add(ops.Constant(TensorType((), kind.dtype), (0.0,)))
        if kind.rank:
            zero = builder.add(ops.BroadcastInDim(kind.shape, ()), zero)
        builder.output(name, builder.add(ops.Compare("GE"), value, zero))
    facts = builder.build()
    return facts if facts.outputs else None
