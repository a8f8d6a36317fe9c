"""Programs that compute in other types are compared over the reals; how far the casts matter is said besides."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph


def layer(dtype: torch.dtype, result: torch.dtype | None = None, least: float = 0.0) -> Graph:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ w).clamp(min=least).to(result or dtype)

    return rw.capture(program, (torch.zeros(3, 4, dtype=dtype), torch.zeros(4, 5, dtype=dtype)))


def test_a_program_in_half_the_bits() -> None:
    found = equiv(layer(torch.float32), layer(torch.bfloat16))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason
    said = "precision: equal over the reals; the right program rounds to bf16 at input 'x', which the left keeps in f32"
    assert said in found.notes


@pytest.mark.parametrize("result", [torch.float64, torch.float16])
def test_a_result_in_another_type(result: torch.dtype) -> None:
    found = equiv(layer(torch.float32), layer(torch.float32, result))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason


def test_types_hide_no_bug() -> None:
    assert equiv(layer(torch.float32), layer(torch.bfloat16, least=-1e-3), explain=False).status == "refuted"


def choice(dtype: torch.dtype) -> Graph:
    return rw.capture(lambda x: x.argmax(-1).to(dtype), (torch.zeros(3, 4),))


def test_places_as_other_integers() -> None:
    found = equiv(choice(torch.int64), choice(torch.int32))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason


def test_places_are_no_floats() -> None:
    with pytest.raises(RewrightError, match="is 3xi64 in the left program and 3xf32 in the right one; compare outputs"):
        equiv(choice(torch.int64), choice(torch.float32))
