"""Functions that stay calls: sorts and random numbers of Triton's own library, and what is printed for a function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.compiling import PRINTED
from rewright.frontends.triton.meaning.operations.bits import with_sign_of, without_sign
from rewright.frontends.triton.meaning.values import Data, Value
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.ops.reference import building as rb
from rewright.ops.reference.filled_folds import sorted_filled

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_Meaning = Callable[["Reader", Operation, list[str]], tuple[Value, ...]]


def library_call(reader: Reader, op: Operation, name: str) -> tuple[Value, ...] | None:
    """The results of a call of a function of the library; None for other functions.

    Its name says which constants it was given: ``sort_impl__fp32S16S_cNone_cNone_cTrue``.
    """
    if name.startswith(f"{PRINTED}."):
        return _printed(reader, op, name.removeprefix(f"{PRINTED}.").partition("__")[0])
    found = re.fullmatch(r"triton\.language\.(?:standard|random)\.(\w+?)__.*", name)
    meaning = _FUNCTIONS.get(found.group(1)) if found else None
    return None if meaning is None else meaning(reader, op, re.findall(r"_c(\w+?)(?=_c|$)", name))


def _sorted(reader: Reader, op: Operation, constants: list[str]) -> tuple[Value, ...]:
    """A block sorted along its last axis, or the first elements of that."""
    count, _, descending = constants
    data, b = reader.writer.data(reader.operands(op)[0]), reader.writer.b
    axis = b.type(data.position).rank - 1
    sort = ops.Sort(axis, descending in ("True", "1"), "values")
    filled = sorted_filled(b, sort, data.position)  # of numbers, which Triton's sort is defined for
    position = b.add(sort, data.position) if filled is None else filled
    if count == "None":
        return (Data(position, data.axes, data.shape),)
    position = rb.slice_axis(b, position, axis, 0, int(count))
    return (Data(position, data.axes, (*data.shape[:-1], int(count))),)


def _printed(reader: Reader, op: Operation, name: str) -> tuple[Value, ...]:
    """What a function that is printed for another one stands for."""
    record, error = _PRINTED[name]
    if error:
        line = reader.writer.b.span.line
        reader.assumptions[f"line {line} has an approximation of {record}, which is off by {error} at most"] = None
    return (reader.writer.apply(ops.REGISTRY[record](), *map(reader.writer.data, reader.operands(op))),)


_PRINTED = {
    code.text.partition("(")[0].rstrip("_"): (record.name, code.error)
    for record in FUNCTIONS.values()
    if (code := record.code.triton) is not None and code.error is not None
}
"""By the names of what is printed, the functions that it stands for, and what it is off by."""


def _random(reader: Reader, op: Operation, constants: list[str]) -> tuple[Value, ...]:
    """Four words of Philox for a counter of four words and a key of two."""
    if constants != ["10"] or any(reader.writer.dtype(reader.writer.data(v)) is DType.I64 for v in reader.operands(op)):
        raise UnsupportedOperator("random numbers of 64 bits, or by another number of rounds than 10, are not read")
    writer = reader.writer
    words = [writer.convert(without_sign(reader, value), DType.I64) for value in reader.operands(op)]
    shape = max((word.shape for word in words), key=len)
    axes = writer.union(*words)
    words = [Data(writer.spread(word, axes, shape), axes, shape) for word in words]
    found: list[Value] = []
    for number in range(4):
        which = writer.constant(number, shape, DType.I64)
        word = writer.apply(ops.Philox(), *words, which)
        found.append(writer.convert(with_sign_of(reader, word, DType.I32), DType.I32))
    return tuple(found)


_FUNCTIONS: dict[str, _Meaning] = {"sort_impl": _sorted, "philox_impl": _random}
