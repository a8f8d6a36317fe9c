"""Scalar functions of tiles, and conditions on the indices of a whole tile, as Triton."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.optimize.expressions import Expression, Number
from rewright.optimize.simplify import as_index
from rewright.optimize.values import identity
from rewright.terms.index import Index, Quotient, Variable

TYPES = {
    DType.F64: "tl.float64",
    DType.F32: "tl.float32",
    DType.BF16: "tl.bfloat16",
    DType.F16: "tl.float16",
    DType.I64: "tl.int64",
    DType.I32: "tl.int32",
    DType.I16: "tl.int16",
    DType.I8: "tl.int8",
    DType.U8: "tl.uint8",
    DType.BOOL: "tl.int1",
}
POINTERS = {
    DType.F64: "*fp64",
    DType.F32: "*fp32",
    DType.BF16: "*bf16",
    DType.F16: "*fp16",
    DType.I64: "*i64",
    DType.I32: "*i32",
    DType.I16: "*i16",
    DType.I8: "*i8",
    DType.U8: "*u8",
    DType.BOOL: "*i1",
}
"""Types of pointers in signatures, for compiling ahead of time."""


def literal(value: Number, dtype: DType) -> str:
    """A fixed number."""
    if dtype is DType.BOOL:
        return "True" if value else "False"
    number = float(value)
    if not dtype.is_float:
        if math.isinf(number):
            bits = {DType.I64: 63, DType.I32: 31, DType.I16: 15, DType.I8: 7, DType.U8: 8}[dtype]
            return str(2**bits - 1) if number > 0 else str(0 if dtype is DType.U8 else -(2**bits))
        return str(int(value))
    return f'float("{number}")' if not math.isfinite(number) else repr(number)


def function(e: Expression, a: list[str]) -> str:
    """A scalar function of printed tiles; raises RewrightError where Triton has none."""
    kind = e.arguments[0].dtype
    if e.op.startswith("convert_"):
        if e.dtype.is_float:
            return a[0] if kind.is_float else f"({a[0]}).to(tl.float32)"
        return f"({a[0]} != 0)" if e.dtype is DType.BOOL else f"({a[0]}).to({TYPES[e.dtype]})"
    if e.op == "not" and kind is DType.BOOL:
        return f"({a[0]} == 0)"
    if e.op in ("at_least_zero", "is_zero"):
        return f"({a[0]} {'>=' if e.op == 'at_least_zero' else '=='} 0)"
    if e.op not in FUNCTIONS or (code := FUNCTIONS[e.op].code.triton) is None:
        raise RewrightError(f"no Triton for the function {e.op}; use target='cpu'")
    return code.text.format(*a)


Bounds = Mapping[str, tuple[str, str]]


def everywhere(e: Expression, value: bool, bounds: Bounds) -> list[str]:
    """Scalar conditions of which each is enough for a condition to have a value in the whole tile."""
    if e.op == "not":
        return everywhere(e.arguments[0], not value, bounds)
    if e.op in ("and", "or"):
        first, second = (everywhere(a, value, bounds) for a in e.arguments)
        if (e.op == "or") == value:
            return first + second
        return [f"({x}) & ({y})" for x in first for y in second]
    if e.op == "at_least_zero":
        found = _ends(e, bounds)
        if found is not None:
            return [f"{found[0]} >= 0" if value else f"{found[1]} < 0"]
    if e.op == "is_zero" and not value:
        found = _ends(e, bounds)
        return [] if found is None else [f"{found[0]} > 0", f"{found[1]} < 0"]
    return []


def _ends(e: Expression, bounds: Bounds) -> tuple[str, str] | None:
    index = as_index(e.arguments[0])
    return None if index is None else _index_ends(index, bounds)


def _index_ends(index: Index, bounds: Bounds) -> tuple[str, str] | None:
    """The least and the largest value of an index in a tile; quotients by blocks only of what is never below nought."""
    low, high = [str(index.constant)], [str(index.constant)]
    for atom, factor in index.terms:
        found = None
        if isinstance(atom, Variable):
            found = bounds.get(atom.name)
        elif isinstance(atom, Quotient) and all(f > 0 for f in (1, *_numbers(atom.numerator))):
            inner = _index_ends(atom.numerator, bounds)
            found = None if inner is None else (f"{inner[0]} // {atom.divisor}", f"{inner[1]} // {atom.divisor}")
        if found is None or not isinstance(factor, int):
            return None
        first, last = found if factor > 0 else found[::-1]
        low.append(f"{factor} * ({first})")
        high.append(f"{factor} * ({last})")
    return f"({' + '.join(low)})", f"({' + '.join(high)})"


def _numbers(index: Index) -> list[int]:
    """The factors of an index, and one more than its constant; none above nought where they are no numbers."""
    every = [*(f for _, f in index.terms), index.constant + 1]
    return [f if isinstance(f, int) else 0 for f in every]


def is_empty(state: str, extremum: Expression) -> str:
    """Whether an extremum has seen nothing but its own neutral element."""
    assert extremum.bound is not None
    return f"({state} == {literal(identity(extremum.bound.kind), extremum.dtype)})"


def atoms(e: Expression, value: bool) -> list[tuple[Expression, bool]]:
    """Conditions of which each is enough for a condition to have a value."""
    if e.op == "not":
        return atoms(e.arguments[0], not value)
    if (e.op == "or" and value) or (e.op == "and" and not value):
        return [a for argument in e.arguments for a in atoms(argument, value)]
    return [(e, value)]


def all_of(e: Expression, value: bool) -> list[tuple[Expression, bool]]:
    """Conditions that are together enough for a condition to have a value."""
    if e.op == "not":
        return all_of(e.arguments[0], not value)
    if (e.op == "and" and value) or (e.op == "or" and not value):
        return [a for argument in e.arguments for a in all_of(argument, value)]
    return [(e, value)]


def padded(size: int) -> int:
    """The size of a tile that holds so many elements."""
    return max(16, 1 << (size - 1).bit_length())
