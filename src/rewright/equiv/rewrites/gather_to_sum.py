"""What is computed with rows of a table that a choice picks, as a sum over all rows.

Programs of which only some look rows up get such sums, in the place of the last nodes that are computed with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws.rows import MOST, Rows
from rewright.refine.rewriting.drafts import Draft


def cases_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with what is computed with chosen rows as sums; as they are where all or none look rows up."""
    if not any(isinstance(node.op, ops.TopK | ops.Sort) for draft in drafts for node in draft.graph.nodes):
        return tuple(drafts)
    laws = [Rows(draft.graph, draft.facts) for draft in drafts]
    if all(law.looked for law in laws) or not any(law.looked for law in laws):
        return tuple(drafts)
    return tuple(_by_cases(draft, law) if law.looked else draft for draft, law in zip(drafts, laws, strict=True))


def _by_cases(draft: Draft, law: Rows) -> Draft:
    """The program with sums over all rows; as it is where they are too many, or of tables that do not go together."""
    graph = draft.graph
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
