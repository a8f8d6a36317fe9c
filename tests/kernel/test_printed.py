"""The Triton kernels that ``optimize`` prints are read and proved as any others are."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

import rewright as rw
from rewright.frontends.triton.compiling import printed_beside
from rewright.ir.errors import RewrightError
from rewright.ops.functions.rounding import ROUND_NEAREST_EVEN
from rewright.ops.functions.transcendental import TANH
from rewright.optimize.running import printed
from rewright.optimize.running.triton_launch import load_module
from rewright.optimize.running.triton_tuning import small_tiles
from tests.kernel import blocks
from tests.optimize.programs import PROGRAMS


@pytest.mark.parametrize(
    "name", ["gated", "grouped", "norm_product", "masked_mean", "gating", "threshold", "quantised_norm"]
)
def test_what_is_printed_is_the_program(name: str) -> None:
    program, args = PROGRAMS[name]()
    found = printed.prove_printed(program, args, tiles=small_tiles)

    assert found.status == "proved", found.reason
    assert found.runs > 0


@pytest.mark.parametrize("name", ["documents", "largest", "router"])
def test_what_is_printed_for_first_tiles_is_the_program(name: str) -> None:
    program, args = PROGRAMS[name]()

    assert printed.prove_printed(program, args).status == "proved"


@pytest.mark.long
def test_tiles_of_a_gpu_are_proved() -> None:
    program, args = PROGRAMS["decode"]()

    assert printed.prove_printed(program, args).status == "proved"


def test_another_program_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed.module_text
    monkeypatch.setattr(printed, "module_text", lambda plan: text(plan).replace("tl.dot(", "-tl.dot("))
    program, args = PROGRAMS["grouped"]()

    assert printed.prove_printed(program, args).status == "refuted"


def test_a_program_of_pytorch_alone_has_no_kernel_to_read() -> None:
    found = printed.prove_printed(torch.mm, (torch.randn(3, 4), torch.randn(4, 5)))

    assert found.status == "proved"


def test_an_optimised_program_says_how_its_kernels_are_known() -> None:
    program, args = PROGRAMS["gated"]()
    fast = rw.optimize(program, args, target="torch", floor=False, remember=False)
    assert "plan = kernels: tested" in fast.explain()

    found = fast.prove_kernels(args)

    assert found.status == "proved", found.reason
    assert "plan = kernels: in Triton, with a GPU's first tiles, proved and audited" in fast.explain()


def test_kernels_of_graphs_are_not_proved() -> None:
    program, args = PROGRAMS["gated"]()
    fast = rw.optimize(rw.capture(program, args), target="torch", floor=False, remember=False)
    with pytest.raises(RewrightError, match="for the plan of a function or module"):
        fast.prove_kernels(args)


def test_what_a_printed_tanh_is_off_by_is_said() -> None:
    program, args = PROGRAMS["bare_norm_product"]()
    found = printed.prove_printed(program, args)

    assert found.status == "proved", found.reason
    assert any("an approximation of tanh, which is off by 2e-8 of its value" in text for text in found.assumptions)


def test_a_printed_tanh_is_off_by_what_is_said() -> None:
    """Over real numbers, with its constants as they are in single precision."""
    written = ("0.3333333333", "0.1333333333", "0.0539682540", "0.0218694885", "2.8853900817779268")
    third, fifth, seventh, ninth, twice = (float(np.float32(number)) for number in written)
    assert TANH.code.triton is not None and all(number in TANH.code.triton.source for number in written)
    for place in (*range(1, 100_001, 7), *range(-100_000, 0, 7)):
        x = place / 5000
        s = x * x
        series = x * (1.0 + s * (-third + s * (fifth + s * (-seventh + s * ninth))))
        found = series if abs(x) < 0.25 else 1.0 - 2.0 / (2.0 ** (twice * x) + 1.0)
        assert abs(found / math.tanh(x) - 1) < 2e-8, x
    assert "1.0 + s * (-0.3333333333 + s * (0.1333333333 + s * (-0.0539682540 + s * 0.0218694885)))" in (
        TANH.code.triton.source
    )


def test_the_same_source_over_another_language_is_read_as_it_is(tmp_path: Path) -> None:
    assert TANH.code.triton is not None
    text = f"import triton\nimport triton.language as tl\n{TANH.code.triton.source}"
    beside = load_module(text, tmp_path).__dict__
    kernel = SimpleNamespace(fn=SimpleNamespace(__globals__=beside))
    assert printed_beside(kernel) == [beside["tanh_"]]
    beside["tl"] = SimpleNamespace()
    assert not printed_beside(kernel)


def test_a_printed_rounding_is_to_the_even_one_of_two() -> None:
    x = torch.tensor([0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.49999997, 8388607.5, 1e30, 3.2, -3.7])
    low = x.floor()
    rest, odd = x - low, low - 2.0 * (0.5 * low).floor()
    up = (rest > 0.5) | ((rest == 0.5) & (odd == 1.0))
    assert torch.equal(torch.where(x == low, x, low + torch.where(up, 1.0, 0.0)), x.round())
    assert ROUND_NEAREST_EVEN.code.triton is not None
    assert "up = (rest > 0.5) | ((rest == 0.5) & (odd == 1.0))" in ROUND_NEAREST_EVEN.code.triton.source


def test_a_function_of_that_name_alone_is_read_as_it_is() -> None:
    args = (torch.randn(40),)
    assert rw.kernel(torch.tanh, blocks.saturated, args).status == "refuted"
    found = rw.kernel(lambda x: x / (1 + x.abs()), blocks.saturated, args)
    assert found.status == "proved", found.reason
    assert not any("approximation" in text for text in found.assumptions)
