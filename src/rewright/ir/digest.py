"""Content hashes of graphs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence

from rewright.ir.graph import Graph, Node
from rewright.ir.printing import print_attributes, print_span

_COMPARED_BY_PRINT = frozenset({"constant", "custom_call"})
"""Operators with values among their attributes: 1 and true, or 0.0 and -0.0, are equal and print differently."""


def digest(graph: Graph, *, names: bool = True, spans: bool = False, kinds: Sequence[Hashable] | None = None) -> str:
    """A SHA-256 over the computation of the outputs, as hexadecimal text.

    Two graphs have the same digest where their outputs are the same expressions over the same inputs: the order of
    nodes, shared and dead nodes, and the graph's name do not count. Without ``names`` inputs and outputs count by
    position; with ``spans`` the source locations count too. ``kinds`` may give something small for every node that is
    equal only where operator and type are, which saves comparing these.
    """
    found = node_digests(graph, names=names, spans=spans, kinds=kinds)
    total = hashlib.sha256()
    for number, (name, position) in enumerate(graph.outputs.items()):
        total.update(json.dumps(name if names else number).encode())
        total.update(found[position])
    return total.hexdigest()


def node_digests(
    graph: Graph, *, names: bool = True, spans: bool = False, kinds: Sequence[Hashable] | None = None
) -> list[bytes]:
    """For every node the SHA-256 of its expression over the inputs; equal expressions have equal digests."""
    numbers = {position: number for number, position in enumerate(graph.inputs.values())}
    found: list[bytes] = []
    headers: dict[object, bytes] = {}
    for position, node in enumerate(graph.nodes):
        number = numbers.get(position)
        key = (node.op, node.type, number) if kinds is None else (kinds[position], number)
        header = headers.get(key)
        if header is None or node.op.name in _COMPARED_BY_PRINT:
            header = headers[key] = _header(node, number, names).encode()
        place = print_span(node.span).encode() if spans else b""
        operands = [found[operand] for operand in node.operands]
        found.append(hashlib.sha256(b"".join((header, place, *operands))).digest())
    return found


def _header(node: Node, number: int | None, names: bool) -> str:
    """Operator, attributes and type; an input without its name has its number instead."""
    if number is not None and not names:
        return f"{node.op.name} {number} : {node.type}"
    return f"{node.op.name} {print_attributes(node.op)} : {node.type}"
