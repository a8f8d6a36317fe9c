"""Gluon: values of its kernels in an emulator, what is refused, and code for a GPU that is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attention

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.planning.outline import Outline
from rewright.optimize.planning.plan import Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.printing.gluon.renderer import module_text
from rewright.optimize.printing.tiles.kernel import lower
from rewright.optimize.proving.rewriting import rewritten
from rewright.optimize.running.execution import Runner
from tests.optimize.printing.gluon import emulator
from tests.optimize.printing.gluon.emulator import Emulator
from tests.optimize.printing.test_triton import run

WIDTH = 64
COMPILED = """
import sys, torch, rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.running.triton_launch import compile_kernel
from rewright.optimize.running.triton_tuning import Tiles
from tests.optimize.programs import PROGRAMS
program, _ = PROGRAMS["causal"]()
args = tuple(torch.empty(1, 2, 256, 64, dtype=torch.float16, device="meta") for _ in range(3))
plan = Planner(prepare_graph(rw.capture(program, args))).plan()
for capability in map(int, sys.argv[1:]):
    for tiles in (Tiles(64, 64, 4, 3, True, specialised=True), Tiles(128, 64, 8, 2, True, specialised=True)):
        made = compile_kernel(plan, plan.kernels[0], capability, tiles)
        assert "ttg.warp_specialize" in made.asm["ttgir"], (capability, tiles)
"""
TILES = {"BM": 64, "BN": 32, "STAGES": 2}
Program = Callable[..., torch.Tensor]


def full(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v)


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k, v, is_causal=True)


def grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention(q, k[:, :1], v[:, :1], is_causal=True, enable_gqa=True)


def capped_in_a_window(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q.float() @ k.float().transpose(-1, -2) / math.sqrt(WIDTH)
    place = torch.arange(q.shape[2])
    seen = (place[:, None] >= place) & (place[:, None] - place < 50)
    scores = (10 * torch.tanh(scores / 10)).masked_fill(~seen, -torch.inf)
    return (torch.softmax(scores, -1).to(v.dtype) @ v).to(v.dtype)


def blocks_and_the_first(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Tiles between a block on the diagonal and the first keys are skipped."""
    place = torch.arange(q.shape[2])
    seen = ((place[:, None] // 40 == place // 40) | (place < 4)) & (place <= place[:, None])
    scores = (q.float() @ k.float().transpose(-1, -2) / math.sqrt(WIDTH)).masked_fill(~seen, -torch.inf)
    return torch.softmax(scores, -1).to(v.dtype) @ v


def received(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The attention that each key receives, which is a kernel over columns."""
    scores = (q.float() @ k.float().transpose(-1, -2) / math.sqrt(WIDTH)).tril()
    return torch.softmax(scores, -1).sum(-2)


def inputs(length: int, dtype: torch.dtype = torch.float16, width: int = WIDTH) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(length)
    return [torch.randn(1, 2, length, width, generator=made).to(dtype) for _ in range(3)]


def planned(program: Program, given: Sequence[torch.Tensor]) -> Plan:
    return rewritten(Planner(prepare_graph(rw.capture(program, tuple(given)))).plan()).plan


def emulated(plan: Plan, given: Sequence[torch.Tensor], change: Callable[[str], str] = str) -> torch.Tensor:
    """What the kernels of a plan compute in the emulator, block by block."""
    launches = {}
    for kernel in plan.kernels:
        function = lower(plan, kernel)
        text = change(module_text(function))
        blocks = -(-kernel.row.count // TILES["BM"]) * math.prod(loop.count for loop in kernel.grid)

        def launch(
            tensors: Sequence[torch.Tensor], text: str = text, name: str = kernel.name, blocks: int = blocks
        ) -> None:
            for program in range(blocks):
                Emulator(program, seed=100 * program).run(text, name, tensors, **TILES)

        launches[kernel.name] = function.tensors, launch
    found = Runner(Outline.of(plan), launches)(dict(zip(plan.graph.inputs, given, strict=True)))
    (output,) = found.values()
    return output


def check_values(program: Program, given: Sequence[torch.Tensor], change: Callable[[str], str] = str) -> None:
    """Check what the kernels of a program compute in the emulator."""
    found, expected = emulated(planned(program, given), given, change), program(*(t.double() for t in given))
    torch.testing.assert_close(found.double(), expected.double(), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("program", [full, causal, grouped, capped_in_a_window, blocks_and_the_first, received])
@pytest.mark.parametrize("length", [64, 150])
def test_kernels_with_specialised_warps_compute_the_program(program: Program, length: int) -> None:
    check_values(program, inputs(length))


WAIT, PHASE = (
    "    mbarrier.wait(ring[1].index(count % STAGES), count // STAGES % 2)\n",
    "count // STAGES % 2)\n    return",
)
FREE, TAKEN = (
    "    mbarrier.wait(ring[2].index(place), (count // STAGES + 1) % 2)\n",
    "    return ring[0].index(count % STAGES)",
)
MUTANTS = {
    "a tile is not waited for": (WAIT, ""),
    "a place is not waited for": (FREE, ""),
    "the phase of a tile is the one before": (PHASE, "(count // STAGES + 1) % 2)\n    return"),
    "a tile is released before it is read": (TAKEN, f"    release_tile(ring, count, STAGES)\n{TAKEN}"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_emulator_sees_a_barrier_that_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "PATIENCE", 10)
    before, after = MUTANTS[name]

    def changed(text: str) -> str:
        assert before in text
        return text.replace(before, after)

    with pytest.raises((AssertionError, TimeoutError)):
        check_values(causal, inputs(150), changed)


@pytest.mark.parametrize(
    ("dtype", "width", "why"),
    [(torch.float32, WIDTH, "tiles hold f32"), (torch.float16, 60, "reads no tiles through descriptors")],
)
def test_other_kernels_are_refused_with_the_reason(dtype: torch.dtype, width: int, why: str) -> None:
    plan = planned(full, inputs(64, dtype, width))
    with pytest.raises(RewrightError, match=f"{why}.*; use tiles without"):
        module_text(lower(plan, plan.kernels[0]))


@pytest.mark.long
def test_kernels_compile_for_gpus_that_are_not_there() -> None:
    run(COMPILED, "90", "100", interpret=False)
