"""What one program was captured with as it was in one run, and the other computes for any input.

Such programs differ on other inputs, whether one of them is wrong or not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram

_INPUT = re.compile(r"the input '(.*)' is that of the run")
_INTEGERS = re.compile(r"the integers computed at (.*) are those of the run")


def fixed_on_one_side(sequential: Graph, program: RankProgram) -> str | None:
    """The reason why values that differ say nothing; None where both programs fix the same things, or neither any."""
    sides = [sequential], program.graphs
    for who, own, others in (("the ranks", sides[1], sides[0]), ("the sequential program", sides[0], sides[1])):
        found = _free_elsewhere(own, others)
        if found is not None:
            return (
                f"{who} were captured with {found} of one run, and the other side computes with any: "
                "capture it with run=True and the same values, and let it look at them too"
            ).replace("program were", "program was")
    return None


def _free_elsewhere(own: Sequence[Graph], others: Sequence[Graph]) -> str | None:
    texts = dict.fromkeys(text for graph in own for text in graph.metadata.get("assumptions", "").split("; "))
    for text in texts:
        name = _INPUT.fullmatch(text)
        if name is not None and any(name[1] in graph.inputs for graph in others):
            return f"the values of the input {name[1]!r}"
        place = _INTEGERS.fullmatch(text)
        if place is not None and any(_computes(graph, place[1]) for graph in others):
            return f"the integers at {place[1]}"
    return None


def _computes(graph: Graph, place: str) -> bool:
    """Whether a graph computes integers from its inputs at a place."""
    depends: list[bool] = []
    for node in graph.nodes:
        depends.append(isinstance(node.op, ops.Input) or any(depends[p] for p in node.operands))
        is_float = node.type.dtype.is_float
        if depends[-1] and node.operands and not is_float and str(node.span) == place:
            return True
    return False
