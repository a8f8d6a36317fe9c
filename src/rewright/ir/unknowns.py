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


def what_and_place(text: str) -> tuple[str, str]:
    """What an unknown stands for and where it is, without its number among the others there."""
    what, _, place = text.rpartition(" #")[0].partition(" at ")
    return what, place


def kind_of_draw(text: str) -> list[str]:
    """What an unknown draws, and from where to where if these are integers; what it is, if it draws nothing."""
    return text.removeprefix(RANDOM).partition(" at ")[0].split(" ")


def unread(graph: Graph) -> frozenset[str]:
    """Names of unknowns that nothing reads."""
    return frozenset(graph.metadata.get(UNREAD, "").split("\n")) - {""}
