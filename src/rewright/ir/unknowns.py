"""How graphs say which of their inputs are unknown tensors of the capture, and not arguments of the program."""

from __future__ import annotations

from rewright.ir.graph import Graph

UNKNOWN = "unknown:"
"""Metadata ``unknown:<input>`` says what the input stands for and where in the source."""
DRAWN = "drawn:"
"""Metadata ``drawn:<input>`` has the name under which the capture drew these random numbers."""
RANDOM = "random:"
"""How what an unknown stands for begins, where it stands for random numbers."""
UNREAD = "unread"
"""Metadata with the names of unknowns that nothing reads and that are no inputs, one a line."""
NUMBERED = "numbered outputs"
"""Metadata of a graph whose outputs have no names but places in what the program returns."""


def unknowns(graph: Graph) -> dict[str, str]:
    """The unknown inputs of a graph, in order, with what and where they are."""
    return {name: graph.metadata[UNKNOWN + name] for name in graph.inputs if UNKNOWN + name in graph.metadata}


def unread(graph: Graph) -> frozenset[str]:
    """Names of unknowns that nothing reads."""
    return frozenset(graph.metadata.get(UNREAD, "").split("\n")) - {""}
