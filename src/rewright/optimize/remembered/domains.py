"""Where a program is defined, as data: what ``running.bare.Domain`` reads."""

from __future__ import annotations

from typing import Any

from rewright.ir.graph import Graph
from rewright.optimize.running.manifest import manifest_of_graph
from rewright.optimize.scalars.domains import Domain


def domain_document(domain: Domain | None) -> dict[str, Any] | None:
    """The manifest of what has to hold, and the conditions; None where a call of it cannot be written down."""
    if domain is None or not domain.obligations:
        empty: dict[str, Any] = {"inputs": [], "outputs": {}, "steps": [], "views": {}}
        return {"manifest": empty, "conditions": []}
    graph = domain.graph
    outputs = {f"o{number}": o.position for number, o in enumerate(domain.obligations)}
    needed = set(domain.needed)
    inputs = {name: p for name, p in graph.inputs.items() if p in needed}
    manifest = manifest_of_graph(Graph(graph.nodes, inputs, outputs, "domain"))
    if not manifest.is_complete:
        return None
    conditions: list[list[Any]] = []
    for name, obligation in zip(outputs, domain.obligations, strict=True):
        part = None if obligation.part is None else list(obligation.part)
        conditions.append([name, obligation.below, part, obligation.words(graph)])
    return {"manifest": manifest.document, "conditions": conditions}
