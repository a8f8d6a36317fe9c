"""Arithmetic of floats, functions of them, and casts."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rewright import ops
from rewright.frontends.triton.meaning.folds.selections import selected
from rewright.frontends.triton.meaning.operations.bits import with_sign, without_sign
from rewright.frontends.triton.meaning.operations.control import either
from rewright.frontends.triton.meaning.operations.integers import on_data
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import DTYPES, Address, Choice, Data, Either, Truth, Value, Whole
from rewright.frontends.triton.text import Kind, Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.ops.facts import LARGEST, UNKNOWN, Facts
from rewright.ops.functions.record import Direction
from rewright.ops.reference.elementary import FUNCTIONS, copysign, hypot

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_FUNCTIONS: dict[str, type[Operator]] = {
    "arith.addf": ops.Add,
    "arith.subf": ops.Subtract,
    "arith.mulf": ops.Multiply,
    "arith.divf": ops.Divide,
    "tt.precise_divf": ops.Divide,
    "arith.remf": ops.Remainder,
    "arith.maxnumf": ops.Maximum,
    "arith.maximumf": ops.Maximum,
    "arith.minnumf": ops.Minimum,
    "arith.minimumf": ops.Minimum,
    "arith.negf": ops.Negate,
    "math.exp": ops.Exponential,
    "math.expm1": ops.ExponentialMinusOne,
    "math.log": ops.Log,
    "math.log1p": ops.LogPlusOne,
    "math.sqrt": ops.Sqrt,
    "tt.precise_sqrt": ops.Sqrt,
    "math.rsqrt": ops.Rsqrt,
    "math.sin": ops.Sine,
    "math.cos": ops.Cosine,
    "math.tanh": ops.Tanh,
    "math.erf": ops.Erf,
    "math.absf": ops.Abs,
    "math.absi": ops.Abs,
    "math.ceil": ops.Ceil,
    "math.floor": ops.Floor,
    "math.roundeven": ops.RoundNearestEven,
    "math.powf": ops.Power,
    "math.atan2": ops.Atan2,
    "math.erfc": ops.Erfc,
    "erfinv": ops.ErfInverse,
    "erfcx": ops.ErfcScaled,
    "lgamma": ops.LogGamma,
}
_LIBRARY = {
    "exp": "math.exp",
    "expm1": "math.expm1",
    "log": "math.log",
    "log1p": "math.log1p",
    "sqrt": "math.sqrt",
    "rsqrt": "math.rsqrt",
    "sin": "math.sin",
    "cos": "math.cos",
    "tanh": "math.tanh",
    "erf": "math.erf",
    "fabs": "math.absf",
    "ceil": "math.ceil",
    "floor": "math.floor",
    "fast_exp": "math.exp",
    "fast_tanh": "math.tanh",
    "trunc": "math.trunc",
    "rint": "math.roundeven",
    "nearbyint": "math.roundeven",
    "round": "math.round",
    "exp2": "math.exp2",
    "log2": "math.log2",
    "pow": "math.powf",
    "powi": "powi",
    "fmod": "arith.remf",
    "fmax": "arith.maxnumf",
    "fmin": "arith.minnumf",
    "fma": "math.fma",
    "div_rn": "arith.divf",
    **{f"fdiv_{mode}": "arith.divf" for mode in ("rn", "rz", "rd", "ru")},
    "atan2": "math.atan2",
    "erfc": "math.erfc",
    "erfinv": "erfinv",
    "erfcx": "erfcx",
    "lgamma": "lgamma",
    **{name: name for name in ("hypot", "copysign")},
    **{
        name: name for name in (*("acos", "asin", "atan", "acosh", "asinh", "atanh"), *("cosh", "sinh", "tan", "log10"))
    },
    "cyl_bessel_i0": "i0",
    "cyl_bessel_i1": "i1",
    "isnan": "isnan",
    "isinf": "isinf",
    "finite": "isfinite",
    "isfinited": "isfinite",
}
"""Functions of CUDA's mathematical library, without ``__nv_`` and the ``f`` of single precision."""
_LN2 = 0.6931471805599453
_DIRECTIONS: dict[str, Direction] = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_OPPOSITES: dict[str, Direction] = {"lt": "GE", "le": "GT", "gt": "LE", "ge": "LT"}


