"""Programs of the benchmark: each runs, is the same every time, and is what it is in float64."""

from __future__ import annotations

import pytest
import torch

from bench.optimize import outputs
from bench.optimize.programs import FAMILIES, PROGRAMS, chosen


def test_programs_are_many_and_have_names_of_their_own() -> None:
    assert sum(map(len, FAMILIES.values())) == len(PROGRAMS) >= 68
    assert sum(program.backward for program in PROGRAMS.values()) >= 20
    assert sum(len(FAMILIES[family]) for family in ("masks", "attention", "mixing")) >= 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_the_same_every_time_and_what_it_is_in_float64(name: str) -> None:
    built = PROGRAMS[name].build(size="tiny")
    with torch.no_grad():
        first, second = (outputs.tensors(b.function(*b.args)) for b in (built, PROGRAMS[name].build(size="tiny")))
        double = outputs.in_double(built)
        exact = outputs.tensors(double.function(*double.args))
    assert first
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(not e.is_floating_point() or f.is_floating_point() for e, f in zip(exact, first, strict=True))
    assert outputs.error(first, exact) < 2e-6


@pytest.mark.parametrize("name", ["causal", "padded", "grouped", "attn"])
def test_attention_by_a_kernel_of_pytorch_is_the_same(name: str) -> None:
    built = PROGRAMS[name].build(size="tiny")
    assert built.sdpa is not None
    torch.testing.assert_close(built.sdpa()(*built.args), built.function(*built.args))


def test_the_scale_is_that_of_inputs_and_not_of_weights() -> None:
    (x, weight, *_), (larger, same, *_) = (PROGRAMS["lora"].build(s, size="tiny").args for s in (1.0, 30.0))
    torch.testing.assert_close(larger, 30 * x)
    assert torch.equal(weight, same)


def test_families_and_names_narrow_what_is_measured() -> None:
    assert [p.name for p in chosen(["norms", "losses"], ["layer_norm", "causal"])] == ["layer_norm"]
    assert chosen(None, None) == list(PROGRAMS.values())
