"""The Triton kernels that ``optimize`` prints are read and proved as any others are."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.running import printed
from rewright.optimize.running.triton_tuning import small_tiles
from tests.optimize.programs import PROGRAMS


@pytest.mark.parametrize("name", ["gated", "grouped", "norm_product", "masked_mean"])
def test_what_is_printed_is_the_program(name: str) -> None:
    program, args = PROGRAMS[name]()
    found = printed.prove_printed(program, args, tiles=small_tiles)

    assert found.status == "proved", found.reason
    assert found.runs > 0


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