@MEANINGS.enter(*_FUNCTIONS)
def function(reader: Reader, op: Operation) -> Value:
    """An elementwise function."""
    return on_data(reader, _FUNCTIONS[op.name](), *reader.operands(op))


@MEANINGS.enter("math.exp2", "math.log2")
def base_two(reader: Reader, op: Operation) -> Value:
    """``2 ** x`` and its inverse, by the natural ones."""
    (value,) = reader.operands(op)
    data = reader.writer.data(value)
    base = reader.log2e
    if base is not None:
        reader.assumptions[f"{base:.8g} stands for log2(e), of which it is rounded"] = None
    scale = reader.writer.constant(base or _LN2, data.shape, reader.writer.dtype(data))
    up, down = (ops.Divide(), ops.Multiply()) if base is not None else (ops.Multiply(), ops.Divide())
    if op.name == "math.exp2":
        return on_data(reader, ops.Exponential(), reader.writer.apply(up, data, scale))
    return reader.writer.apply(down, on_data(reader, ops.Log(), data), scale)


@MEANINGS.enter("acos", "asin", "atan", "acosh", "asinh", "atanh", "cosh", "sinh", "tan", "log10", "i0", "i1")
@MEANINGS.enter("math.acos", "math.asin", "math.atan", "math.cosh", "math.sinh", "math.tan", "math.log10")
def composed(reader: Reader, op: Operation) -> Value:
    """A function by others."""
    (value,) = reader.operands(op)
    data = reader.writer.data(value)
    return replace(data, position=FUNCTIONS[op.name.removeprefix("math.")](reader.writer.b, data.position))


@MEANINGS.enter("hypot", "copysign", "math.copysign")
def composed_of_two(reader: Reader, op: Operation) -> Value:
    """A function of two numbers by others."""
    left, right = (reader.writer.data(value) for value in reader.operands(op))
    axes = reader.writer.union(left, right)
    function = hypot if op.name == "hypot" else copysign
    sides = (reader.writer.spread(side, axes) for side in (left, right))
    return Data(function(reader.writer.b, *sides), axes, left.shape)


@MEANINGS.enter("math.fma")
def fused(reader: Reader, op: Operation) -> Value:
    """``x * y + z``."""
    x, y, z = reader.operands(op)
    return on_data(reader, ops.Add(), on_data(reader, ops.Multiply(), x, y), z)


@MEANINGS.enter("tt.extern_elementwise")
def library(reader: Reader, op: Operation) -> Value:
    """A function of CUDA's mathematical library."""
    symbol = op.attributes.get("symbol", "").strip('"')
    name = symbol.removeprefix("__nv_")
    known = _LIBRARY.get(name) or _LIBRARY.get(name.removesuffix("f"))
    if known is None:
        raise UnsupportedOperator(f"the library's function {symbol} is not read")
    if known in _TESTS:
        found = _TESTS[known](reader, reader.writer.data(reader.operands(op)[0]))
        return reader.writer.convert(found, DTYPES[op.given[0].element])
    return MEANINGS[known](reader, replace(op, name=known))  # type: ignore[return-value]


@MEANINGS.enter("powi", "math.fpowi")
def whole_power(reader: Reader, op: Operation) -> Value:
    """A float to the power of an integer."""
    base, exponent = (reader.writer.data(value) for value in reader.operands(op))
    return reader.writer.apply(ops.Power(), base, reader.writer.convert(exponent, reader.writer.dtype(base)))


