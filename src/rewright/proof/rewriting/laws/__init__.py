"""Laws that normal forms do not show: each makes a part of a program another way, and says why both are equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.facts import Facts

Law = Callable[[GraphBuilder, Graph, int, Mapping[int, int], Sequence[Facts]], int | None]
"""Given a builder, a program, one of its nodes, the places of earlier nodes in the builder, and the facts of all nodes:
where the node is made another way; None where the law says nothing of it."""

LAWS: Mapping[str, Law] = {}
"""The laws by name."""
