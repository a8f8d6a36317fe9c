"""Execution of programs with numpy: one graph, or the graphs of all ranks in lock step in one process."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rewright import ops
from rewright.interp.collectives import simulate
from rewright.interp.meetings import Meeting, Schedule, Step, match_collectives
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ops.base import Array, Real, TensorOperator, array_dtype, static


class ExecutionFailed(RewrightError):
    """An operator that could not be executed on the values that it met, an index out of range for example."""

    def __init__(self, message: str, rank: int, position: int) -> None:
        super().__init__(message)
        self.rank = rank
        self.position = position


@dataclass(frozen=True)
class Execution:
    """Outputs by name, and the values of the nodes that were asked for, by position."""

    outputs: dict[str, Array]
    values: dict[int, Array] = field(default_factory=dict[int, Array])


def run(graph: Graph, inputs: Mapping[str, Array], real: Real = np.float64, keep: Collection[int] = ()) -> Execution:
    """Execute one program without collectives; ``keep`` names the nodes whose values are returned.

    Raises RewrightError for a missing input, an input of the wrong shape, and what an operator cannot execute.
    """
    return run_ranks((graph,), (inputs,), real, (keep,))[0]


def run_ranks(
    graphs: Sequence[Graph],
    inputs: Sequence[Mapping[str, Array]],
    real: Real = np.float64,
    keep: Sequence[Collection[int]] | None = None,
    schedule: Schedule | None = None,
) -> list[Execution]:
    """Execute the programs of all ranks, with collectives simulated over their groups.

    Args:
        graphs: the program of every rank.
        inputs: for every rank its tensors by input name; floats are computed in ``real``.
        keep: for every rank the positions of the nodes whose values are returned besides the outputs.
        schedule: the order from :func:`match_collectives`, where it is known already.

    Raises CollectiveMismatch where ranks do not meet, RewrightError for inputs that are missing or of the wrong
    shape and for operators that cannot be executed; the message names rank and source line.
    """
    kept = [frozenset(positions) for positions in keep] if keep is not None else [frozenset[int]()] * len(graphs)
    machines = [_Machine(rank, g, i, real, k) for rank, (g, i, k) in enumerate(zip(graphs, inputs, kept, strict=True))]
    for step in match_collectives(graphs) if schedule is None else schedule:
        if isinstance(step, Step):
            machines[step.rank].compute(step.position)
        else:
            _meet(machines, step)
    return [machine.result() for machine in machines]


class _Machine:
    """The state of one rank: values of nodes that are still needed."""

    def __init__(self, rank: int, graph: Graph, inputs: Mapping[str, Array], real: Real, keep: frozenset[int]) -> None:
        self.rank, self.graph, self.inputs, self.real = rank, graph, inputs, real
        self.values: dict[int, Array] = {}
        self.keep = keep
        self.pinned = keep | frozenset(graph.outputs.values())
        self.readers = [0] * len(graph.nodes)
        for node in graph.nodes:
            for operand in node.operands:
                self.readers[operand] += 1

    def compute(self, position: int) -> None:
        node = self.graph.nodes[position]
        if isinstance(node.op, ops.Input):
            self.store(position, self._input(node.op))
        elif isinstance(node.op, ops.Send):
            self.values[position] = self.values[node.operands[0]]
            # The message is read once more when it is delivered.
            self.readers[position] += 1
            self._release(node)
        else:
            self.store(position, self._execute(position, node))

    def _execute(self, position: int, node: Node) -> Array:
        if not isinstance(node.op, TensorOperator):
            raise RewrightError(f"{node.op.name} at {node.span} has no execution; use the operators of rewright.ops")
        try:
            return node.op.execute([self.values[p] for p in node.operands], self.real)
        except RewrightError as error:
            message = f"rank {self.rank}, {node.op.name} at {node.span}: {error}"
            raise ExecutionFailed(message, self.rank, position) from None

    def _input(self, op: ops.Input) -> Array:
        if op.label not in self.inputs:
            raise RewrightError(f"rank {self.rank} has no value for input {op.label!r}; give one under that name")
        value = np.asarray(self.inputs[op.label]).astype(array_dtype(op.tensor.dtype, self.real))
        if value.shape != static(op.name, op.tensor.shape):
            raise RewrightError(
                f"rank {self.rank}, input {op.label!r} is {list(value.shape)} and must be {shape_text(op.tensor.shape)}"
            )
        return value

    def store(self, position: int, value: Array) -> None:
        """Give a node its value and forget the operands that nothing else reads."""
        if self.readers[position] or position in self.pinned:
            self.values[position] = value
        self._release(self.graph.nodes[position])

    def _release(self, node: Node) -> None:
        for operand in node.operands:
            self.readers[operand] -= 1
            self.forget(operand)

    def forget(self, position: int) -> None:
        """Drop a value that has no reader left."""
        if self.readers[position] == 0 and position not in self.pinned:
            self.values.pop(position, None)

    def result(self) -> Execution:
        outputs = {name: self.values[position] for name, position in self.graph.outputs.items()}
        return Execution(outputs, {position: self.values[position] for position in sorted(self.keep)})


def _meet(machines: Sequence[_Machine], meeting: Meeting) -> None:
    first_rank, first_position = meeting.nodes[0]
    first = machines[first_rank]
    if isinstance(first.graph.nodes[first_position].op, ops.Send):
        rank, position = meeting.nodes[1]
        machines[rank].store(position, first.values[first_position])
        first.readers[first_position] -= 1
        first.forget(first_position)
        return
    nodes = [machines[rank].graph.nodes[position] for rank, position in meeting.nodes]
    operands = [machines[rank].values[node.operands[0]] for (rank, _), node in zip(meeting.nodes, nodes, strict=True)]
    results = simulate(nodes, [rank for rank, _ in meeting.nodes], operands)
    for (rank, position), value in zip(meeting.nodes, results, strict=True):
        machines[rank].store(position, value)


def shape_text(shape: Shape) -> str:
    """A shape for messages: ``[2, 8]``."""
    return "[" + ", ".join(str(size) for size in shape) + "]"
