"""Functions of truth values, or of the bits of integers one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from rewright.ir.types import DType
from rewright.ops.facts import Facts, of_values, subtract
from rewright.ops.functions.intervals import bitwise
from rewright.ops.functions.record import EVERYWHERE, Code, Operands, ScalarFunction, Triton, Values, infix, laws


def _of_bits(
    name: Literal["and", "or", "xor"], symbol: str, exact: Callable[[Any, Any], Any], ufunc: np.ufunc
) -> ScalarFunction:
    def facts(operands: Sequence[Facts], dtype: DType) -> Facts:
        return bitwise(name, operands[0], operands[1], dtype)

    return ScalarFunction(
        name=name,
        operands=Operands(2, "logical"),
        values=Values(ufunc, exact, digits=None, definition=None, jumps="nowhere"),
        facts=facts,
        domain=EVERYWHERE,
        curve=None,
        laws=laws("finite", "commutative", "exact", "whole"),
        code=infix(symbol, torch=f"bitwise_{name}", hlo=name, cost=1),
    )


AND = _of_bits("and", "&", lambda x, y: x & y, np.bitwise_and)
OR = _of_bits("or", "|", lambda x, y: x | y, np.bitwise_or)
XOR = _of_bits("xor", "^", lambda x, y: x ^ y, np.bitwise_xor)


def _not(value: int) -> int:
    return (not value) if isinstance(value, bool) else ~value


def _not_unsigned(value: int) -> int:
    return 255 - value


def _negation(operands: Sequence[Facts], dtype: DType) -> Facts:
    largest = {DType.BOOL: 1, DType.U8: 255}.get(dtype, -1)
    return subtract(of_values([largest]), operands[0])


NOT = ScalarFunction(
    name="not",
    operands=Operands(1, "logical"),
    values=Values(np.invert, _not, digits=None, definition=None, jumps="nowhere"),
    facts=_negation,
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "exact", "whole"),
    code=Code("(~{0})", Triton("(~{0})", ""), torch="bitwise_not", hlo="not", cost=1, infix="(~{0})"),
)
NOT_UNSIGNED = ScalarFunction(
    name="not_unsigned",
    operands=Operands(1, "logical"),
    values=Values(np.invert, _not_unsigned, digits=None, definition=None, jumps="nowhere"),
    facts=_negation,
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "exact", "whole"),
    code=Code(None, None, torch="bitwise_not", hlo=None, cost=1, infix=None),
)
