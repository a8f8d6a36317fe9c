"""Execution of one program with numpy, in float64 or float32."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.sizes import size_symbols, solve_sizes, with_sizes
from rewright.ops.base import Array, Real, TensorOperator, array_dtype, static


def run(graph: Graph, inputs: Mapping[str, Array], precision: Real = np.float64) -> dict[str, Array]:
    """The outputs of a program by name.

    Every float tensor is computed in ``precision`` whatever its declared dtype; integers keep their width. Size
    symbols get their numbers from the shapes of the inputs.

    Raises RewrightError for a missing or unknown input, an input of another shape, sizes that the inputs do not
    determine, and what an operator cannot execute (the message names operator and source line).
    """
    values = run_nodes(graph, inputs, graph.outputs.values(), precision)
    return {name: values[position] for name, position in graph.outputs.items()}


def run_nodes(
    graph: Graph,
    inputs: Mapping[str, Array],
    positions: Collection[int] | None = None,
    precision: Real = np.float64,
) -> dict[int, Array]:
    """The values of some nodes (all, where none are named) by position; see :func:`run`."""
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    bound = bind_sizes(graph, arrays)
    wanted = frozenset(range(len(graph)) if positions is None else positions)
    values: dict[int, Array] = {}
    waiting = [0] * len(bound)
    for node in bound.nodes:
        for operand in node.operands:
            waiting[operand] += 1
    for position, node in enumerate(bound.nodes):
        values[position] = _evaluate(node, arrays, values, precision)
        for operand in node.operands:
            waiting[operand] -= 1
            if not waiting[operand] and operand not in wanted:
                values.pop(operand, None)
    return {position: values[position] for position in sorted(wanted)}


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


def _evaluate(node: Node, inputs: Mapping[str, Array], values: Mapping[int, Array], precision: Real) -> Array:
    if isinstance(node.op, ops.Input):
        return input_value(node.op, inputs, lambda value, op: value.astype(array_dtype(op.tensor.dtype, precision)))
    if not isinstance(node.op, TensorOperator):
        raise RewrightError(f"{node.op.name} at {node.span} has no execution; use the operators of rewright.ops")
    try:
        return node.op.execute([values[p] for p in node.operands], precision)
    except RewrightError as error:
        raise RewrightError(f"{node.op.name} at {node.span}: {error}") from None


def input_value(op: ops.Input, inputs: Mapping[str, Array], convert: Callable[[Array, ops.Input], Array]) -> Array:
    """The array given for an input, converted; raises RewrightError where it is missing or of another shape."""
    if op.label not in inputs:
        raise RewrightError(f"input {op.label!r} has no value; give a tensor of type {op.tensor} under that name")
    value = np.asarray(inputs[op.label])
    if value.shape != static(op.name, op.tensor.shape):
        raise RewrightError(
            f"input {op.label!r} must be a tensor of type {op.tensor} and has shape {list(value.shape)}"
        )
    return convert(value, op)
