"""Random inputs: floats at large, integers over their whole range with every boundary value among them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ir.types import DType
from rewright.ops.base import Array, static
from rewright.proof.bounds import SHORT, whole
from rewright.refine.twin.values import Counting, bound, value_classes

MOST_TRIALS = 64
UNBOUNDED = 8
"""Integers that index nothing are drawn below this."""


@dataclass(frozen=True)
class IntegerRange:
    """Values for one integer input: everything in ``[low, high)``, and those that must occur."""

    high: int
    special: tuple[int, ...]
    low: int = 0


@dataclass(frozen=True)
class Draws:
    """Everything that is needed to fill the inputs of a sequential program at random."""

    inputs: dict[str, ops.Input]
    integers: dict[str, IntegerRange]
    scale: float = 1.0
    """What all floats are multiplied by."""

    @property
    def trials(self) -> int:
        """How many draws it takes until every special value of every integer input has occurred twice.

        Twice, because one value may hide a difference: the logit of a token that is the largest of its row, say.
        """
        needed = [1]
        for name, known in self.integers.items():
            count = math.prod(static("input", self.inputs[name].tensor.shape))
            needed.append(-(-len(known.special) // count) if count else 1)
        return min(2 * max(needed), MOST_TRIALS)

    def draw(self, seed: int, trial: int, positive: bool = False) -> dict[str, Array]:
        """The inputs of one trial, by name; ``positive`` for programs that take roots and logarithms of inputs."""
        generator = np.random.default_rng((seed, trial))
        found: dict[str, Array] = {}
        for name, op in self.inputs.items():
            shape = static(op.name, op.tensor.shape)
            if op.tensor.dtype.is_float:
                found[name] = self.scale * _floats(shape, generator, positive)
            elif op.tensor.dtype is DType.BOOL:
                found[name] = np.ones(shape, np.bool_) if positive else generator.random(shape) < 0.75
            else:
                found[name] = _integers(shape, self.integers[name], generator, trial)
        return found


def _floats(shape: tuple[int, ...], generator: np.random.Generator, positive: bool) -> Array:
    values = generator.standard_normal(shape)
    return np.abs(values) + 0.1 if positive else 0.7 * values


def _integers(shape: tuple[int, ...], known: IntegerRange, generator: np.random.Generator, trial: int) -> Array:
    values = generator.integers(known.low, known.high, math.prod(shape))
    start = trial * values.size % max(len(known.special), 1)
    chosen = (known.special[start:] + known.special[:start])[: values.size]
    values[: len(chosen)] = chosen
    generator.shuffle(values)
    return values.reshape(shape)


def plan_draws(sequential: Graph, program: RankProgram) -> Draws:
    """What to draw for each input of the sequential program.

    Special values are the ends of the range, the boundaries of the shards of every axis that the input may
    index, integer constants of the rank programs, and their neighbours: a bound that is off by one shows at these
    values only.
    """
    classes = value_classes(sequential)
    constants = sorted({value for graph in program.graphs for value in _integer_constants(graph)})
    inputs: dict[str, ops.Input] = {}
    integers: dict[str, IntegerRange] = {}
    for name, position in sequential.inputs.items():
        op = sequential.nodes[position].op
        assert isinstance(op, ops.Input)
        inputs[name] = op
        if op.tensor.dtype.is_integer:
            integers[name] = _range(sequential, program, classes.of(position), constants, op.tensor.dtype)
    return Draws(inputs, integers)


def _range(
    sequential: Graph, program: RankProgram, counting: Counting, constants: list[int], dtype: DType
) -> IntegerRange:
    high = bound(sequential, counting)
    if counting.digits and dtype in SHORT and not counting.uses:
        low, high = whole(dtype)
        return IntegerRange(high + 1, (), low)
    if not isinstance(high, int) or high < 1:
        flags = counting.compared and counting.compared <= {0, 1}
        return IntegerRange(2 if flags or not counting.compared else UNBOUNDED, ())
    near: dict[int, None] = dict.fromkeys((0, high - 1))
    for boundary in [*_run_boundaries(sequential, program, high), *constants]:
        near.update(dict.fromkeys(v for v in (boundary - 1, boundary, boundary + 1) if 0 <= v < high))
    near.update(dict.fromkeys(value for value in sorted(counting.compared) if value < 0))
    return IntegerRange(high, tuple(near))


def _run_boundaries(sequential: Graph, program: RankProgram, size: int) -> list[int]:
    found: set[int] = set()
    for name, placement in program.inputs.items():
        if name not in sequential.inputs:
            continue
        shape: Shape = sequential.nodes[sequential.inputs[name]].type.shape
        for axis in (axis for axis, length in enumerate(shape) if length == size):
            for own in placement.runs:
                found.update(start for start, _ in own[axis] if isinstance(start, int))
    return sorted(found)


def _integer_constants(graph: Graph) -> set[int]:
    return {
        int(node.op.values[0])
        for node in graph.nodes
        if isinstance(node.op, ops.Constant) and node.type.dtype.is_integer and len(node.op.values) == 1
    }
