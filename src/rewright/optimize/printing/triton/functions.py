"""How scalars and tiles are written in Triton: types, literals and functions, ``helpers`` where Triton has none."""

from __future__ import annotations

import math

from rewright.ir.types import DType
from rewright.optimize.printing.language import PLACES, Language, templates
from rewright.optimize.printing.statements import Load, Number

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
_SCALAR = templates(lambda function: None if function.code.triton is None else function.code.triton.text)
FUNCTIONS = (
    PLACES
    | _SCALAR
    | {
        "exp2": "tl.exp2({0})",
        "remainder_integer": "({0} % {1})",
        "remainder_float": "({0} % {1})",
        "not_bool": "({0} == 0)",
        "not_bits": "(~{0})",
        "to_float": "tl.cast({0}, tl.float32)",
        "rounded_f32": "tl.cast({0}, tl.float32)",
        "rounded_f16": "tl.cast(tl.cast({0}, tl.float16), tl.float32)",
        "rounded_bf16": "tl.cast(tl.cast({0}, tl.bfloat16), tl.float32)",
        "to_bool": "({0} != 0)",
        **dict.fromkeys(("to_integer", "to_narrow_integer"), "tl.cast({0}, {type})"),
        "cast": "tl.cast({0}, {type})",
        "cast_like": "{0}.to({1}.dtype)",
        # places, and numbers of tiles
        "least": "tl.minimum({0}, {1})",
        "most": "tl.maximum({0}, {1})",
        "at_least_one": "tl.maximum({0}, 1)",
        "quotient": "({0} // {1})",
        "modulo": "({0} % {1})",
        "rounded_down": "({0} // {1} * {1})",
        "rounded_up": "(({0} + {1} - 1) // {1} * {1})",
        # tiles
        "arange": "tl.arange(0, {0})",
        "as_rows": "{0}[:, None]",
        "as_columns": "{0}[None, :]",
        "full": "tl.full([{0}, {1}], {2}, {type})",
        "zeros": "tl.zeros([{0}, {1}], {type})",
        "accurate_zeros": "tl.zeros([{0}, {1}], tl.float64 if UPCAST else tl.float32)",
        "zeros_like": "tl.zeros_like({0}).to({type})",
        "full_rows": "tl.full([{0}], {1}, {type})",
        "zero_rows": "tl.zeros([{0}], {type})",
        "row_sum": "tl.sum({0}, 1)",
        "row_max": "tl.max({0}, 1)",
        "row_min": "tl.min({0}, 1)",
        "column_sum": "tl.sum({0}, 0)[None, :]",
        "largest": "tl.max({0})",
        "smallest": "tl.min({0})",
        "transposed": "{0}.T",
        "dot": 'tl.dot({0}, {1}, input_precision="tf32x3")',
        "add_dot": 'tl.dot({0}, {1}, {2}, input_precision="tf32x3")',
        "descriptor": (
            "tl.make_tensor_descriptor({0} + {1}, shape=[{2}, {3}], strides=[{4}, 1], block_shape=[{5}, {6}])"
        ),
        "descriptor_load": "{0}.load([{1}, {2}])",
    }
)
_BITS = {DType.I64: 63, DType.I32: 31, DType.I16: 15, DType.I8: 7, DType.U8: 8}


def _literal(number: Number) -> str:
    value = float(number.value)
    if number.dtype is DType.BOOL:
        return "True" if number.value else "False"
    if number.dtype.is_float:
        return repr(value) if math.isfinite(value) else f'float("{value}")'
    if math.isinf(value):
        limit = 2 ** _BITS[number.dtype]
        return str(limit - 1 if value > 0 else 0 if number.dtype is DType.U8 else -limit)
    return str(int(number.value))


def _load(load: Load, place: str, guard: str) -> str:
    return f"tl.load(t{load.tensor} + {place}" + (f", mask={guard}, other=0)" if guard else ")")


LANGUAGE = Language("Triton", FUNCTIONS, TYPES, _literal, _load, advice="; use target='cpu'")
