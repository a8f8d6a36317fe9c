"""Triton: values in the interpreter, and code for GPUs that are not there. Both need a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.versions import has

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

VALUES = """
import sys, torch, rewright as rw
from tests.optimize.programs import PROGRAMS
for name in sys.argv[1:]:
    program, args = PROGRAMS[name]()
    found = rw.optimize(program, args, target="cuda", allow="tested")
    assert found.status == "proved", (name, found.reason)
    mine, expected = found(*args), program(*args)
    several = isinstance(mine, tuple)
    for a, b in zip(mine if several else [mine], expected if several else [expected]):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=2e-5)
"""
FLOAT32 = """
import torch, rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.running.triton_launch import compile_kernel
from tests.optimize.programs import PROGRAMS
program, _ = PROGRAMS["causal"]()
args = tuple(torch.empty(1, 2, 256, 64, device="meta") for _ in range(3))
training = torch.nn.BatchNorm1d(5)
given = torch.empty(32, 5, device="meta")
for program, args, multiplies in ((program, args, True), (training, (given,), False)):
    plan = Planner(prepare_graph(rw.capture(program, args))).plan()
    for kernel in plan.kernels:
        made = compile_kernel(plan, kernel, 80)
        assert (".tf32." in made.asm["ptx"]) == multiplies, kernel.name
"""
DESCRIBED = """
from rewright.optimize.running import triton_launch
from rewright.optimize.running.triton_tuning import Tiles
described = Tiles(16, 32, descriptors=True, ahead=True)
triton_launch.small_tiles = lambda kernel: described if kernel.has_products else Tiles(4, 16)
"""
CODE = """
import sys, torch, rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.running.triton_launch import compile_kernel
from rewright.optimize.running.triton_tuning import Tiles
from tests.optimize.programs import PROGRAMS
program, _ = PROGRAMS["causal"]()
args = tuple(torch.empty(1, 2, 256, 64, dtype=torch.float16, device="meta") for _ in range(3))
plan = Planner(prepare_graph(rw.capture(program, args))).plan()
for kernel in plan.kernels:
    for capability in map(int, sys.argv[1:]):
        for tiles in (Tiles(64, 64, 4, 2), Tiles(128, 64, 8, 3, descriptors=True, ahead=True)):
            made = compile_kernel(plan, kernel, capability, tiles)
            assert made.metadata.shared <= 232448, made.metadata.shared
            assert any(word in made.asm["ptx"] for word in ("wgmma.mma_async", "mma.sync", "tcgen05.mma")), kernel.name
            copied = tiles.descriptors and capability >= 90  # by the device, tile by tile
            assert ("cp.async.bulk.tensor" in made.asm["ptx"]) == copied, capability
"""
PLACES = """
import sys, torch, rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.running.triton_launch import compile_kernel
x = torch.empty(64, 4096, dtype=torch.float16, device="meta")
plan = Planner(prepare_graph(rw.capture(lambda x: tuple(x.max(-1)), (x,)))).plan()
assert [len(kernel.sweeps) for kernel in plan.kernels] == [1]
for capability in (80, 90, 100):
    compile_kernel(plan, plan.kernels[0], capability)
"""
PIECES = """
import sys, torch, rewright as rw
from rewright.optimize.running import targets
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.planning.splitting import split_plan
from tests.optimize.programs import PROGRAMS
from tests.optimize.planning.test_splitting import plan_of, run, tensors
for name in sys.argv[1:]:
    program, args = PROGRAMS[name]()
    split = split_plan(plan_of(program, args), targets.machine("cuda"), 3)
    assert len(split.kernels) > len(plan_of(program, args).kernels), name
    for mine, expected in zip(run(split, "cuda", program, args), tensors(program(*args))):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=2e-5)
"""
CHEAPER = """
import sys, torch, rewright as rw
from rewright.optimize.running import targets
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.rewriting import rewritten
from rewright.optimize.planning.splitting import split_plan
from rewright.optimize.running.triton_launch import compile_kernel, module_text
from rewright.optimize.running.triton_tuning import Tiles
from tests.optimize.programs import PROGRAMS
program, _ = PROGRAMS["decode"]()
q, k = (torch.empty(1, 4, n, 64, dtype=torch.float16, device="meta") for n in (1, 10000))
plan = Planner(prepare_graph(rw.capture(program, (q, k, k)))).plan()
split = split_plan(rewritten(plan).plan, targets.machine("cuda"))
assert len(split.kernels) == 2
text = module_text(split)
assert "tl.exp2(" in text and "tl.exp(" not in text
for kernel in split.kernels:
    for capability in (80, 90, 100):
        made = compile_kernel(split, kernel, capability)
        assert made.metadata.shared <= 232448, made.metadata.shared
        units = any(word in made.asm["ptx"] for word in ("wgmma.mma_async", "mma.sync", "tcgen05.mma"))
        assert units == (kernel.features is not None), kernel.name
"""
MASKED = """
import torch, rewright as rw
from tests.optimize.scalars.test_finite import added, agrees, arguments, biased, program
from tests.optimize.scalars.test_finite import random_mask, selected, without_maximum
for seed in range(3):
    run = program([selected, added, without_maximum][seed], random_mask(seed))
    found = rw.optimize(run, arguments(150), target="cuda")
    assert found.status == "proved", found.reason
    agrees(found(*arguments(150)), run(*arguments(150)))
