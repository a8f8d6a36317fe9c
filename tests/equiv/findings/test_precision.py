"""Casts are a verdict of their own: equal over the reals, and where the two round differently."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

from rewright.equiv.engine import equiv
from rewright.equiv.findings.precision import Effect
from rewright.interp.settling import rounded_to
from rewright.ir.types import DType
from tests.equiv.decoders import PLAIN, captured

HALF = PLAIN.but(layers=1, dtype=torch.bfloat16, mask="infinite")


def test_a_cast_before_or_after_the_weight() -> None:
    verdict = equiv(captured(HALF), captured(HALF.but(cast="after")))
    assert verdict.status == "proved"
    told = [line for line in verdict.notes if line.startswith("precision")]
    assert any("the left program rounds to bf16 at decoders.py" in line for line in told)
    assert any("2^-8" in line for line in told)


def test_equal_casts_say_nothing() -> None:
    verdict = equiv(captured(HALF), captured(HALF.but(rotary="split")))
    assert verdict.status == "proved"
    assert not any(line.startswith("precision: each") for line in verdict.notes)


def test_a_bug_in_bf16_is_a_bug() -> None:
    verdict = equiv(captured(HALF), captured(HALF.but(eps=1e-5)))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "eps"


def test_rounding_to_eight_digits() -> None:
    given = np.array([1.0, 1.00390625, 1.001, -3.14159, np.inf, 0.0])
    expected = torch.tensor(given).to(torch.bfloat16).double().numpy()
    np.testing.assert_array_equal(rounded_to(given, DType.BF16), expected)
    assert rounded_to(np.array(given.reshape(-1)[0]), DType.BF16).shape == ()  # a number stays one
    assert "rounding alone" in str(Effect(0.1, 4.0, 0.2))