@MEANINGS.enter("math.round", "math.trunc")
def rounded(reader: Reader, op: Operation) -> Value:
    """To the nearest whole number, halves away from zero, or towards zero."""
    (value,) = reader.operands(op)
    data, w = reader.writer.data(value), reader.writer
    half, zero = (w.constant(x, data.shape, w.dtype(data)) for x in (0.5, 0.0))
    up, down = (
        (data, data)
        if op.name == "math.trunc"
        else (w.apply(ops.Add(), data, half), w.apply(ops.Subtract(), data, half))
    )
    is_positive = w.apply(ops.Compare("GE"), data, zero)
    return w.select(is_positive, w.apply(ops.Floor(), up), w.apply(ops.Ceil(), down))


def _is_nan(reader: Reader, x: Data) -> Data:
    return reader.writer.apply(ops.Compare("NE"), x, x)


def _is_infinite(reader: Reader, x: Data) -> Data:
    w = reader.writer
    infinity = w.constant(math.inf, x.shape, w.dtype(x))
    return w.apply(ops.Compare("EQ"), w.apply(ops.Abs(), x), infinity)


def _is_finite(reader: Reader, x: Data) -> Data:
    return reader.writer.apply(ops.IsFinite(), x)


_TESTS: dict[str, Callable[[Reader, Data], Data]] = {"isnan": _is_nan, "isinf": _is_infinite, "isfinite": _is_finite}


@MEANINGS.enter("tt.clampf")
def clamped(reader: Reader, op: Operation) -> Value:
    """``min(max(x, low), high)``."""
    x, low, high = reader.operands(op)
    return on_data(reader, ops.Minimum(), on_data(reader, ops.Maximum(), x, low), high)


@MEANINGS.enter("arith.cmpf")
def comparison(reader: Reader, op: Operation) -> Value:
    """Comparisons: ordered ones do not hold where a side is no number, unordered ones do."""
    word, w = op.words[0], reader.writer
    left, right = (w.data(value) for value in reader.operands(op))
    if word in ("oeq", "olt", "ole", "ogt", "oge", "une"):
        found = w.apply(ops.Compare(_DIRECTIONS[word[1:]]), left, right)
    elif word in ("ult", "ule", "ugt", "uge"):
        found = w.apply(ops.Not(), w.apply(ops.Compare(_OPPOSITES[word[1:]]), left, right))
    elif word in ("one", "ueq"):
        apart = w.apply(ops.Or(), *(w.apply(ops.Compare(d), left, right) for d in ("LT", "GT")))
        found = apart if word == "one" else w.apply(ops.Not(), apart)
    else:
        found = w.apply(ops.Or(), _is_nan(reader, left), _is_nan(reader, right))
        found = w.apply(ops.Not(), found) if word == "ord" else found
    return Truth((), found.shape, found)


@MEANINGS.enter("arith.select")
def choice(reader: Reader, op: Operation) -> Value:
    """One of two values; of symbols and pointers only where the condition is decided."""
    condition, yes, no = reader.operands(op)
    if isinstance(condition, Truth) and condition.data is None:
        decided = reader.decided(condition)
        if decided is not None:
            return yes if decided else no
    if isinstance(yes, Address | Either) or isinstance(no, Address | Either):
        truth = condition if isinstance(condition, Truth) else Truth((), condition.shape, reader.writer.data(condition))
        return either(reader, truth, yes, no)
    spread, _ = reader.spread_condition(condition, yes)
    whole = selected(reader.writer, spread, reader.writer.data(yes), reader.writer.data(no))
    if isinstance(condition, Truth) and condition.data is None and isinstance(yes, Whole) and isinstance(no, Whole):
        chosen = reader.writer.chosen(whole, Choice(condition.parts, yes.index, no.index))
        return Whole(chosen, whole.shape, yes.dtype)
    return Truth((), whole.shape, whole) if isinstance(yes, Truth) else whole


@MEANINGS.enter(
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "tt.fp_to_fp"
)
def converted(reader: Reader, op: Operation) -> Value:
    """A cast."""
    (value,) = reader.operands(op)
    element = op.given[0].element
    if element not in DTYPES:
        raise UnsupportedOperator(f"numbers of type {element} are not read")
    read = {"arith.uitofp": without_sign, "arith.sitofp": with_sign}.get(op.name)
    number = reader.writer.data(value) if read is None else read(reader, value)
    dtype = DTYPES[element]
    return _saturated(reader, op, number, dtype) if dtype.is_byte_float else reader.writer.convert(number, dtype)


