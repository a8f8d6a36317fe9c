"""Memory that a rank reads before it is written: an input of that rank, which may be anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewright import ops
from rewright.blame.editing import with_input
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ir.types import DType
from rewright.ops.base import Array, static

_PREFIX = "unspecified:"


def as_inputs(program: RankProgram) -> RankProgram:
    """The program with every read of unwritten memory as an input that the sequential program does not have."""
    graphs = tuple(map(_with_inputs, program.graphs))
    return program if graphs == program.graphs else replace(program, graphs=graphs)


def _with_inputs(graph: Graph) -> Graph:
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.CustomCall) and node.op.is_unspecified:
            graph = with_input(graph, position, f"{_PREFIX}{position}")
    return graph


def is_unspecified(name: str) -> bool:
    """Whether the input of that name stands for unwritten memory."""
    return name.startswith(_PREFIX)


def draw_unwritten(graph: Graph, generator: np.random.Generator) -> dict[str, Array]:
    """Random values of the inputs that stand for unwritten memory."""
    kinds = {name: graph.nodes[position].type for name, position in graph.inputs.items() if is_unspecified(name)}
    return {name: _numbers(kind.dtype, static(name, kind.shape), generator) for name, kind in kinds.items()}


def _numbers(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    if dtype.is_float:
        return generator.standard_normal(shape)
    bits = generator.integers(0, 2, shape)  # what is an index of most tensors
    return bits.astype(np.bool_) if dtype is DType.BOOL else bits
