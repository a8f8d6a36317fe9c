"""What there is once for a row is a vector of one axis in a Triton kernel, and a column where it meets a tile."""

import pytest
import torch

import rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.printing.tiles.kernel import lower
from rewright.optimize.printing.triton.renderer import render
from rewright.optimize.proving.rewriting import rewritten


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v


def text_of(dtype: torch.dtype) -> str:
    given = [torch.randn(2, 512, 64, generator=torch.Generator().manual_seed(n)).to(dtype) for n in range(3)]
    plan = Planner(prepare_graph(rw.capture(attention, given))).plan()
    better = rewritten(plan)
    plan = plan if better is None else better.plan
    return "\n".join(render(lower(plan, kernel)) for kernel in plan.kernels)


def test_states_of_rows_have_one_axis_and_those_of_features_two():
    text = text_of(torch.float32)

    assert 'tl.full([BM], float("-inf"), tl.float32)' in text and "tl.full([BM, 64], 0.0, tl.float32)" in text
    assert "tl.max(whole" in text and "1)[:, None]" not in text


@pytest.mark.parametrize(("dtype", "is_fused"), [(torch.float16, True), (torch.bfloat16, True), (torch.float32, False)])
def test_an_exponential_of_a_score_less_its_maximum_is_one_product_in_16_bits_alone(dtype: torch.dtype, is_fused: bool):
    assert ("shift" in text_of(dtype)) == is_fused
