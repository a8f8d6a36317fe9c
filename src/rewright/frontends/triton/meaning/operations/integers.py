"""Integers and conditions: symbols as long as they are affine in instances, iterations and lanes, else data."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import multiply, variables
from rewright.frontends.triton.meaning.addresses.instances import INSTANCE, Numbers, computed
from rewright.frontends.triton.meaning.operations.bits import with_sign, without_sign
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import DTYPES, Data, Least, Truth, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.dims import Dim, at_most, ceil_quotient
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.terms.index import Index, Quotient, Variable, quotient, remainder, variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_BITWISE: dict[str, type[Operator]] = {"andi": ops.And, "ori": ops.Or, "xori": ops.Xor}
_DATA: dict[str, type[Operator]] = {
    "addi": ops.Add,
    "subi": ops.Subtract,
    "muli": ops.Multiply,
    "divsi": ops.Divide,
    "remsi": ops.Remainder,
    "minsi": ops.Minimum,
    "maxsi": ops.Maximum,
}
_DIRECTIONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}


@MEANINGS.enter("arith.addi", "arith.subi", "arith.muli", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")
def arithmetic(reader: Reader, op: Operation) -> Value:
    """Sums, differences, products and the lesser or larger of two."""
    left, right = reader.operands(op)
    if op.name.endswith("ui") and not (_has_no_sign(reader, left) and _has_no_sign(reader, right)):
        raise UnsupportedOperator("compares numbers that may be negative as ones without a sign")
    return _computed(reader, op.name.removeprefix("arith.").replace("ui", "si"), left, right)


def _has_no_sign(reader: Reader, value: Value) -> bool:
    """Whether an integer is the same number with a sign and without."""
    if isinstance(value, Whole):
        return reader.implies(value.index)
    return isinstance(value, Data) and reader.writer.dtype(value).is_unsigned


def _computed(reader: Reader, name: str, left: Value, right: Value) -> Value:
    if isinstance(left, Whole) and isinstance(right, Whole):
        found = _affine(reader, name, left.index, right.index)
        if found is not None:
            is_joined = _mixes_instances(found) or _falls(reader, found)
            joined = _of_instances(reader, name, left, right) if is_joined else None
            return reader.fitting(joined or replace(left, index=found))
    least = _least(reader, name, left, right) or _of_instances(reader, name, left, right)
    return on_data(reader, _DATA[name](), left, right) if least is None else least


def _mixes_instances(index: Index) -> bool:
    """Whether an index is made of several numbers of an instance, of which it may be one more."""
    names = set(variables(index))
    return len(names) > 1 and any(name.startswith(INSTANCE) for name in names)


def _falls(reader: Reader, index: Index) -> bool:
    """Whether an index counts instances from the last one on: ``blocks - 1 - program``."""
    atom, coefficient = index.terms[0] if len(index.terms) == 1 else (None, 0)
    if not isinstance(atom, Variable) or coefficient != -1 or atom.name not in reader.instances.names:
        return False
    return index.constant == reader.sizes[atom.name] - 1


def _of_instances(reader: Reader, name: str, left: Value, right: Value) -> Whole | None:
    """A scalar that the numbers of instances decide, by a table of them; None for other values."""
    if left.shape or not isinstance(left, Whole | Least) or not isinstance(right, Whole | Least):
        return None
    one, other = _numbers(reader, left), _numbers(reader, right)
    found = None if one is None or other is None else computed(name, one, other)
    if found is None:
        return None
    index, variable, size = reader.instances.named(found)
    reader.sizes.setdefault(variable, size)
    return Whole(index, (), left.dtype)


def _numbers(reader: Reader, value: Whole | Least) -> Numbers | None:
    """A scalar in all instances; None where it is made of anything else."""
    found = [reader.instances.values(part) for part in _parts(value)]
    known = [numbers for numbers in found if numbers is not None]
    if len(known) < len(found):
        return None
    least = reduce(np.minimum, known)
    return -least if _is_negated(value) else least


def _least(reader: Reader, name: str, left: Value, right: Value) -> Whole | Least | None:
    """A least of scalars, moved by a scalar or negated where it is one; None for other values."""
    if left.shape or right.shape or not isinstance(left, Whole | Least) or not isinstance(right, Whole | Least):
        return None
    if name in ("minsi", "maxsi") and isinstance(left, Whole) and isinstance(right, Least):
        left, right = right, left
    if name == "minsi":
        return None if _is_negated(left, right) else _pruned(reader, (*_parts(left), *_parts(right)), left)
    if name == "maxsi" and isinstance(left, Least) and isinstance(right, Whole) and not left.is_negated:
        return left if all(reader.implies(part - right.index) for part in left.parts) else None
    if name == "muli":
        times = [v.index.as_size() for v in (left, right) if isinstance(v, Whole)]
        one = left if isinstance(left, Least) else right
        return replace(one, is_negated=not one.is_negated) if times == [-1] and isinstance(one, Least) else None
    if name == "subi" and isinstance(right, Least):
        name, right = "addi", replace(right, is_negated=not right.is_negated)
    elif name == "subi" and isinstance(right, Whole):
        name, right = "addi", replace(right, index=right.index * -1)
    return _moved(left, right) if name == "addi" else None


def _parts(value: Whole | Least) -> tuple[Index, ...]:
    return value.parts if isinstance(value, Least) else (value.index,)


def _is_negated(*values: Whole | Least) -> bool:
    return any(isinstance(value, Least) and value.is_negated for value in values)


def _moved(left: Whole | Least, right: Whole | Least) -> Least | None:
    """The sum of two leasts, or of one and a scalar; a negated one takes a scalar alone."""
    if not _is_negated(left, right):
        both = len(_parts(left)) > 1 and len(_parts(right)) > 1
        return None if both else Least(tuple(a + b for a in _parts(left) for b in _parts(right)), left.dtype)
    one, other = (left, right) if isinstance(left, Least) else (right, left)
    if not isinstance(one, Least) or not isinstance(other, Whole):
        return None
    return replace(one, parts=tuple(part - other.index for part in one.parts))


def _pruned(reader: Reader, parts: tuple[Index, ...], like: Whole | Least) -> Whole | Least:
    """The least of several integers, without those that another one is never above."""
    kept = list(dict.fromkeys(parts))
    for part in list(kept):
        if any(other is not part and reader.implies(part - other) for other in kept):
            kept.remove(part)
    return Whole(kept[0], (), like.dtype) if len(kept) == 1 else Least(tuple(kept), like.dtype)


def on_data(reader: Reader, op: Operator, *values: Value) -> Data:
    """An operator on values as data."""
    return reader.writer.apply(op, *(reader.writer.data(v) for v in values))


def _affine(reader: Reader, name: str, left: Index, right: Index) -> Index | None:
    if name == "addi":
        return left + right
    if name == "subi":
        return left - right
    if name == "muli":
        return multiply(left, right)
    if reader.implies(right - left):
        return left if name == "minsi" else right
    if reader.implies(left - right):
        return right if name == "minsi" else left
    return None


@MEANINGS.enter("arith.divsi", "arith.remsi", "arith.divui", "arith.remui", "arith.ceildivsi", "arith.floordivsi")
def division(reader: Reader, op: Operation) -> Value:
    """Quotients and remainders; of what is not negative, by a size, all roundings are floors."""
    name = op.name.removeprefix("arith.")
    left, right = reader.operands(op)
    parted = _parted(reader, name, left, right)
    if parted is not None:
        return parted
    are_leasts = isinstance(right, Least) and not _is_negated(right)
    if name in ("divsi", "remsi") and isinstance(left, Whole) and (left.index.as_size() is None or are_leasts):
        found = _of_instances(reader, name, left, right)
        if found is not None:
            return found
    if isinstance(left, Whole) and isinstance(right, Whole):
        size = right.index.as_size()
        number = left.index.as_size()
        if isinstance(number, int) and isinstance(size, int) and size and name in ("divsi", "remsi"):
            toward_zero = abs(number) // abs(size) * (1 if (number < 0) == (size < 0) else -1)
            found = toward_zero if name == "divsi" else number - toward_zero * size
            return reader.fitting(replace(left, index=Index(found)))
        if size is not None and at_most(1, size) and reader.implies(left.index):
            if name == "ceildivsi":
                return replace(left, index=floor(left.index + (size - 1), size))
            if not name.startswith("rem"):
                return replace(left, index=floor(left.index, size))
            return replace(left, index=remainder(left.index, size))
    if (
        isinstance(left, Least)
        and not left.is_negated
        and isinstance(right, Whole)
        and name in ("divsi", "ceildivsi", "floordivsi")
    ):
        size = right.index.as_size()
        if isinstance(size, int) and size >= 1 and all(reader.implies(part) for part in left.parts):
            up = size - 1 if name == "ceildivsi" else 0
            return _pruned(reader, tuple(floor(part + up, size) for part in left.parts), left)
    if name not in ("divsi", "remsi"):
        raise UnsupportedOperator(f"{op.name} of numbers that may be negative, or by what is no size, is not read")
    return on_data(reader, _DATA[name](), left, right)


def _parted(reader: Reader, name: str, left: Value, right: Value) -> Whole | None:
    """The quotient or remainder of ``size * outer + inner`` where the inner part is below the size; None elsewhere."""
    if not isinstance(left, Whole) or not isinstance(right, Whole) or name not in ("divsi", "remsi", "floordivsi"):
        return None
    size = right.index.as_size()
    if size is None or not at_most(1, size):
        return None
    outer = quotient(left.index, size)
    inside = [(atom, c) for atom, c in outer.terms if isinstance(atom, Quotient)]
    outer = Index(outer.constant, tuple(term for term in outer.terms if term not in inside))
    inner = left.index - outer * size
    if not (reader.implies(inner) and reader.implies(Index(size - 1) - inner) and reader.implies(outer)):
        return None
    return replace(left, index=inner if name == "remsi" else outer)


def floor(numerator: Index, divisor: Dim) -> Index:
    """A floor quotient; of a size it is a size too."""
    size = numerator.as_size()
    if size is not None and at_most(divisor - 1, size):
        return Index(ceil_quotient(size - divisor + 1, divisor))
    return quotient(numerator, divisor)


@MEANINGS.enter("arith.andi", "arith.ori", "arith.xori")
def logic(reader: Reader, op: Operation) -> Value:
    """Conjunctions stay conditions; other combinations of conditions, and of bits, are data."""
    left, right = reader.operands(op)
    if isinstance(left, Truth) and isinstance(right, Truth) and op.name == "arith.andi":
        data = [t.data for t in (left, right) if t.data is not None]
        joined = data[0] if len(data) == 1 else reader.writer.apply(ops.And(), *data) if data else None
        return left.both(right, joined)
    if isinstance(left, Truth) and op.name == "arith.xori" and right == Truth((), left.shape):
        negated = negation(left)
        if negated is not None:
            return negated
    if isinstance(left, Whole) and isinstance(right, Whole) and op.name == "arith.xori" and right.index == Index(-1):
        return replace(left, index=left.index * -1 - 1)
    if isinstance(left, Whole) and isinstance(right, Whole) and op.name == "arith.andi":
        ones = right.index.as_size()
        if isinstance(ones, int) and ones >= 0 and ones & (ones + 1) == 0 and reader.implies(left.index):
            return replace(left, index=remainder(left.index, ones + 1))
    found = on_data(reader, _BITWISE[op.name.removeprefix("arith.")](), left, right)
    return Truth((), found.shape, found) if isinstance(left, Truth) else found


def negation(value: Truth) -> Truth | None:
    """Where a condition of one inequality does not hold."""
    if value.data is None and len(value.parts) == 1:
        return replace(value, parts=(value.parts[0] * -1 - 1,))
    return None


@MEANINGS.enter("arith.cmpi")
def comparison(reader: Reader, op: Operation) -> Value:
    """Comparisons of symbols are conditions; unsigned ones are those of numbers that are not negative."""
    direction = op.words[0].lstrip("us")
    left, right = reader.operands(op)
    chosen = _condition(reader, left) if isinstance(left, Whole) and direction in ("ne", "eq") else None
    if chosen is not None and isinstance(right, Whole) and right.index == Index(0):
        found = chosen if direction == "ne" else negation(chosen)
        if found is not None:
            return found
    if isinstance(left, Whole) and isinstance(right, Whole):
        unsigned = op.words[0].startswith("u")
        if unsigned and not (reader.implies(left.index) and reader.implies(right.index)):
            raise UnsupportedOperator("compares numbers that may be negative as unsigned ones")
        gap = left.index - right.index
        if direction in ("eq", "ne") and (reader.implies(gap - 1) or reader.implies(gap * -1 - 1)):
            return reader.truth(direction == "ne", left.shape)
        parts = _inequalities(direction, left.index, right.index)
        if parts is not None:
            return Truth(tuple(p for p in parts if not reader.implies(p)), left.shape)
    if isinstance(left, Whole) and isinstance(right, Least) and _is_below(op.words[0], right):
        return Truth(tuple(p for r in right.parts for p in _inequalities(direction, left.index, r) or ()), left.shape)
    if op.words[0].startswith("u"):
        raise UnsupportedOperator("an unsigned comparison of data is not read")
    found = on_data(reader, ops.Compare(_DIRECTIONS[direction]), left, right)  # pyright: ignore[reportArgumentType]
    return Truth((), found.shape, found)


def _is_below(word: str, bound: Least) -> bool:
    """Whether a comparison asks whether a number is below all of several."""
    return word in ("slt", "sle") and not bound.is_negated


def _inequalities(direction: str, left: Index, right: Index) -> tuple[Index, ...] | None:
    if direction == "eq":
        return (left - right, right - left)
    if direction == "ne":
        return None
    if direction in ("gt", "ge"):
        left, right = right, left
    return (right - left - (1 if direction in ("lt", "gt") else 0),)


@MEANINGS.enter("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")
def resized(reader: Reader, op: Operation) -> Value:
    """An integer in more or fewer bits; of fewer than 32 it is cut off where it may not fit."""
    (value,) = reader.operands(op)
    dtype = DTYPES[op.given[0].element]
    if isinstance(value, Whole):
        chosen = _condition(reader, value) if dtype is DType.BOOL else None
        if chosen is not None:
            return chosen
        if op.name == "arith.extui" and not reader.implies(value.index):
            raise UnsupportedOperator("takes an integer that may be negative for one without a sign")
        if op.name != "arith.trunci" or dtype is DType.I32:
            return reader.fitting(replace(value, dtype=dtype))
        if reader.implies(value.index) and reader.implies(Index(_LARGEST.get(dtype, 0)) - value.index):
            return replace(value, dtype=dtype)
    if isinstance(value, Truth) and dtype is DType.BOOL:
        return value
    number = without_sign(reader, value) if op.name == "arith.extui" else with_sign(reader, value)
    return reader.writer.convert(number, dtype)


def _condition(reader: Reader, value: Whole) -> Truth | None:
    """The condition of ``where(condition, 1, 0)``, asked whether it is not zero; None of other numbers."""
    names = list(variables(value.index))
    choice = reader.writer.choices.get(names[0]) if len(names) == 1 else None
    if choice is None or value.index != variable(names[0]) or (choice.yes, choice.no) != (Index(1), Index(0)):
        return None
    return Truth(choice.parts, value.shape)


_LARGEST = {DType.I8: 127, DType.I16: (1 << 15) - 1}
