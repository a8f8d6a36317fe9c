"""A question about rows that sorts have put in order, as one about the rows where they were.

Ranks that hold some of the experts sort the tokens of their own ones, so that no rank has the order of the sequential
program. What is computed row by row does not depend on the order.
"""

from __future__ import annotations

from dataclasses import replace

from rewright import ops
from rewright.proof.unknowns import Question
from rewright.refine.relations.narrow import Restated
from rewright.refine.rewriting.drafts import Draft, graphs_of


def without_sorts(question: Question) -> Restated | None:
    """The question with rows where they were; None where no program has rows that a sort has put in order."""
    graphs = question.sequential, *question.program.graphs
    if not any(isinstance(node.op, ops.Sort) for graph in graphs for node in graph.nodes):
        return None
    drafts = tuple(Draft(graph).by_law("unsorted").by_law("repeating") for graph in graphs)
    if not any(draft.changes for draft in drafts):
        return None
    first, *ranks = graphs_of(drafts)
    program = replace(question.program, graphs=tuple(ranks))
    return Restated(replace(question, sequential=first, program=program), drafts)
