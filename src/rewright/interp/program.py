"""Execution of one program with numpy, in float64 or float32."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from rewright import ops
from rewright.interp.machine import Floating, Machine, Semantics
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols, solve_sizes, with_sizes
from rewright.ops.base import Array, Real


def run(graph: Graph, inputs: Mapping[str, Array], precision: Real = np.float64) -> dict[str, Array]:
    """The outputs of a program by name.

    Every float tensor is computed in ``precision`` whatever its declared dtype; integers keep their width. Size
    symbols get their numbers from the shapes of the inputs.

    Raises RewrightError for a missing or unknown input, an input of another shape, sizes that the inputs do not
    determine, and what an operator cannot execute (the message names operator and source line).
    """
    return execute(graph, inputs, Floating(precision)).outputs()


def run_nodes(graph: Graph, inputs: Mapping[str, Array], positions: Collection[int] | None = None) -> dict[int, Array]:
    """The values of some nodes (all, where none are named) by position; see :func:`run`."""
    wanted = range(len(graph)) if positions is None else positions
    return execute(graph, inputs, Floating(np.float64), wanted).kept()


def execute(graph: Graph, inputs: Mapping[str, Array], semantics: Semantics, keep: Collection[int] = ()) -> Machine:
    """The program after its execution in some number system; see :func:`run`."""
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    machine = Machine(bind_sizes(graph, arrays), arrays, semantics, keep)
    machine.run()
    return machine


def bind_sizes(graph: Graph, inputs: Mapping[str, Array]) -> Graph:
    """The graph with its size symbols replaced by what the shapes of the inputs say; inputs are checked by name."""
    expected = {node.op.label: node.op.tensor for node in graph.nodes if isinstance(node.op, ops.Input)}
    for name in inputs:
        if name not in expected:
            raise RewrightError(f"the program has no input {name!r}; its inputs are {', '.join(expected) or 'none'}")
    if not size_symbols(graph):
        return graph
    given = [(name, tensor, inputs[name].shape) for name, tensor in expected.items() if name in inputs]
    return with_sizes(graph, solve_sizes(given))
