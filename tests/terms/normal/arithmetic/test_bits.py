"""Bitwise functions of integers have their algebra: equal functions are the same polynomial."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.rules import Tensor, constant, integers, rule, size
from rewright.rules.verdict import judge

n = size("n")
x, y, z = (integers(name, n) for name in "xyz")
u, v = (Tensor(ops.Input(name, TensorType((n,), DType.U8))) for name in "uv")


def number(value: int, dtype: DType = DType.I64) -> Tensor:
    """A constant vector of integers."""
    return constant(value, (n,), dtype)


full = number(255, DType.U8)
SAME: dict[str, tuple[Tensor, Tensor]] = {
    "x & y = y & x": (x & y, y & x),
    "x & x = x": (x & x, x),
    "x ^ x = 0": (x ^ x, number(0)),
    "x | 0 = x": (x | number(0), x),
    "x & -1 = x": (x & number(-1), x),
    "~x = x ^ -1": (~x, x ^ number(-1)),
    "~x = -x - 1": (~x, -x - 1),
    "De Morgan": (~(x & y), ~x | ~y),
    "distribution": (x & (y | z), (x & y) | (x & z)),
    "absorption": (x | (x & y), x),
    "consensus": ((x & y) | (~x & z) | (y & z), (x & y) | (~x & z)),
    "sum by or and and": ((x | y) + (x & y), x + y),
    "sum by xor and carry": ((x ^ y) + (x & y) * 2, x + y),
    "low bits are a remainder": (x & number(7), ((x % 8) + 8) % 8),
    "high and low bits": ((x & number(-16)) | (x & number(15)), x),
    "masks meet": ((x & number(12)) & (y & number(6)), x & y & number(4)),
    "twice is even": ((x * 2) & number(1), number(0)),
    "bits of a sum": (((x + y) ^ x) ^ x, x + y),
    "of unsigned, ~u = 255 - u": (~u, full - u),
    "of unsigned, ~(u & v) = ~u | ~v": (~(u & v), ~u | ~v),
    "of unsigned, u + ~u = 255": (u + ~u, full),
    "of unsigned, no bits above": (u & v & full, v & u),
}
DIFFERENT: dict[str, tuple[Tensor, Tensor]] = {
    "x & y = x | y": (x & y, x | y),
    "x | y = x + y": (x | y, x + y),
    "x & 7 = x % 8": (x & number(7), x % 8),
    "x ^ 5 = x - 5": (x ^ number(5), x - 5),
    "~x = -x": (~x, -x),
    "x & 255 = x": (x & number(255), x),
    "distribution of xor over and": (x ^ (y & z), (x ^ y) & (x ^ z)),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_functions_of_bits_are_proved(name: str) -> None:
    verdict = judge(rule("r", name, *SAME[name]))
    assert (verdict.status, verdict.reason) == ("proved", "")


@pytest.mark.parametrize("name", DIFFERENT)
def test_others_are_refuted(name: str) -> None:
    assert judge(rule("r", name, *DIFFERENT[name])).status == "refuted"


def test_bits_inside_of_a_sum_over_a_range_are_found_again() -> None:
    """Variables are replaced inside of a conjunction, which is then written anew."""
    left, right = (x & y).sum(0), (y & x).reverse(0).sum(0)
    assert judge(rule("r", "", left, right)).status == "proved"
