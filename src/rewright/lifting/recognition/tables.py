"""Constants as values: numbers in steps along an axis, several such one after the other, or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from rewright import ops
from rewright.claims.language import Addend, Table, View
from rewright.ir.dims import Shape
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.recognition.quotients import place
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.index import identity
from rewright.lifting.terms.store import ONE
from rewright.lifting.terms.value import Pieces, Value, variables_of

_MOST_RUNS = 64
"""A table of more runs of numbers stays one."""

Scalar = float | int | bool


def constant(algebra: Algebra, values: Sequence[Scalar], shape: Shape) -> Value:
    """A constant tensor, of one value or of all of them in row-major order.

    Places that a rank was given as numbers, as those of head and tail of a sequence, are runs of the places that the
    sequential program counts, unless it has that very table.
    """
    dims = tuple((n,) for n in shape)
    if len(values) == 1:
        return algebra.constant(dims, values[0])
    sizes = tuple(int(n) for n in shape if isinstance(n, int))
    axis, numbers = _line(values, sizes)
    runs = [] if numbers is None else _runs(numbers)
    if len(runs) == 1:
        return _run(algebra, shape, axis, *runs[0])
    term = algebra.terms.table(sizes, tuple(values))
    if runs and not algebra.sequential and term >= algebra.horizon and _are_parts(runs):
        return Pieces(axis, 1, tuple(_run(algebra, shape, axis, *run) for run in runs))
    return View(dims, (Addend(ONE, term, identity(len(sizes))),))


def numbers(algebra: Algebra, value: Value) -> tuple[int, ...] | None:
    """The whole numbers that a constant has along its one axis longer than one; None for other values."""
    if isinstance(value, Pieces):
        parts = [numbers(algebra, part) for part in value.parts]
        known = [n for part in parts if part is not None for n in part]
        one_axis = value.outer == 1 and all(n == 1 for axis, n in enumerate(value.shape) if axis != value.axis)
        return tuple(known) if one_axis and None not in parts else None
    sizes = [n for n in value.shape if n != 1]
    if len(sizes) > 1 or not all(isinstance(n, int) for n in sizes) or any(len(digits) > 1 for digits in value.dims):
        return None
    count = int(str(sizes[0])) if sizes else 1
    found = place(algebra, value)
    if found is None:
        return _entries(algebra, value, count)
    # Along the other axes there is place nought only, with whatever step that is read.
    long = {v for names, n in zip(variables_of(value.dims), value.shape, strict=True) if n != 1 for v in names}
    step = sum(int(str(s)) for v, s in found[1] if v in long)
    return tuple(int(str(found[0])) + step * k for k in range(count))


def _entries(algebra: Algebra, view: View, count: int) -> tuple[int, ...] | None:
    """The numbers of a whole table."""
    addend = view.addends[0] if len(view.addends) == 1 else None
    content = None if addend is None or addend.parts or addend.coefficient != 1 else algebra.terms.see(addend.term)
    if addend is None or not isinstance(content, Table) or len(content.values) != count:
        return None
    is_whole = all(index == (0, ((k, 1),)) for k, index in enumerate(addend.access))
    integral = all(isinstance(v, int) for v in content.values)
    return tuple(int(str(v)) for v in content.values) if is_whole and integral else None


def _line(values: Sequence[Scalar], sizes: Sequence[int]) -> tuple[int, list[int] | None]:
    """The axis along which alone a table of whole numbers varies, and these; None where there is none."""
    if 0 in sizes or any(v != v or v in (float("inf"), float("-inf")) or v != int(v) for v in values):
        return 0, None
    inner = len(values)
    for axis, size in enumerate(sizes):
        inner //= size
        numbers = [int(v) for v in values[: size * inner : inner]]
        if size > 1 and all(int(v) == numbers[k // inner % size] for k, v in enumerate(values)):
            return axis, numbers
    return 0, None


def _runs(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Start, step and length: of all the numbers, where these are in equal steps, else of those in steps of one."""
    step = numbers[1] - numbers[0]
    if all(b - a == step for a, b in zip(numbers, numbers[1:], strict=False)):
        return [(numbers[0], step, len(numbers))]
    starts = [k for k, n in enumerate(numbers) if k == 0 or n != numbers[k - 1] + 1]
    return [(numbers[a], 1, b - a) for a, b in zip(starts, [*starts[1:], len(numbers)], strict=True)]


def _are_parts(runs: Sequence[tuple[int, int, int]]) -> bool:
    """Whether runs look like parts of one size, of which some are neighbours."""
    shortest = min(length for _, _, length in runs)
    return len(runs) <= _MOST_RUNS and shortest > 1 and all(length % shortest == 0 for _, _, length in runs)


def _run(algebra: Algebra, shape: Shape, axis: int, start: int, step: int, length: int) -> View:
    dims = tuple((length,) if k == axis else (n,) for k, n in enumerate(shape))
    index = Addend(Fraction(step), algebra.terms.index, ((0, ((axis, 1),)),))
    return algebra.settle(dims, [index, Addend(Fraction(start), algebra.terms.one, ())])


def _constant(
    algebra: Algebra, op: ops.Constant, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    return constant(algebra, op.values, result.shape)


def _iota(
    algebra: Algebra, op: ops.Iota, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    access = ((0, ((op.dimension, 1),)),)
    return View(tuple((n,) for n in result.shape), (Addend(ONE, algebra.terms.index, access),))


LAWS: Mapping[type[Operator], Callable[..., Value]] = {ops.Constant: _constant, ops.Iota: _iota}