def _saturated(reader: Reader, op: Operation, number: Data, dtype: DType) -> Data:
    """A cast to 8 bits, which machines saturate: to the nearest number that there is."""
    if op.attributes.get("rounding", "rtne") != "rtne":
        raise UnsupportedOperator(f"a cast to {dtype.value} that does not round to the nearest is not read")
    writer, most, source = reader.writer, LARGEST[dtype], reader.writer.dtype(number)
    known = _facts(writer.b, number.position, _MOST_STEPS)
    if not -most <= known.bottom <= known.top <= most:
        reader.assumptions[f"casts to {dtype.value} saturate, as they do on GPUs of NVIDIA"] = None
        if dtype is DType.F8E5M2:  # which has infinities; rounding to the other type saturates too
            low, high = (writer.constant(end, number.shape, source) for end in (-most, most))
            number = writer.apply(ops.Clamp(), low, number, high)
    return writer.convert(number, dtype)


_MOST_STEPS = 4
"""So far back is looked for what a number may be."""


def _facts(builder: GraphBuilder, position: int, steps: int) -> Facts:
    """What the elements of a node may be, by the last operators that they are made by."""
    node = builder.node(position)
    if not isinstance(node.op, ops.TensorOperator) or (not steps and node.operands):
        return UNKNOWN
    operands = [_facts(builder, operand, steps - 1) for operand in node.operands]
    return node.op.facts(operands, [builder.type(operand) for operand in node.operands], node.type)


@MEANINGS.enter("arith.constant")
def constant(reader: Reader, op: Operation) -> Value:
    """A number in all places."""
    kind = op.types[0] if op.types else Kind("i1")  # ``arith.constant true``
    text = op.words[0].removeprefix("dense<").removesuffix(">") if op.words else ""
    if text in ("true", "false") or kind.element == "i1":
        truth = text in ("true", "1", "-1")
        return reader.truth(truth, kind.shape)
    if text.startswith("["):
        raise UnsupportedOperator("a table of constants is not read")
    dtype = DTYPES[kind.element]
    if not dtype.is_float:
        return Whole(reader.index(int(text, 0)), kind.shape, dtype)
    return reader.writer.constant(_float(text, dtype), kind.shape, dtype)


def named_log2e(numbers: Iterable[float]) -> float | None:
    """What a kernel writes for log2(e): a number of which others are multiples by powers of two; None for none."""
    found = set[float]()
    for value in numbers:
        factor = abs(value) * _LN2
        if not 0 < factor < math.inf:
            continue
        power = 2.0 ** round(math.log2(factor))
        if abs(factor - power) <= 2**-23 * power:
            found.add(abs(value) / power)
    return found.pop() if len(found) == 1 else None


def literal(op: Operation) -> float | None:
    """The number of a constant of floats; None of others."""
    dtype = DTYPES.get(op.types[0].element) if op.types else None
    text = op.words[0].removeprefix("dense<").removesuffix(">") if op.words else ""
    return _float(text, dtype) if dtype is not None and dtype.is_float and not text.startswith("[") else None


def _float(text: str, dtype: DType) -> float:
    """A number as MLIR prints it: decimal, or its bits where it is infinite or none."""
    if not text.startswith("0x"):
        return float(np.float32(float(text))) if dtype is DType.F32 else float(text)
    if dtype.is_byte_float:
        raise UnsupportedOperator(f"a constant of {dtype.value} that is written in bits is not read")
    bits = int(text, 16)
    if dtype is DType.F64:
        return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    if dtype is DType.F32:
        return struct.unpack("<f", bits.to_bytes(4, "little"))[0]
    if dtype is DType.F16:
        return struct.unpack("<e", bits.to_bytes(2, "little"))[0]
    return struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0]
