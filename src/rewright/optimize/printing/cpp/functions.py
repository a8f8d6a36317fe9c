"""How scalars are written in C++: types, literals and functions, which ``runtime`` defines where C++ has none."""

from __future__ import annotations

import math

from rewright.ir.types import DType
from rewright.optimize.printing.language import PLACES, Language, templates
from rewright.optimize.printing.statements import Load, Number

ELEMENTS = {
    DType.F64: "double",
    DType.F32: "float",
    DType.BF16: "bfloat_t",
    DType.F16: "half_t",
    DType.I64: "int64_t",
    DType.I32: "int32_t",
    DType.I16: "int16_t",
    DType.I8: "int8_t",
    DType.U8: "uint8_t",
    DType.BOOL: "truth_t",
}
"""How elements of a dtype lie in memory."""
FUNCTIONS = (
    PLACES
    | templates(lambda function: function.code.cpp)
    | {
        "exp2": "exp2_({0})",
        "exp2_product": "exp2_({0}, {1}, {2})",
        "is_bounded": "(std::abs({0}) <= std::numeric_limits<{type}>::max())",
        "not_bool": "(!{0})",
        "not_bits": "(~{0})",
        "remainder_float": "std::fmod({0}, {1})",
        "remainder_integer": "rest_({0}, {1})",
        "to_float": "({type}){0}",
        **{name: f"{name}({{0}})" for name in ("rounded_f32", "rounded_f16", "rounded_bf16")},
        "to_bool": "({0} != 0)",
        "to_integer": "(long){0}",
        "to_narrow_integer": "(long)(int32_t){0}",  # of what does not fit processors make one number, as in PyTorch
        "narrowed": "({type}){0}",
        "counted": "({type}){0}",
        "flag": "(int){0}",
        "least": "std::min<long>({0}, {1})",
        "most": "std::max<long>({0}, {1})",
        "at_least_one": "std::max<long>({0}, 1)",
        "quotient": "({0} / {1})",
        "floor_quotient": "floor_div({0}, {1})",
        "floor_remainder": "floor_mod({0}, {1})",
        **{name: f"{name}({{0}}, {{1}})" for name in ("both", "either", "everywhere_at_least_zero", "everywhere_zero")},
        "neither": "neither({0})",
    }
)
_WRAPPED = {
    DType.I32: "(long)(int32_t)({0})",
    DType.I16: "(long)(int16_t)({0})",
    DType.I8: "(long)(int8_t)({0})",
    DType.U8: "(long)(uint8_t)({0})",
}
"""Integers are computed in 64 bits; a result that does not fit wraps, as in PyTorch."""


def language(real: DType) -> Language:
    """C++ for a kernel that computes floats in a dtype."""
    kind = "double" if real is DType.F64 else "float"
    types = {d: kind if d.is_float else "long" for d in ELEMENTS}
    types |= {DType.F64: "double", DType.BOOL: "bool", DType.I32: "int", DType.I8: "char"}

    def literal(number: Number) -> str:
        return _literal(number, types[number.dtype])

    return Language("C++", FUNCTIONS, types, literal, _load, wrapped=_WRAPPED)


def _load(load: Load, place: str, guard: str) -> str:
    assert not guard
    return f"value(t{load.tensor}[{place}])"


def _literal(number: Number, kind: str) -> str:
    value = float(number.value)
    if number.dtype is DType.BOOL:
        return "true" if number.value else "false"
    if not number.dtype.is_float:
        if math.isinf(value):
            return f"std::numeric_limits<long>::{'max' if value > 0 else 'lowest'}()"
        return f"{int(number.value)}L"
    if math.isnan(value):
        return f"std::numeric_limits<{kind}>::quiet_NaN()"
    return f"{'-' if value < 0 else ''}({kind})INF" if math.isinf(value) else f"({kind}){value!r}"
