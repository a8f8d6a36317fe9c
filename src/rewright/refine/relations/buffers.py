"""Buffers of one name on both sides: one tensor where both held the same values when they were captured.

What a buffer holds is a part of a program, as its code is; that two have one name says nothing of it. Captures note
what tells the values of each from others (``buffers`` in a graph's metadata), and nothing for one without values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.relations.given import Given
from rewright.refine.verdict import Verdict

_MOST_NAMED = 3


def with_buffers(verdict: Verdict, sequential: Graph, program: RankProgram, given: Given | None) -> Verdict:
    """A proof with what it takes for granted of buffers; ``unknown`` where they held other values."""
    if verdict.status != "proved":
        return verdict
    graphs = program.graphs
    known = {name for name in sequential.inputs if any(name == p or fnmatchcase(name, p) for p in given or {})}
    for rank, graph in enumerate(graphs):
        other = differing_buffers(sequential, graph, known)
        if other:
            reason = (
                f"{other[0]} is a buffer that held other values on rank {rank} than on one device when the programs "
                "were captured; make them equal, or relate it under [relations]"
            )
            return replace(verdict, status="unknown", reason=reason, certify=None)
    unseen = dict.fromkeys(name for graph in graphs for name in not_seen(sequential, graph, known))
    return replace(verdict, assumptions=(*verdict.assumptions, *assumptions(list(unseen))))


def differing_buffers(left: Graph, right: Graph, known: Collection[str]) -> list[str]:
    """Buffers that both programs read under one name and that held other values; without those ``known``."""
    return [name for name, (mine, other) in _both(left, right, known).items() if mine and other and mine != other]


def not_seen(left: Graph, right: Graph, known: Collection[str]) -> list[str]:
    """Buffers that both programs read under one name, and that were captured without values on a side."""
    return [name for name, (mine, other) in _both(left, right, known).items() if not (mine and other)]


def assumptions(names: Sequence[str]) -> tuple[str, ...]:
    """What is taken for granted of buffers whose values were not captured."""
    if not names:
        return ()
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = ", ".join(names[:_MOST_NAMED]) + more
    what = f"buffer {shown} holds" if len(names) == 1 else f"buffers {shown} hold"
    return (f"the {what} the same values on both sides, which were not captured with values",)


def _both(left: Graph, right: Graph, known: Collection[str]) -> dict[str, tuple[str, str]]:
    """What tells the values on both sides, by the names of whole buffers that both read; empty for no values."""
    mine, other = (_buffers(graph) for graph in (left, right))
    read = [{p for node in graph.nodes for p in node.operands} | set(graph.outputs.values()) for graph in (left, right)]
    return {
        name: (mine.get(name, ""), other.get(name, ""))
        for name, position in left.inputs.items()
        if name in right.inputs
        and name not in known
        and (name in mine or name in other)
        and position in read[0]
        and right.inputs[name] in read[1]
        and left.nodes[position].type.shape == right.nodes[right.inputs[name]].type.shape
    }


def _buffers(graph: Graph) -> Mapping[str, str]:
    return json.loads(graph.metadata.get("buffers") or "{}")
