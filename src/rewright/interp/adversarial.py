"""Inputs that programs are run on: random ones, and those that their own constants and operators make interesting.

Every draw is of one kind. ``USUAL`` numbers tell most programs apart and say where they part. The other kinds are for
what has measure zero among them: the constants of the programs and their neighbours, ties and halves, zeros, rows of
a mask without a true element, labels that are all ignored, integers that use all digits of their type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from rewright import ops
from rewright.interp.counting import Counting, ValueClasses
from rewright.interp.drawn import random_numbers
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement
from rewright.ir.types import DType
from rewright.ir.unknowns import unknowns
from rewright.ops.base import Array, integer_limits, static

MOST_TRIALS = 64
UNBOUNDED = 8
"""Integers that index nothing are drawn below this among usual numbers."""
MOST_CONSTANTS = 64
"""The most constants of the programs that are tried."""
_HUGE = 1e6
"""Larger constants stand for infinity."""
_LONG = 1 << 40
"""Integers of 64 bits are drawn below this: arithmetic on counts and ids does not reach the end of the type."""
_STEP = 2.0**-23


class Kind(Enum):
    """What sort of numbers a draw is made of."""

    USUAL = "usual"
    """Normal floats; integers over their range, with boundary values among them."""
    CONSTANTS = "constants"
    """The constants of the programs, their neighbours and their opposites, among usual numbers."""
    TIES = "ties"
    """Few different halves and whole numbers, so that neighbours are equal; masks that are true everywhere."""
    ZEROS = "zeros"
    """Zeros, half of them in whole rows; the ends of the range of indices; masks that are false everywhere."""
    ROWS = "rows"
    """Masks and labels with rows, or parts of rows, in which nothing counts."""
    LARGE = "large"
    """Large and small floats side by side; integers that use all digits of their type."""
    IDS = "ids"
    """Usual numbers, and integers that no table bounds up to what short floats do not hold, flags among them."""
    INFINITE = "infinite"
    """Usual numbers, some of them infinite, and one row of nothing but minus infinity."""


_IDS = 1 << 18
"""Ids of tokens and positions are drawn below this."""
SPECIAL = (Kind.ROWS, Kind.CONSTANTS, Kind.IDS, Kind.TIES, Kind.LARGE, Kind.ZEROS)
"""The kinds of finite numbers besides the usual one, those first that tell more programs apart."""


@dataclass(frozen=True)
class IntegerRange:
    """Values for one integer input: everything in ``[low, high)``, and those that must occur."""

    high: int
    special: tuple[int, ...]
    low: int = 0
    ends: tuple[int, int] | None = None
    """The range of large integers, where nothing but the type bounds them."""
    flags: bool = False
    """Whether nothing that programs do with them speaks for more than zeros and ones."""
    ignored: tuple[int, ...] = ()
    """Values that the programs test for: labels that do not count, the number of padding."""


@dataclass(frozen=True)
class Draws:
    """Everything that is needed to fill the inputs of programs."""

    inputs: dict[str, ops.Input]
    integers: dict[str, IntegerRange]
    scale: float = 1.0
    """What all floats are multiplied by."""
    constants: tuple[float, ...] = ()
    """Floats that the programs hold."""
    given: Mapping[str, Array] = field(default_factory=dict[str, Array], repr=False)
    """Values that are known, and that are taken instead of random ones."""
    random: Mapping[str, str] = field(default_factory=dict[str, str])
    """The inputs that programs draw themselves, with what they draw."""

    @property
    def trials(self) -> int:
        """How many usual draws it takes until every special value of every integer input has occurred twice.

        Twice, because one value may hide a difference: the logit of a token that is the largest of its row, say.
        """
        needed = [1]
        for name, known in self.integers.items():
            count = math.prod(static("input", self.inputs[name].tensor.shape))
            needed.append(-(-len(known.special) // count) if count else 1)
        return min(2 * max(needed), MOST_TRIALS)

    def draw(self, seed: int, trial: int, positive: bool = False, kind: Kind = Kind.USUAL) -> dict[str, Array]:
        """The inputs of one trial, by name; ``positive`` for programs that take roots and logarithms of inputs."""
        order = list(Kind).index(kind)
        generator = np.random.default_rng((seed, trial, order) if order else (seed, trial))
        found: dict[str, Array] = {}
        for name, op in self.inputs.items():
            shape = static(op.name, op.tensor.shape)
            edges = kind is not Kind.USUAL and not positive
            drawn = random_numbers(self.random.get(name, ""), shape, generator, self.constants, edges=edges)
            if drawn is not None:
                found[name] = drawn
            elif op.tensor.dtype.is_float:
                value = self.scale * _floats(shape, generator, kind, self.constants, trial)
                found[name] = np.asarray(np.abs(value) + 0.1 if positive else value)
            elif op.tensor.dtype is DType.BOOL:
                found[name] = np.ones(shape, np.bool_) if positive else _flags(shape, generator, kind, trial)
            else:
                found[name] = _integers(shape, self.integers[name], generator, trial, kind)
        return {**found, **{name: value for name, value in self.given.items() if name in found}}


def plan_draws(
    reference: Graph, others: Sequence[Graph] = (), placements: Mapping[str, Placement] | None = None
) -> Draws:
    """What to draw for each input of a program, so that it differs from other programs of the same inputs.

    Special values are the ends of the range, the boundaries of the shards of every axis that the input may
    index, constants of all programs, and their neighbours: a bound that is off by one shows at these values only.

    Args:
        reference: the program whose inputs are drawn.
        others: what it is compared with.
        placements: how ranks hold the inputs, where the other programs are those of ranks.
    """
    classes = ValueClasses(reference)
    whole = sorted({int(value) for graph in (reference, *others) for value in _constants(graph, floats=False)})
    inputs: dict[str, ops.Input] = {}
    integers: dict[str, IntegerRange] = {}
    for name, position in reference.inputs.items():
        op = reference.nodes[position].op
        assert isinstance(op, ops.Input)
        inputs[name] = op
        if op.tensor.dtype.is_integer:
            counting = classes.of(position)
            high = counting.bound()
            starts = _boundaries(reference, placements or {}, high) if isinstance(high, int) else []
            dtypes = [
                graph.nodes[graph.inputs[name]].type.dtype for graph in (reference, *others) if name in graph.inputs
            ]
            ends = _shared_limits(dtypes)
            integers[name] = _range(high, counting, starts, whole, ends)
    floats = {value for graph in (reference, *others) for value in _constants(graph, floats=True)}
    constants = tuple(sorted(floats)[:MOST_CONSTANTS])
    return Draws(inputs, integers, constants=constants, random=unknowns(reference))


# --- floats and flags


def _floats(
    shape: tuple[int, ...], generator: np.random.Generator, kind: Kind, constants: Sequence[float], trial: int
) -> Array:
    usual = 0.7 * generator.standard_normal(shape)
    if kind is Kind.CONSTANTS:
        near = neighbours(constants)
        return np.where(generator.random(shape) < 0.5, generator.choice(near, shape), usual)
    if kind is Kind.TIES:
        return generator.integers(-5, 6, shape) / 2
    if kind is Kind.ZEROS:
        return np.where(generator.random(shape) < 0.5, 0.0, usual) * _rows(shape, generator, trial)
    if kind is Kind.LARGE:
        return usual * np.exp2(generator.integers(-12, 7, shape))
    return _with_infinities(usual, generator) if kind is Kind.INFINITE else usual


def _with_infinities(usual: Array, generator: np.random.Generator) -> Array:
    """More elements infinite below than above: that is how masks are written."""
    chosen = generator.random(usual.shape)
    found = np.where(chosen < 0.15, -np.inf, np.where(chosen > 0.97, np.inf, usual))
    if found.ndim > 1 and found.size:
        found.reshape(-1, found.shape[-1])[generator.integers(found.size // found.shape[-1])] = -np.inf
    return found


def neighbours(constants: Sequence[float]) -> tuple[float, ...]:
    """Constants with what is a step of single precision, a half and a whole above and below them, and the opposites."""
    found: dict[float, None] = dict.fromkeys((0.0, 0.5, -0.5, 1.0, -1.0))
    for c in constants:
        near = (c, c * (1 + _STEP), c * (1 - _STEP), c + 0.5, c - 0.5, c + 1, c - 1)
        found.update(dict.fromkeys((*near, *(-x for x in near))))
    return tuple(found)


def _flags(shape: tuple[int, ...], generator: np.random.Generator, kind: Kind, trial: int) -> Array:
    if kind is Kind.TIES:
        return np.ones(shape, np.bool_)
    if kind is Kind.ZEROS:
        return np.zeros(shape, np.bool_)
    if kind is Kind.ROWS:
        return _rows(shape, generator, trial)
    return generator.random(shape) < 0.75


def _rows(shape: tuple[int, ...], generator: np.random.Generator, trial: int) -> Array:
    """True but for parts where nothing counts: by turns a row with the start of another, and halves of an axis.

    Padding is put at the start of a row, and half of an axis is all that one of two ranks holds of it.
    """
    found = np.ones(shape, np.bool_)
    if not found.size:
        return found
    long = [axis for axis, size in enumerate(shape) if size > 1]
    if not long:
        return np.full(shape, trial % 2 == 1)
    if len(long) > 1 and trial % 3 == 0:
        rows = found.reshape(-1, shape[-1])
        rows[int(generator.integers(0, len(rows)))] = False
        rows[int(generator.integers(0, len(rows))), : -(-shape[-1] // 2)] = False
        return found
    half = [slice(None)] * len(shape)
    axis = long[trial // 3 % len(long)]
    middle = shape[axis] // 2
    half[axis] = slice(0, middle) if trial % 3 == 1 else slice(middle, None)
    found[tuple(half)] = False
    return found


# --- integers


def _integers(
    shape: tuple[int, ...], known: IntegerRange, generator: np.random.Generator, trial: int, kind: Kind
) -> Array:
    if kind is Kind.LARGE and known.ends is not None and not known.flags:
        return _digits(shape, known.ends, generator)
    if kind is Kind.IDS and known.ends is not None:
        return _digits(shape, (max(known.ends[0], 0), min(known.ends[1], _IDS)), generator)
    values = generator.integers(known.low, known.high, math.prod(shape))
    start = trial * values.size % max(len(known.special), 1)
    chosen = (known.special[start:] + known.special[:start])[: values.size]
    values[: len(chosen)] = chosen
    generator.shuffle(values)
    values = values.reshape(shape)
    if kind is Kind.TIES:
        few = np.concatenate([values.reshape(-1)[:2], np.array((known.high - 1,))])
        return generator.choice(few, shape)
    if kind is Kind.ZEROS:
        return np.where(generator.random(shape) < 0.5, known.low, known.high - 1)
    if kind is Kind.ROWS:
        nothing = generator.choice(known.ignored) if known.ignored else max(known.low, 0)
        return np.where(_rows(shape, generator, trial), values, nothing)
    return values


def _digits(shape: tuple[int, ...], ends: tuple[int, int], generator: np.random.Generator) -> Array:
    """Integers of every length up to the largest, and what floats of few digits hold no more."""
    low, high = ends
    longest = max(high.bit_length(), 1)
    size = np.exp2(generator.uniform(0, longest, shape))
    signs = np.where(generator.random(shape) < 0.5, -1.0, 1.0) if low < 0 else np.ones(shape)
    values = np.clip(signs * size, float(low), float(high)).astype(np.int64)
    steps = (low, high, -1, *(2**k + d for k in (7, 8, 11, 15, 16, 24, 31) for d in (-1, 0, 1)))
    special = np.array([v for v in steps if low <= v <= high and v < 1 << 63], np.int64)
    return np.where(generator.random(shape) < 0.25, generator.choice(special, shape), values)


def _range(
    high: object, counting: Counting, boundaries: Sequence[int], constants: Sequence[int], ends: tuple[int, int]
) -> IntegerRange:
    tested = tuple(sorted(counting.compared))
    if counting.digits and not counting.indexed:
        return IntegerRange(ends[1] + 1, (), ends[0], ends, ignored=tested)
    if not isinstance(high, int) or high < 1:
        flags = not counting.divided and counting.compared <= {0, 1}
        return IntegerRange(2 if flags else UNBOUNDED, (), 0, ends, flags and not counting.scaled, tested)
    near: dict[int, None] = dict.fromkeys((0, high - 1))
    for boundary in [*boundaries, *constants]:
        near.update(dict.fromkeys(v for v in (boundary - 1, boundary, boundary + 1) if 0 <= v < high))
    near.update(dict.fromkeys(value for value in tested if value < 0))
    return IntegerRange(high, tuple(near), ignored=tuple(v for v in tested if v < high))


def _shared_limits(dtypes: Sequence[DType]) -> tuple[int, int]:
    """The integers that all types hold; programs may read one tensor in different ones."""
    limits = [integer_limits(dtype) for dtype in dtypes if not dtype.is_float]
    return max(-_LONG, *(low for low, _ in limits)), min(_LONG, *(high for _, high in limits))


def _boundaries(reference: Graph, placements: Mapping[str, Placement], size: int) -> list[int]:
    """Where the shards of every axis of a size begin."""
    found: set[int] = set()
    for name, placement in placements.items():
        if name not in reference.inputs:
            continue
        shape: Shape = reference.nodes[reference.inputs[name]].type.shape
        for axis in (axis for axis, length in enumerate(shape) if length == size):
            for own in placement.runs:
                found.update(start for start, _ in own[axis] if isinstance(start, int))
    return sorted(found)


def _constants(graph: Graph, *, floats: bool) -> set[float]:
    """The numbers that fill constants of a program; floats of a usual size."""
    kinds = [(ops.splat(node.op), node.type.dtype) for node in graph.nodes]
    found = {value for value, dtype in kinds if value is not None and (dtype.is_float if floats else dtype.is_integer)}
    return {value for value in found if not floats or abs(value) <= _HUGE}
