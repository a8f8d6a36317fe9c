"""Equations on numbers: which elements of the sequential inputs every element of a rank tensor is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewright.ir.errors import ContradictoryRelations, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import AxisRuns, Placement, RankProgram
from rewright.ops.base import Array
from rewright.refine.relations.equations import Block, Box, Equation, Joined, Layout, Of, layout_of


@dataclass(frozen=True)
class Read:
    """A box of a rank tensor, and the flat positions of its elements in a sequential input."""

    source: str
    box: Box
    positions: NDArray[np.intp]


Solved = Mapping[tuple[int, str], Sequence[Read]]
"""By rank and input name, the reads that together fill the tensor."""


def reads(
    equations: Sequence[Equation], sequential: Graph, program: RankProgram, of: Of = "inputs"
) -> dict[tuple[int, str], list[Read]]:
    """The reads of all rank tensors that equations speak of; of inputs, ``solve`` has checked that they fill them.

    Raises RewrightError for an equation that cannot be read, and ContradictoryRelations for one of another shape.
    """
    found: dict[tuple[int, str], list[Read]] = {}
    tensors = sequential.inputs if of == "inputs" else sequential.outputs
    for equation in equations:
        shape = sequential.nodes[tensors[equation.name]].type.shape
        if not all(isinstance(n, int) for n in shape):
            continue
        sizes = tuple(int(str(n)) for n in shape)
        positions = np.arange(int(np.prod(sizes)), dtype=np.intp).reshape(sizes)
        layout = layout_of(equation, program, of)
        if layout.shape != sizes:
            raise ContradictoryRelations(
                f"the equation for {equation.name!r} has shape {layout.shape} on its right side and the tensor has "
                f"{sizes}; correct {equation.text!r}"
            )
        for block, part in _cut(layout, positions):
            found.setdefault((block.rank, block.name), []).append(Read(equation.name, block.box, part))
    return found


def expectation(name: str, equations: Sequence[Equation], sequential: Graph, program: RankProgram) -> Placement:
    """How the ranks hold an output, said by equations over what they return under its name.

    Raises RewrightError where the equations cannot be read, name another output, or leave a part of what a rank
    returns open; ContradictoryRelations where they give it two meanings.
    """
    sizes = sequential.nodes[sequential.outputs[name]].type.shape
    if not all(isinstance(n, int) for n in sizes):
        raise RewrightError(f"output {name!r} has sizes that are symbols, of which no equation speaks; use a placement")
    shape = tuple(int(str(n)) for n in sizes)
    solved = reads(equations, sequential, program, "outputs")
    for rank, other in solved:
        if other != name:
            raise RewrightError(f"the equation for output {name!r} names {other}@{rank}; ranks return it as {name!r}")
    runs: list[tuple[AxisRuns, ...]] = []
    for rank, graph in enumerate(program.graphs):
        if name not in graph.outputs:
            runs.append(tuple(() for _ in shape))
            continue
        held = _places(solved.get((rank, name), ()), graph.nodes[graph.outputs[name]].type.shape, f"{name}@{rank}")
        own = _grid(held, shape)
        if own is None:
            raise RewrightError(
                f"the equations for output {name!r} give rank {rank} elements that are no rows and columns of it; "
                "return it under another shape"
            )
        runs.append(own)
    return Placement(tuple(runs), (equations[0].text,))


def _places(parts: Sequence[Read], shape: Sequence[object], where: str) -> NDArray[np.intp]:
    """The flat position that every element of a rank tensor has in the sequential one."""
    held = np.full([int(str(n)) for n in shape], -1, np.intp)
    for part in parts:
        own = held[(*(slice(start, stop) for start, stop in part.box), ...)]  # a view of a scalar too
        if ((own >= 0) & (own != part.positions)).any():
            raise ContradictoryRelations(f"{where} is given two meanings by its equations; keep the true one")
        own[...] = part.positions
    if (held < 0).any():
        raise RewrightError(f"the equations say nothing about a part of {where}; add that part")
    return held


def _cut(layout: Layout, positions: NDArray[np.intp]) -> list[tuple[Block, NDArray[np.intp]]]:
    if isinstance(layout, Block):
        return [(layout, positions.transpose([layout.order.index(axis) for axis in range(len(layout.order))]))]
    assert isinstance(layout, Joined)
    found: list[tuple[Block, NDArray[np.intp]]] = []
    start = 0
    for part in layout.parts:
        size = part.shape[layout.axis]
        found.extend(_cut(part, positions.take(range(start, start + size), axis=layout.axis)))
        start += size
    return found


def build_rank_tensor(shape: Sequence[int], parts: Sequence[Read], inputs: Mapping[str, Array]) -> Array:
    """A rank tensor from the sequential inputs."""
    result = np.zeros(tuple(shape), inputs[parts[0].source].dtype)
    for part in parts:
        where = tuple(slice(start, stop) for start, stop in part.box)
        result[where] = inputs[part.source].reshape(-1)[part.positions]
    return result


def cuts(solved: Solved, shapes: Mapping[str, Sequence[int]], ranks: int) -> dict[str, Placement]:
    """For inputs that equations give: the rows of every axis that the ranks hold, where they hold a grid of rows."""
    found: dict[str, Placement] = {}
    for name in {name for _, name in solved} & shapes.keys():
        runs = [_rows(solved.get((rank, name), ()), name, shapes[name]) for rank in range(ranks)]
        known = tuple(own for own in runs if own is not None)
        if len(known) == ranks:
            found[name] = Placement(known, ("its equation",))
    return found


def _rows(parts: Sequence[Read], source: str, shape: Sequence[int]) -> tuple[AxisRuns, ...] | None:
    if not parts or any(part.source != source or len(part.box) != len(shape) for part in parts):
        return None
    held = np.zeros([max(part.box[axis][1] for part in parts) for axis in range(len(shape))], np.intp)
    for part in parts:
        held[tuple(slice(start, stop) for start, stop in part.box)] = part.positions
    return _grid(held, shape)


def _grid(held: NDArray[np.intp], shape: Sequence[int]) -> tuple[AxisRuns, ...] | None:
    """The rows of every axis that a tensor of flat positions has; None where it is no grid of rows."""
    if held.ndim != len(shape):
        return None
    if held.size == 0:
        return tuple(() if n == 0 else ((0, n),) for n in held.shape)
    rows = [np.unravel_index(_line(held, axis), shape)[axis] for axis in range(len(shape))]
    grid = np.ravel_multi_index(np.ix_(*rows), tuple(shape)) if rows else held
    return tuple(_runs(own.tolist()) for own in rows) if np.array_equal(grid, held) else None


def _line(held: NDArray[np.intp], axis: int) -> NDArray[np.intp]:
    """The elements along one axis, at the start of all others."""
    return held[tuple(slice(None) if own == axis else 0 for own in range(held.ndim))]


def _runs(rows: Sequence[int]) -> AxisRuns:
    """Numbers as runs of neighbours: the start of each and its length."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and row == sum(found[-1]):
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((row, 1))
    return tuple(found)
