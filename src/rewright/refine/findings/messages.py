"""Messages that a rank receives and nothing reads: where a loop of sends and receives leaves one out."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import NO_SPAN
from rewright.ir.types import SourceSpan
from rewright.refine.case import Case
from rewright.refine.verdict import Finding, Where

_VAGUE = ("wrong_value", "not_related", "not_proved")
"""Findings that say where programs part, and not why."""


def with_unread(case: Case, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of a refutation, after a message that nothing reads where they do not say what is wrong."""
    if not found or found[0].kind not in _VAGUE or found[0].suggestion is not None:
        return tuple(found)
    unread = unread_messages(case)
    return (*unread[:1], *found)


def unread_messages(case: Case) -> tuple[Finding, ...]:
    """One finding for every line at which ranks receive what no operator of theirs reads."""
    places: dict[SourceSpan, Finding] = {}
    for rank, graph in enumerate(case.program.graphs):
        read = {operand for node in graph.nodes for operand in node.operands} | set(graph.outputs.values())
        for position, node in enumerate(graph.nodes):
            if not isinstance(node.op, ops.Recv) or position in read or node.span == NO_SPAN:
                continue
            message = f"rank {rank} receives a {node.type} from rank {node.op.source}, and nothing reads it"
            where = Where(None, rank, position)
            expected = "a reader, as of the other messages of this line"
            found = Finding("wrong_exchange", message, None, node.span, expected, "", None, None, where=where)
            places.setdefault(node.span, found)
    return tuple(places.values())
