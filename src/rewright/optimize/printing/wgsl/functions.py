"""How scalars are written in WGSL, with the functions that every module begins with.

WGSL has floats and integers of 32 bits, and no literal of an infinity or of NaN: they are made of bits that are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rewright.ir.types import DType
from rewright.optimize.printing.language import PLACES, Language, templates
from rewright.optimize.printing.statements import Load, Number

HEADER = """
var<private> infinite_bits: u32 = 0x7f800000u;
var<private> undefined_bits: u32 = 0x7fc00000u;
fn infinity() -> f32 { return bitcast<f32>(infinite_bits); }
fn undefined() -> f32 { return bitcast<f32>(undefined_bits); }
fn floor_quotient(a: i32, b: i32) -> i32 { return a / b - select(0, 1, a % b != 0 && (a < 0) != (b < 0)); }
fn floor_remainder(a: i32, b: i32) -> i32 { return a - b * floor_quotient(a, b); }
// Conditions on the indices of a tile: 1 everywhere, 0 nowhere, -1 here and there.
fn everywhere_at_least_zero(low: i32, high: i32) -> i32 { return select(select(-1, 0, high < 0), 1, low >= 0); }
fn everywhere_zero(low: i32, high: i32) -> i32 {
  return select(select(-1, 0, low > 0 || high < 0), 1, low == 0 && high == 0);
}
fn both(a: i32, b: i32) -> i32 { return select(select(-1, 1, a == 1 && b == 1), 0, a == 0 || b == 0); }
fn either(a: i32, b: i32) -> i32 { return select(select(-1, 0, a == 0 && b == 0), 1, a == 1 || b == 1); }
fn neither(a: i32) -> i32 { return select(1 - a, a, a < 0); }
"""
TYPES = {DType.F32: "f32", DType.F64: "f32", DType.I64: "i32", DType.I32: "i32", DType.I8: "i32", DType.BOOL: "bool"}
"""Types of variables: sums that other targets keep in double are of 32 bits, and places are below 2^31."""
ELEMENTS = {DType.F32: "f32", DType.I32: "i32"}
"""Types of tensors that it can hold."""
_LARGER, _SMALLER = (f"select({{1}}, {{0}}, {{0}} {sign} {{1}} || {{0}} != {{0}})" for sign in "><")
"""NaN where one of them is NaN, which ``max`` need not be."""
FUNCTIONS = (
    PLACES
    | templates(lambda function: function.code.infix if function.code.infix == function.code.cpp else None)
    | {
        **{
            name: f"{name}({{0}})"
            for name in ("tanh", "sqrt", "abs", "floor", "ceil", "sign", "exp2", "log", "neither")
        },
        **{name: f"{name}({{0}}, {{1}})" for name in ("both", "either", "everywhere_at_least_zero", "everywhere_zero")},
        **{name: f"{name}({{0}}, {{1}})" for name in ("floor_quotient", "floor_remainder")},
        "rounded_f32": "{0}",
        "rounded_f16": "quantizeToF16({0})",
        "exponential": "exp({0})",
        "exp2_product": "exp2({0} * {1} + {0} * {2})",
        "logistic": "(1.0 / (1.0 + exp(-{0})))",
        "rsqrt": "inverseSqrt({0})",
        "sine": "sin({0})",
        "cosine": "cos({0})",
        "round_nearest_even": "round({0})",
        "maximum": _LARGER,
        "minimum": _SMALLER,
        "clamp": _SMALLER.format(_LARGER.format("{1}", "{0}"), "{2}"),
        "power": "pow({0}, {1})",
        "is_finite": "(abs({0}) < infinity())",
        "is_bounded": "(abs({0}) < infinity())",
        "select": "select({2}, {1}, {0})",
        "not_bool": "(!{0})",
        "to_float": "f32({0})",
        "to_bool": "({0} != 0)",
        **dict.fromkeys(("to_integer", "to_narrow_integer"), "i32({0})"),
        "narrowed": "{0}",
        "counted": "f32({0})",
        "flag": "select(0, 1, {0})",
        "least": "min({0}, {1})",
        "most": "max({0}, {1})",
        "at_least_one": "max({0}, 1)",
        "quotient": "({0} / {1})",
    }
)


def language(element: Callable[[str, str], str]) -> Language:
    """WGSL; ``element`` writes an element of a buffer."""
    return Language("WGSL", FUNCTIONS, TYPES, _literal, _load, element, advice="; use target='cpu'")


def _literal(number: Number) -> str:
    value = float(number.value)
    if number.dtype is DType.BOOL:
        return "true" if number.value else "false"
    if not number.dtype.is_float:
        return str(int(max(-(2.0**31), min(value, 2.0**31 - 1))))
    if math.isnan(value):
        return "undefined()"
    return f"({'-' if value < 0 else ''}infinity())" if math.isinf(value) else f"f32({value!r})"


def _load(load: Load, place: str, guard: str) -> str:
    assert not guard
    return f"t{load.tensor}[{place}]"
