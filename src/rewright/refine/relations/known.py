"""Relations between the inputs, and expectations of the outputs, from what the caller gives and the capture knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram, place
from rewright.ir.unknowns import RANDOM, unknowns, unread
from rewright.refine.relations.equations import Equation, rename_equation
from rewright.refine.relations.given import Given, Inferred, Relations
from rewright.refine.relations.inference import by_shapes, decide, note
from rewright.refine.relations.solving import expectation

_TOLD = 6
"""Inputs that a message names, those whose names are like what was asked for first."""


def _nearest(pattern: str, sequential: Graph) -> str:
    alike = get_close_matches(pattern, sequential.inputs, _TOLD, 0.5)
    names = list(dict.fromkeys((*alike, *sequential.inputs)))
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    return f"its inputs are {', '.join(names[:_TOLD])}{more}" if names else "it has none"


def input_relations(sequential: Graph, program: RankProgram, given: Given | None) -> Relations:
    """The relation of every input: given by the caller, else read at capture, else what shapes allow.

    Raises RewrightError for a name pattern that matches no input and for a text that is no placement.
    """
    placements = dict(program.inputs)
    equations: list[Equation] = []
    drawn = {name for name, what in unknowns(sequential).items() if what.startswith(RANDOM)}
    for pattern, what in (given or {}).items():
        names = [n for n in sequential.inputs if n == pattern or (n not in drawn and fnmatchcase(n, pattern))]
        if not names and pattern in unread(sequential):
            continue
        if not names:
            raise RewrightError(
                f"relation {pattern!r} matches no input of the sequential program; {_nearest(pattern, sequential)}"
            )
        for name in names:
            placements.pop(name, None)
            equations = [e for e in equations if e.name != name]  # a later pattern counts
            if isinstance(what, Placement):
                placements[name] = what
            elif any("@" in text for text in texts_of(what)):
                equations.extend(Equation(name, text) for text in texts_of(what))
            else:
                shape = sequential.nodes[sequential.inputs[name]].type.shape
                placements[name] = place(shape, program.mesh, texts_of(what))
    stated = {e.name for e in equations}
    missing = [
        name
        for name in sequential.inputs
        if name not in placements and name not in stated and any(name in graph.inputs for graph in program.graphs)
    ]
    shapes = {name: sequential.nodes[sequential.inputs[name]].type.shape for name in missing}
    found = {name: choices for name in missing if (choices := by_shapes(shapes[name], name, program))}
    known = {name: placement for name, placement in placements.items() if name in sequential.inputs}
    return Relations(known, tuple(equations), Inferred(found))


def complete_relations(
    sequential: Graph, program: RankProgram, relations: Relations, expected: Mapping[str, Placement]
) -> Relations:
    """The relations with one placement for every inferred input, execution deciding where shapes leave a choice."""
    if not relations.inferred.fitting:
        return relations
    chosen = decide(sequential, program, relations.placements, relations.inferred, expected)
    inferred = {name: placement for name, placement in chosen.items() if name not in unknowns(sequential)}
    assumed = (*relations.assumptions, *note(inferred, confirmed=relations.inferred.is_open))
    return Relations({**relations.placements, **chosen}, relations.equations, Inferred(), assumed)


def output_expectations(
    sequential: Graph, program: RankProgram, given: Given | None, equations: Sequence[Equation] = ()
) -> dict[str, Placement]:
    """The expected placement of outputs: given by the caller, else read at capture, else that of the parameter.

    Args:
        equations: those of the inputs; what becomes of a tensor, and its gradient, is held as the tensor is.

    Raises RewrightError for a name pattern that matches no output, and for equations that say not all of a tensor.
    """
    expected = {name: p for name, p in program.outputs.items() if name in sequential.outputs}
    for name in sequential.outputs:
        parameter = name.removeprefix("grad:")
        if parameter != name and name not in expected and parameter in program.inputs:
            expected[name] = program.inputs[parameter]
        own = [rename_equation(e, name) for e in equations if name in (f"grad:{e.name}", f"updated:{e.name}")]
        if own and name not in expected:
            expected |= _alike(name, own, sequential, program)
    for pattern, what in (given or {}).items():
        names = [n for n in sequential.outputs if n == pattern or fnmatchcase(n, pattern)]
        if not names:
            raise RewrightError(f"expectation {pattern!r} matches no output of the sequential program; see its outputs")
        for name in names:
            shape = sequential.nodes[sequential.outputs[name]].type.shape
            if isinstance(what, Placement):
                expected[name] = what
            elif any("@" in text for text in texts_of(what)):
                stated = [Equation(name, text) for text in texts_of(what)]
                expected[name] = expectation(name, stated, sequential, program)
            else:
                expected[name] = place(shape, program.mesh, texts_of(what))
    return expected


def _alike(name: str, equations: Sequence[Equation], sequential: Graph, program: RankProgram) -> dict[str, Placement]:
    """The placement of what becomes of a tensor that equations give; none where they do not fit it."""
    try:
        return {name: expectation(name, equations, sequential, program)}
    except RewrightError:
        return {}


def texts_of(stated: str | Sequence[str]) -> list[str]:
    """The placements or equations of a relation as a list; ``"[Shard(0), Replicate()]"``, as printed, is one of two."""
    if not isinstance(stated, str):
        return [str(text) for text in stated]
    inner = stated.strip()
    if "@" not in stated and inner.startswith("[") and inner.endswith("]"):
        return [text.strip() for text in inner[1:-1].split(",")]
    return [stated]
