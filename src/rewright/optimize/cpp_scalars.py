"""Scalar expressions and index conditions as C++."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.constants import closed_value
from rewright.optimize.expressions import Expression, Number, Table, names
from rewright.optimize.ranges import joined_digits
from rewright.optimize.simplify import as_index
from rewright.terms.index import Index, Quotient, Remainder, Variable

ELEMENT = {
    DType.F64: "double",
    DType.F32: "float",
    DType.BF16: "bfloat_t",
    DType.F16: "half_t",
    DType.I64: "int64_t",
    DType.I32: "int32_t",
    DType.I16: "int16_t",
    DType.I8: "int8_t",
    DType.U8: "uint8_t",
    DType.BOOL: "bool",
}
"""How elements of a dtype lie in memory."""

COSTLY = frozenset(name for name, record in FUNCTIONS.items() if record.code.cost > 1)
"""Functions that are worth computing once for a lane or a row."""


def ctype(dtype: DType, real: str) -> str:
    """The type in which values of a dtype are computed."""
    return real if dtype.is_float else "bool" if dtype is DType.BOOL else "long"


def literal(value: Number, dtype: DType, real: str) -> str:
    """A fixed number."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    number = float(value)
    if not dtype.is_float:
        if math.isinf(number):
            return f"std::numeric_limits<long>::{'max' if number > 0 else 'lowest'}()"
        return f"{int(value)}L"
    if math.isinf(number):
        return f"({real})INF" if number > 0 else f"-({real})INF"
    if math.isnan(number):
        return f"std::numeric_limits<{real}>::quiet_NaN()"
    return f"({real}){number!r}"


def power(exponent: Expression, text: Callable[[Expression], str], real: str) -> str:
    """Two to a power; a number that the exponent is multiplied by is given as a sum of two, the second one small."""
    if exponent.op in ("multiply", "divide") and (number := closed_value(exponent.arguments[1])):
        number = number if exponent.op == "multiply" else 1 / number
        high = float(np.float32(number)) if real == "float" else number
        if math.isfinite(high):
            return f"exp2_({text(exponent.arguments[0])}, ({real}){high!r}, ({real}){number - high!r})"
    return f"exp2_({text(exponent)})"


_WIDTH = {DType.I32: "int32_t", DType.I16: "int16_t", DType.I8: "int8_t", DType.U8: "uint8_t"}
"""Integers that are computed as ``long``, and what they are."""


def wrapped(text: str, dtype: DType) -> str:
    """A number of the width of its dtype: what does not fit wraps, as in PyTorch."""
    return f"(long)({_WIDTH[dtype]})({text})" if dtype in _WIDTH else text


def function(e: Expression, a: list[str], real: str) -> str:
    """A scalar function of printed arguments; raises RewrightError where there is none."""
    return wrapped(_function(e, a, real), e.dtype)


def _function(e: Expression, a: list[str], real: str) -> str:
    op, kind = e.op, e.arguments[0].dtype
    if op.startswith("convert_"):
        return _converted(e.dtype, kind, a[0], real)
    if op == "not" and kind is DType.BOOL:
        return f"(!{a[0]})"
    if op == "remainder" and not kind.is_float:
        return f"rest_({a[0]}, {a[1]})"
    if op in ("at_least_zero", "is_zero"):
        return f"({a[0]} {'>=' if op == 'at_least_zero' else '=='} 0)"
    if op in FUNCTIONS and (text := FUNCTIONS[op].code.cpp) is not None:
        return text.format(*a)
    raise RewrightError(f"no C++ for the function {op}")


def _converted(to: DType, kind: DType, text: str, real: str) -> str:
    if to.is_float:
        return text if kind.is_float else f"({real}){text}"
    if to is DType.BOOL:
        return f"({text} != 0)"
    return f"(long){text}"


def index_text(index: Index, name: Callable[[str], str]) -> str:
    """An index expression; ``name`` prints its variables."""
    parts: list[str] = []
    for atom, factor in joined_digits(index).terms:
        if isinstance(atom, Variable):
            text = name(atom.name)
        elif isinstance(atom, (Quotient, Remainder)):
            call = "floor_div" if isinstance(atom, Quotient) else "floor_mod"
            text = f"{call}({index_text(atom.numerator, name)}, {atom.divisor}L)"
        else:
            raise RewrightError("an index that is computed from data has no name")
        parts.append(text if factor == 1 else f"{factor} * {text}")
    if index.constant != 0 or not parts:
        parts.append(str(joined_digits(index).constant))
    return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]


def offset(table: Table, places: tuple[Expression, ...], shape: tuple[int, ...]) -> Index:
    """The place of an element in row-major memory."""
    total, stride = Index(0), 1
    for place, size in zip(reversed(places), reversed(shape), strict=True):
        index = as_index(place)
        total = total + (index if index is not None else table.opaque(place)) * stride
        stride *= size
    return total


def tile_condition(e: Expression, bounds: Mapping[str, tuple[str, str]]) -> str:
    """Whether a condition on indices holds in a tile: 1, 0 or -1 as C++; ``bounds`` print first and last index."""
    if e.op == "constant":
        return "1" if e.value else "0"
    if e.op in ("and", "or"):
        call = "both" if e.op == "and" else "either"
        return f"{call}({tile_condition(e.arguments[0], bounds)}, {tile_condition(e.arguments[1], bounds)})"
    if e.op == "not":
        return f"neither({tile_condition(e.arguments[0], bounds)})"
    if e.op in ("at_least_zero", "is_zero"):
        index = as_index(e.arguments[0])
        found = None if index is None else _bounds_text(index, bounds)
        if found is not None:
            return f"everywhere_{e.op.removeprefix('is_')}({found[0]}, {found[1]})"
    return "-1"


def _bounds_text(index: Index, bounds: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    lows, highs = [str(index.constant)], [str(index.constant)]
    for atom, factor in index.terms:
        if not isinstance(factor, int):
            return None
        if isinstance(atom, Variable):
            inner = bounds.get(atom.name)
        elif isinstance(atom, Quotient):
            found = _bounds_text(atom.numerator, bounds)
            inner = None if found is None else tuple(f"floor_div({t}, {atom.divisor}L)" for t in found)
        else:
            inner = ("0", f"{atom.divisor - 1}") if isinstance(atom, Remainder) else None
        if inner is None:
            return None
        first, last = inner if factor > 0 else (inner[1], inner[0])
        lows.append(f"{factor} * {first}")
        highs.append(f"{factor} * {last}")
    return f"({' + '.join(lows)})", f"({' + '.join(highs)})"


__all__ = [
    "COSTLY",
    "ELEMENT",
    "ctype",
    "function",
    "index_text",
    "literal",
    "names",
    "offset",
    "tile_condition",
]


COMBINE = {
    "sum": "{part} += {value};",
    "product": "{part} *= {value};",
    "maximum": "{part} = {part} < {value} ? {value} : {part};",
    "minimum": "{part} = {part} > {value} ? {value} : {part};",
    "or": "{part} |= (int){value};",
    "and": "{part} &= (int){value};",
}
CLAUSE = {"sum": "+", "product": "*", "maximum": "max", "minimum": "min", "or": "|", "and": "&"}
JOIN = {
    "sum": "{old} + {part}",
    "product": "{old} * {part}",
    "maximum": "larger({old}, {part})",
    "minimum": "smaller({old}, {part})",
    "or": "{old} | (bool){part}",
    "and": "{old} & (bool){part}",
}
