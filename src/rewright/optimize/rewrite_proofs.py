"""That a rewritten plan computes what the plan before it does: every step is a rule's, and the result is proved again.

Stored value by stored value: what a kernel stored before, and what it stores now, are programs of the tensors that it
reads, and the prover of rules compares them. A value that was not stored before is compared with what it stands for. A
tensor that is a sum of exponentials is known not to be negative, by its bounds.
"""

from __future__ import annotations

from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import TensorType
from rewright.optimize.expressions import Expression, walk
from rewright.optimize.kernel import Kernel, Store
from rewright.optimize.masks import with_mask_inputs
from rewright.optimize.planning import Plan
from rewright.optimize.proofs import claim_of
from rewright.optimize.properties import properties
from rewright.optimize.regraph import NoGraph, store_graph
from rewright.optimize.rewriting import Rewritten
from rewright.terms.normal.assumptions import Claim
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
                claims = _claims(found.plan, kernel, store, old, new)
            except NoGraph as error:
                return str(error)
            outcomes = [prove(claims[0], seconds)]
            if outcomes[0].status != "proved":
                outcomes.append(prove(claims[1], seconds))
            if outcomes[-1].status != "proved":
                return f"{kernel.name} stores another value than before, for all that is proved: {outcomes[0].reason}"
    return ""


def _claims(plan: Plan, kernel: Kernel, store: Store, old: Expression, new: Expression) -> list[Claim]:
    """``old = new`` as programs of the tensors that they read, with these conditions on indices and with any."""
    read = sorted({e.tensor for e in walk(old, new) if e.op == "load" and e.tensor >= 0})
    plain = [store_graph(plan, kernel, replace(store, value=v), read) for v in (old, new)]
    return [claim_of(sides, _signs(plan, read, sides)) for sides in (plain, [with_mask_inputs(g) for g in plain])]


def _signs(plan: Plan, read: list[int], sides: list[Graph]) -> Graph | None:
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
