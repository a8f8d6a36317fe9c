"""Proofs about plans: that the program is the plan's graph, and that every running state may follow the others.

The first is asked of the engine of ``refine``, whose certificate the independent checker confirms, and where it has no law
for it, of the prover of rules. The second is the identity ``f(x, m') = f(x, m) * g(m, m')`` of every update, for all x, m
and m'.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.optimize.derive import Update, contains
from rewright.optimize.expressions import Expression
from rewright.optimize.planning import Plan
from rewright.optimize.regraph import NoGraph, operator_of, regraph
from rewright.refine.engine import answer
from rewright.terms.normal.assumptions import Claim
from rewright.terms.normal.prove import prove


@dataclass
class Trust:
    """How a plan is known to be right."""

    evidence: str = "tested"
    """``proved`` by the checker or the prover, or only ``tested``."""
    reason: str = ""
    certificate: Any = None
    graph: Graph | None = None
    """The plan as a graph, which the certificate is about."""
    updates: list[str] = field(default_factory=list[str])
    """The identities of the running states, in words."""
    seconds: float = 0.0


def trust(plan: Plan, seconds: float = 5.0) -> Trust:
    """What can be proved about a plan within a time."""
    started = time.monotonic()
    found = Trust()
    try:
        found.graph = regraph(plan)
        _same_program(plan.graph, found, seconds)
        if found.evidence == "proved":
            _updates(plan, found, seconds)
    except NoGraph as error:
        found.reason = str(error)
    found.seconds = time.monotonic() - started
    return found


def _same_program(graph: Graph, found: Trust, seconds: float) -> None:
    assert found.graph is not None
    why = ""
    try:
        verdict = answer(graph, [found.graph], {"*": "Replicate()"} if graph.inputs else None, None, seconds, suggest=False, audit=True)
        if verdict.status == "proved" and verdict.evidence.name == "PROVED":
            found.evidence, found.certificate = "proved", verdict.certificate
            found.reason = "the checker confirmed the certificate"
            return
        why = verdict.reason
    except RewrightError as error:
        why = str(error)
    outcome = prove(Claim(graph, found.graph), seconds)
    if outcome.status == "proved":
        found.evidence, found.reason = "proved", "by the prover of rules: both have one normal form"
    else:
        found.reason = f"not proved: {why or outcome.reason}; {outcome.reason}"


def _updates(plan: Plan, found: Trust, seconds: float) -> None:
    for kernel in plan.kernels:
        for sweep in kernel.sweeps:
            for running in sweep.running:
                if running.update.factor is None:
                    continue
                outcome = prove(update_claim(running.update), seconds)
                where = ", ".join(str(e.bound.kind) for e in running.update.depends if e.bound)
                if outcome.status != "proved":
                    found.evidence = "tested"
                    found.reason = f"an update of a sum that follows a running {where} is not proved: {outcome.reason}"
                    return
                found.updates.append(f"{kernel.name}: a sum follows the running {where} of the same pass")


def update_claim(update: Update) -> Claim:
    """``f(x, m') = f(x, m) * g(m, m')`` over scalars: everything that does not depend on m is a variable."""
    assert update.factor is not None
    sides: list[Graph] = []
    for moved in (True, False):
        writer = _Scalars(update)
        body = writer.value(update.body, moved)
        if not moved:
            body = writer.builder.add(ops.Multiply(), body, writer.value(update.factor, False))
        for name in ("m", "new"):  # both sides have all inputs
            for e in update.depends:
                writer.variable(f"{name}{e.number}", e.dtype)
        writer.builder.output("0", body)
        sides.append(writer.builder.build())
    names = {**_inputs(sides[0]), **_inputs(sides[1])}
    return Claim(*(_with_inputs(side, names) for side in sides))


class _Scalars:
    def __init__(self, update: Update) -> None:
        self.update = update
        self.builder = GraphBuilder("update")
        self.known: dict[str, int] = {}

    def variable(self, name: str, dtype: DType) -> int:
        """A free scalar."""
        if name not in self.known:
            self.known[name] = self.builder.input(name, ops.Input(name, TensorType((), dtype)))
        return self.known[name]

    def value(self, e: Expression, moved: bool) -> int:
        """An expression; parts without running values are variables."""
        for old, new in zip(self.update.depends, self.update.renewed, strict=True):
            if e is old:
                return self.variable(f"{'new' if moved else 'm'}{old.number}", e.dtype)
            if e is new:
                return self.variable(f"new{old.number}", e.dtype)
        if e.op == "constant":
            return self.builder.add(ops.Constant(TensorType((), e.dtype), (e.value,)))
        if not any(contains(e, x) for x in (*self.update.depends, *self.update.renewed)):
            return self.variable(f"x{e.number}", e.dtype)
        return self.builder.add(operator_of(e), *(self.value(a, moved) for a in e.arguments))


def _inputs(graph: Graph) -> dict[str, TensorType]:
    return {name: graph.nodes[position].type for name, position in graph.inputs.items()}


def _with_inputs(graph: Graph, names: Mapping[str, TensorType]) -> Graph:
    """The graph with inputs that it does not read."""
    missing = [n for n in names if n not in graph.inputs]
    if not missing:
        return graph
    builder = GraphBuilder(graph.name)
    places: list[int] = []
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            places.append(builder.input(node.op.label, node.op))
        else:
            places.append(builder.add(node.op, *(places[p] for p in node.operands)))
    for name in missing:
        builder.input(name, ops.Input(name, names[name]))
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return builder.build()
