"""What is computed with rows of a table that a choice picks, as a sum over all rows.

The sums stand in the place of the last nodes that are computed with such rows.
"""

from __future__ import annotations

from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws.rows import MOST, Rows
from rewright.refine.rewriting.drafts import Draft


def with_cases(draft: Draft) -> Draft:
    """The program with sums over all rows; as it is where they are too many, or of tables that do not go together."""
    graph, law = draft.graph, Rows(draft.graph, draft.facts)
    last = _last(graph, law)
    parts = [law.part(p) for p in last]
    rows = [law.rows(part) for part in parts]
    most = sum(len(part) * (count or 0) for part, count in zip(parts, rows, strict=True))
    if not last or None in rows or most > MOST or not all(graph.nodes[p].type.dtype.is_float for p in last):
        return draft
    sums = {p for p in range(len(graph.nodes)) if law.summed_rows(p) in last}
    return draft.by_law("rows", law, last | sums)


def _last(graph: Graph, law: Rows) -> set[int]:
    """The nodes that are computed with chosen rows and that others read, or are outputs."""
    found = {
        operand
        for position, node in enumerate(graph.nodes)
        for operand in node.operands
        if operand in law.followed and position not in law.followed
    }
    return found | {position for position in graph.outputs.values() if position in law.followed}