bias = torch.zeros(150)
bias[:70] = -float("inf")
found = rw.optimize(biased, (*arguments(150), bias), target="cuda")
assert found.status == "proved", found.reason
agrees(found(*arguments(150), bias), biased(*arguments(150), bias))
"""
MASKED_CODE = """
import sys, torch, rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.running.triton_launch import compile_kernel, module_text
from tests.optimize.scalars.test_finite import program, random_mask, selected
args = tuple(torch.empty(1, 2, 512, 64, dtype=torch.float16, device="meta") for _ in range(3))
plan = Planner(prepare_graph(rw.capture(program(selected, lambda i, j: (j < i) & (j // 64 == i // 64)), args))).plan()
assert "sound" in module_text(plan)
for kernel in plan.kernels:
    for capability in (80, 90, 100):
        compile_kernel(plan, kernel, capability)
"""
WITH_NAN = """
import torch, rewright as rw
from tests.optimize.online.test_resetting import places, rows
found = rw.optimize(places, (rows(83),), target="cuda")
assert found.status == "proved", found.reason
for mine, expected in zip(found(rows(83)), places(rows(83))):
    torch.testing.assert_close(mine, expected, equal_nan=True)
"""
MEANS = """
import torch, rewright as rw
from tests.optimize.online.test_estimates import MOMENTS, rows
for program in MOMENTS:
    x = rows(0.5)
    found = rw.optimize(program, (x,), target="cuda")
    assert found.status == "proved" and len(found.plan.kernels[0].sweeps) == 1, (program, found.reason)
    torch.testing.assert_close(found(x).double(), program(x.double()), rtol=2e-5, atol=1e-5)
"""
EDGES = """
import sys, torch, rewright as rw
def program(x):
    several = torch.tanh(x), torch.expm1(x), torch.log1p(x.abs()), torch.round(2 * x), torch.pow(x.abs(), 0.37), x ** 3
    return *several, torch.relu(x), x.clamp(-1, 2), torch.minimum(x, 3 * x), torch.sign(x)
edges = [0.0, 1e-40, 1e-30, 1e-6, 0.1, 0.2499, 0.2501, 0.5, 1.0, 1.25, 2.5, 88.0, float("nan")]
x = torch.tensor([*edges, *(-e for e in edges), *torch.linspace(-3, 3, 101).tolist()])
found = rw.optimize(program, (x,), target="cuda")
assert found.status == "proved", found.reason
for mine, expected in zip(found(x), program(x.double())):
    torch.testing.assert_close(mine.double(), expected, rtol=1e-6, atol=1e-38, equal_nan=True)
"""
COMPILED_EDGES = """
import sys, torch, rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.running.triton_launch import compile_kernel
def program(x):
    y = torch.round(torch.tanh(x)) + torch.expm1(x) * torch.log1p(x.abs()) + torch.pow(x.abs(), 0.37)
    return torch.where(torch.isfinite(y), y, 0.0)
plan = Planner(prepare_graph(rw.capture(program, (torch.empty(64, 4096, device="meta"),)))).plan()
for kernel in plan.kernels:
    for capability in (80, 90, 100):
        compile_kernel(plan, kernel, capability)
"""


def run(text: str, *arguments: str, interpret: bool) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1" if interpret else "0"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.skipif(not has("triton", "3.7"), reason="the interpreter of Triton 3.6 takes no arrays of NumPy 2.4")
@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "names",
    [
        ("causal", "grouped"),
        ("residual_norm", "loss", "rotary"),
        ("threshold", "decode", "deviation"),
        ("largest", "router", "bare_norm_product"),
        ("sinks", "differential", "documents", "empty_rows", "log_total"),
        ("weights_entropy", "relative", "smoothed_loss", "quantised_norm", "masked_mean"),
    ],
)
def test_values_in_the_interpreter(names: tuple[str, ...]) -> None:
    run(VALUES, *names, interpret=True)


@pytest.mark.long
@pytest.mark.parametrize("names", [("causal", "grouped", "relative"), ("sinks", "threshold", "decode")])
def test_values_of_tiles_through_descriptors_in_the_interpreter(names: tuple[str, ...]) -> None:
    run(DESCRIBED + VALUES, *names, interpret=True)


@pytest.mark.long
def test_places_compile() -> None:
    run(PLACES, interpret=False)


@pytest.mark.long
@pytest.mark.parametrize("names", [("threshold", "deviation", "loss"), ("decode", "causal")])
def test_pieces_in_the_interpreter(names: tuple[str, ...]) -> None:
    run(PIECES, *names, interpret=True)


@pytest.mark.long
def test_pieces_and_powers_of_two_compile() -> None:
    run(CHEAPER, interpret=False)


@pytest.mark.slow
def test_moments_in_the_interpreter() -> None:
    run(MEANS, interpret=True)


@pytest.mark.slow
def test_columns_of_rows_without_elements_in_the_interpreter() -> None:
    run(MASKED, interpret=True)


@pytest.mark.long
def test_a_look_at_rows_before_tiles_are_skipped_compiles() -> None:
    run(MASKED_CODE, interpret=False)


@pytest.mark.long
def test_places_with_nan_in_the_interpreter() -> None:
    run(WITH_NAN, interpret=True)


@pytest.mark.parametrize("capabilities", [("90",), pytest.param(("80", "100"), marks=pytest.mark.long)])
def test_kernels_compile_and_use_the_matrix_units(capabilities: tuple[str, ...]) -> None:
    run(CODE, *capabilities, interpret=False)


def test_float32_on_the_matrix_units_and_numbers_that_are_stored_compile() -> None:
    """A stored number was cast as a tensor (``(0.1).to(tl.float32)``), which only the interpreter took."""
    run(FLOAT32, interpret=False)


def test_functions_that_triton_has_not_are_right_at_their_edges() -> None:
    run(EDGES, interpret=True)


@pytest.mark.long
def test_functions_that_triton_has_not_compile() -> None:
    run(COMPILED_EDGES, interpret=False)
