"""The evaluation of one program, node by node, in any number system: the one loop behind every execution."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.types import TensorType
from rewright.ops.base import Array, Real, TensorOperator, array_dtype, static
from rewright.ops.functions.bytes import round_to_byte


class Semantics(Protocol):
    """What elements are, and how operators compute them."""

    def read(self, value: Array, tensor: TensorType) -> Array:
        """An array that was given for an input of a type, as elements."""
        ...

    def apply(self, op: TensorOperator, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
        """The result of an operator; raises RewrightError where it cannot be computed."""
        ...


@dataclass(frozen=True)
class Floating:
    """numpy arrays: every float tensor in ``real`` whatever its declared dtype, integers in their own width."""

    real: Real = np.float64

    def read(self, value: Array, tensor: TensorType) -> Array:
        """The array in its execution dtype."""
        return value.astype(array_dtype(tensor.dtype, self.real))

    def apply(self, op: TensorOperator, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
        """The operator's vectorised execution."""
        return op.execute(operands, self.real)


Settle = Callable[[int, Array], Array]
"""What becomes of the value of a node, by its position, before anything reads it."""


class ExecutionFailed(RewrightError):
    """An operator that could not be executed on the values that it met, an index out of range for example."""

    def __init__(self, message: str, rank: int, position: int) -> None:
        super().__init__(message)
        self.rank = rank
        self.position = position


class Machine:
    """One program under execution: the values of its nodes that are still needed.

    ``keep`` names nodes whose values stay besides those of the outputs; ``rank`` is what messages call the program.
    ``settle`` changes values before they are read.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Array],
        semantics: Semantics,
        keep: Collection[int] = (),
        rank: int | None = None,
        settle: Settle | None = None,
    ) -> None:
        self.graph, self.inputs, self.semantics = graph, inputs, semantics
        self.keep = frozenset(keep)
        self.values: dict[int, Array] = {}
        self._pinned = self.keep | frozenset(graph.outputs.values())
        self._rank, self._settle = rank, settle
        self._readers = [0] * len(graph.nodes)
        for node in graph.nodes:
            for operand in node.operands:
                self._readers[operand] += 1

    def run(self) -> None:
        """Evaluate all nodes; the program must be one without collectives."""
        for position in range(len(self.graph.nodes)):
            self.compute(position)

    def compute(self, position: int) -> None:
        """Evaluate one node, whose operands have been; raises RewrightError where it cannot be."""
        node = self.graph.nodes[position]
        self.store(position, self._input(node.op) if isinstance(node.op, ops.Input) else self._apply(position, node))

    def _apply(self, position: int, node: Node) -> Array:
        if not isinstance(node.op, TensorOperator):
            raise RewrightError(f"{node.op.name} at {node.span} has no execution; use the operators of rewright.ops")
        types = [self.graph.nodes[operand].type for operand in node.operands]
        try:
            return self.semantics.apply(node.op, types, [self.values[operand] for operand in node.operands])
        except RewrightError as error:
            message = f"{self._who()}{node.op.name} at {node.span}: {error}"
            raise ExecutionFailed(message, self._rank or 0, position) from None

    def _input(self, op: ops.Input) -> Array:
        if op.label not in self.inputs:
            raise RewrightError(
                f"{self._who()}input {op.label!r} has no value; give a tensor of type {op.tensor} under that name"
            )
        value = np.asarray(self.inputs[op.label])
        if value.shape != static(op.name, op.tensor.shape):
            raise RewrightError(
                f"{self._who()}input {op.label!r} must be a tensor of type {op.tensor} and has shape "
                f"{list(value.shape)}"
            )
        if op.tensor.dtype.is_byte_float:  # of which other numbers are none
            value = round_to_byte(op.tensor.dtype, value.astype(np.float64))
        return self.semantics.read(value, op.tensor)

    def _who(self) -> str:
        return "" if self._rank is None else f"rank {self._rank}, "

    def store(self, position: int, value: Array) -> None:
        """Give a node its value and forget the operands that nothing else reads."""
        if self._settle is not None:
            value = self._settle(position, value)
        if self._readers[position] or position in self._pinned:
            self.values[position] = value
        for operand in self.graph.nodes[position].operands:
            self.release(operand)

    def hold(self, position: int) -> None:
        """Count one more reader of a value."""
        self._readers[position] += 1

    def release(self, position: int) -> None:
        """Count one reader less; a value without readers is forgotten."""
        self._readers[position] -= 1
        if not self._readers[position] and position not in self._pinned:
            self.values.pop(position, None)

    def outputs(self) -> dict[str, Array]:
        """The values of the outputs by name."""
        return {name: self.values[position] for name, position in self.graph.outputs.items()}

    def kept(self) -> dict[int, Array]:
        """The values of the nodes to keep, by position."""
        return {position: self.values[position] for position in sorted(self.keep)}
