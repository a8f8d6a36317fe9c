"""What is given as a program."""

from __future__ import annotations

import pytest

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.ir.graph import GraphBuilder
from rewright.ir.programs import program_of_ranks


@pytest.mark.parametrize("program", [len, "x", 3, [len]], ids=["function", "text", "number", "list"])
def test_a_program_that_was_not_captured_is_told_how_to_be(program: object) -> None:
    """Before, it was an error about something else in the middle of a proof."""
    graph = GraphBuilder().build()
    for ask in (rw.equiv, rw.refine):
        with pytest.raises(RewrightError, match=r"a program is a graph, and this is a .*; capture it: rw\.capture"):
            ask(graph, program)
        if not isinstance(program, list):
            with pytest.raises(RewrightError, match=r"; capture it: rw\.capture"):
                ask(program, [graph])


def test_one_graph_is_the_program_of_one_rank() -> None:
    graph = GraphBuilder().build()
    assert program_of_ranks(graph) == program_of_ranks([graph])
    assert program_of_ranks([graph, graph]).mesh.size == 2
