"""What is read at the places of a choice from the row that was chosen from: the values of the choice."""

from __future__ import annotations

from rewright import ops
from rewright.proof.rewriting.laws.picked import reads_rows
from rewright.refine.rewriting.drafts import Draft


def with_values(draft: Draft) -> Draft:
    """The program with the values of a choice for what is looked up at its own places."""
    graph = draft.graph
    chosen = any(isinstance(node.op, ops.TopK) for node in graph.nodes)
    if not chosen or not any(reads_rows(node) for node in graph.nodes):
        return draft
    return draft.by_law("picked")
