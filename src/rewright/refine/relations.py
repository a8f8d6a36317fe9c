"""Relations between the inputs, and expectations of the outputs, from what the caller gives and the capture knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram, place
from rewright.refine.equations import Equation

Given = Mapping[str, str | Sequence[str] | Placement]


@dataclass(frozen=True)
class Relations:
    """Placements by input name, equations, and what was assumed to get them."""

    placements: dict[str, Placement]
    equations: tuple[Equation, ...]
    assumptions: tuple[str, ...]


def input_relations(sequential: Graph, program: RankProgram, given: Given | None) -> Relations:
    """The relation of every input: given by the caller, else read at capture, else inferred from shapes.

    Raises RewrightError for a name pattern that matches no input and for a text that is no placement.
    """
    placements = dict(program.inputs)
    equations: list[Equation] = []
    inferred: list[str] = []
    for pattern, what in (given or {}).items():
        names = [n for n in sequential.inputs if n == pattern or fnmatchcase(n, pattern)]
        if not names:
            raise RewrightError(f"relation {pattern!r} matches no input of the sequential program; see its inputs")
        for name in names:
            placements.pop(name, None)
            texts = [what] if isinstance(what, str | Placement) else list(what)
            if isinstance(what, Placement):
                placements[name] = what
            elif any("@" in str(text) for text in texts):
                equations.extend(Equation(name, str(text)) for text in texts)
            else:
                shape = sequential.nodes[sequential.inputs[name]].type.shape
                placements[name] = place(shape, program.mesh, [str(text) for text in texts])
    stated = {e.name for e in equations}
    for name, position in sequential.inputs.items():
        if name in placements or name in stated or name not in program.graphs[0].inputs:
            continue
        placement = by_shape(sequential.nodes[position].type.shape, name, program)
        if placement is not None:
            placements[name] = placement
            inferred.append(f"{name} is {placement}")
    assumed = _inference_note(inferred)
    known = {name: placement for name, placement in placements.items() if name in sequential.inputs}
    return Relations(known, tuple(equations), assumed)


def _inference_note(inferred: Sequence[str]) -> tuple[str, ...]:
    if not inferred:
        return ()
    shown = ", ".join(inferred[:3]) + (f" and {len(inferred) - 3} more" if len(inferred) > 3 else "")
    return (f"relations of {len(inferred)} inputs were inferred from their shapes: {shown}",)


def by_shape(shape: Shape, name: str, program: RankProgram) -> Placement | None:
    """The one placement that the local shapes leave: replicated, or sharded along the axis that is smaller."""
    local = [g.nodes[g.inputs[name]].type.shape for g in program.graphs if name in g.inputs]
    if len(local) != len(program.graphs):
        return None
    replicated = ["Replicate()"] * len(program.mesh.axes)
    candidates = [replicated]
    for k in range(len(program.mesh.axes)):
        for axis in range(len(shape)):
            candidates.append([*replicated[:k], f"Shard({axis})", *replicated[k + 1 :]])
    fitting: list[Placement] = []
    for texts in candidates:
        try:
            placement = place(shape, program.mesh, texts)
        except RewrightError:
            continue
        if all(placement.local_shape(rank) == local[rank] for rank in range(program.mesh.size)):
            fitting.append(placement)
    return fitting[0] if fitting else None


def output_expectations(sequential: Graph, program: RankProgram, given: Given | None) -> dict[str, Placement]:
    """The expected placement of outputs: given by the caller, else read at capture, else that of the parameter.

    Raises RewrightError for a name pattern that matches no output.
    """
    expected = {name: p for name, p in program.outputs.items() if name in sequential.outputs}
    for name in sequential.outputs:
        parameter = name.removeprefix("grad:")
        if parameter != name and name not in expected and parameter in program.inputs:
            expected[name] = program.inputs[parameter]
    for pattern, what in (given or {}).items():
        names = [n for n in sequential.outputs if n == pattern or fnmatchcase(n, pattern)]
        if not names:
            raise RewrightError(f"expectation {pattern!r} matches no output of the sequential program; see its outputs")
        for name in names:
            if isinstance(what, Placement):
                expected[name] = what
                continue
            texts = [what] if isinstance(what, str) else list(what)
            shape = sequential.nodes[sequential.outputs[name]].type.shape
            expected[name] = place(shape, program.mesh, texts)
    return expected
