"""Scalars as text: one tree, written in the language of every target."""

from __future__ import annotations

import re

import pytest

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.printing.cpp import functions as cpp
from rewright.optimize.printing.language import Language, bare
from rewright.optimize.printing.reference import renderer as reference
from rewright.optimize.printing.statements import Element, Name, Number, call, equal, select, total
from rewright.optimize.printing.triton import functions as triton
from rewright.optimize.printing.wgsl import functions as wgsl

CPP, TORCH = cpp.language(DType.F32), reference.language(DType.F32)
WGSL = wgsl.language("{}[{}]".format)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (CPP, "((x == -(float)INF) ? (float)0.0 : exp_(x))"),
        (triton.LANGUAGE, 'tl.where((x == float("-inf")), 0.0, tl.exp(x))'),
        (WGSL, "select(exp(x), f32(0.0), (x == (-infinity())))"),
    ],
)
def test_a_choice_is_written_as_the_target_has_it(language: Language, text: str) -> None:
    x, zero = Name("x"), Number(0.0, DType.F32)

    assert language.text(select(equal(x, Number(float("-inf"), DType.F32)), zero, call("exponential", x))) == text


def test_a_place_is_a_sum_of_multiples() -> None:
    place = total((Name("r"), 64), Name("c"), -1)

    assert CPP.text(place) == "(64 * r + c + -1)"
    assert CPP.text(Element("tile", place)) == "tile[64 * r + c + -1]"
    assert CPP.text(total()) == "0"


def test_integers_are_computed_in_64_bits_and_wrap_as_narrow_ones_do() -> None:
    assert CPP.text(call("add", Name("a"), Name("b"), dtype=DType.I8)) == "(long)(int8_t)((a + b))"
    assert CPP.text(call("add", Name("a"), Name("b"), dtype=DType.I64)) == "(a + b)"


def test_a_kernel_that_is_wide_computes_in_double() -> None:
    half = Number(0.5, DType.F64)

    assert cpp.language(DType.F64).text(half) == "(double)0.5"
    assert reference.language(DType.F64).text(half) == "torch.tensor(float('0.5'), dtype=torch.float64)"


@pytest.mark.parametrize("language", [CPP, triton.LANGUAGE, TORCH, WGSL])
def test_a_function_that_a_target_has_not_is_an_error(language: Language) -> None:
    with pytest.raises(RewrightError, match=f"no {re.escape(language.name)} for the function bessel"):
        language.text(call("bessel", Name("x")))


@pytest.mark.parametrize(("text", "expected"), [("(a + b)", "a + b"), ("(a) + (b)", "(a) + (b)"), ("a", "a")])
def test_only_parentheses_around_everything_are_left_out(text: str, expected: str) -> None:
    assert bare(text) == expected
