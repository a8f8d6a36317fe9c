"""FlexAttention against attention with the same scores and masks written out, as values and as a proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._higher_order_ops.flex_attention import FlexAttentionHOP
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

import rewright as rw
from rewright.interp.program import run
from rewright.ir.errors import CaptureError

HEADS, TOKENS, WIDTH = 2, 6, 4
DOCUMENT = torch.tensor([0, 0, 1, 1, 1, 2])
Mod = Callable[..., torch.Tensor]


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


def window(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (i >= j) & (i - j < 3)


def documents(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (DOCUMENT[i] == DOCUMENT[j]) & (i >= j)


def by_head(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (h == 0) | (i >= j)


def same(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return score


def capped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return 20 * torch.tanh(score / 20)


def sloped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return score + torch.exp2(-4.0 * (h + 1)) * (j - i)


def masked_score(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return torch.where(i >= j, score, -float("inf"))


CASES: dict[str, tuple[Mod, Mod | None]] = {
    "plain": (same, None),
    "causal": (same, causal),
    "window": (same, window),
    "documents": (same, documents),
    "mask by head": (same, by_head),
    "soft-cap": (capped, causal),
    "ALiBi": (sloped, causal),
    "mask in the score": (masked_score, None),
}


def mask_of(mask: Mod | None, size: int = 2) -> BlockMask | None:
    heads = HEADS if mask is by_head else None
    return None if mask is None else create_block_mask(mask, None, heads, TOKENS, TOKENS, "cpu", BLOCK_SIZE=size)


class Flexible(nn.Module):
    def __init__(self, score: Mod, mask: BlockMask | None, shared: int = 1) -> None:
        super().__init__()
        self.score, self.mask, self.shared = score, mask, shared
        self.values = nn.Linear(WIDTH, WIDTH)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        v = self.values(v)
        return flex_attention(q, k, v, self.score, self.mask, enable_gqa=self.shared > 1)


class WrittenOut(Flexible):
    def __init__(self, score: Mod, mask: Mod | None, shared: int = 1) -> None:
        super().__init__(score, None, shared)
        self.kept = mask

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        k, v = (x.repeat_interleave(self.shared, 1) for x in (k, self.values(v)))
        places = torch.arange(HEADS)[:, None, None], torch.arange(TOKENS)[:, None], torch.arange(TOKENS)
        scores = self.score(q @ k.transpose(-1, -2) * WIDTH**-0.5, 0, *places)
        if self.kept is not None:
            scores = scores.masked_fill(~self.kept(0, *places), -float("inf"))
        return torch.softmax(scores, -1) @ v


def arguments(shared: int = 1) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(torch.randn(2, heads, TOKENS, WIDTH) for heads in (HEADS, HEADS // shared, HEADS // shared))


def trained(module: nn.Module) -> Callable[..., Any]:
    def step(model: nn.Module, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = model(q, k, v).square().sum()
        loss.backward()
        return {"loss": loss}

    return step


@pytest.mark.parametrize("case", CASES)
def test_a_step_computes_what_the_written_out_one_does(case: str) -> None:
    score, mask = CASES[case]
    module, other = Flexible(score, mask_of(mask)), WrittenOut(score, mask)
    other.load_state_dict(module.state_dict())
    args = tuple(x.requires_grad_() for x in arguments())
    graph = rw.capture(trained(module), (module, *args))
    inputs = {name: x.detach().double().numpy() for name, x in module.named_parameters()}
    inputs |= {name: x.detach().double().numpy() for name, x in zip("qkv", args, strict=True)}
    found = run(graph, inputs)
    loss = other(*args).square().sum()
    loss.backward()
    np.testing.assert_allclose(found["loss"], loss.item(), rtol=1e-5)
    for name, x in [*zip("qkv", args, strict=True), *other.named_parameters()]:
        assert x.grad is not None
        np.testing.assert_allclose(found[f"grad:{name}"], x.grad.numpy(), rtol=1e-4, atol=1e-5)
    assert "assumptions" not in graph.metadata


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", CASES)
def test_it_is_proved_equal_to_the_written_out_one(case: str) -> None:
    score, mask = CASES[case]
    left = rw.capture(WrittenOut(score, mask), arguments())
    verdict = rw.equiv(left, rw.capture(Flexible(score, mask_of(mask)), arguments()))
    assert verdict.status == "proved", verdict.reason


def test_another_window_is_refuted() -> None:
    left = rw.capture(WrittenOut(same, causal), arguments())
    assert rw.equiv(left, rw.capture(Flexible(same, mask_of(window)), arguments())).status == "refuted"


def test_heads_share_keys_and_values() -> None:
    left = rw.capture(WrittenOut(same, causal, 2), arguments(2))
    verdict = rw.equiv(left, rw.capture(Flexible(same, mask_of(causal), 2), arguments(2)))
    assert verdict.status == "proved", verdict.reason


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, where it first compiles
def test_a_compiled_program() -> None:
    compiled = torch.compile(flex_attention)
    left = rw.capture(WrittenOut(same, documents), arguments())

    class Compiled(Flexible):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return compiled(q, k, self.values(v), block_mask=self.mask)

    assert rw.equiv(left, rw.capture(Compiled(same, mask_of(documents)), arguments())).status == "proved"


def test_a_program_that_runs() -> None:
    left = rw.capture(WrittenOut(capped, window), arguments())
    ran = rw.capture(Flexible(capped, mask_of(window)), arguments(), run=True)
    assert rw.equiv(left, ran).status == "proved"


@pytest.mark.parametrize(("ranks", "mask"), [("traced", window), ("threads", None), ("processes", None)])
def test_ranks_with_some_heads_each(ranks: Any, mask: Mod | None) -> None:
    """Ranks that run together enter and leave their captures in any order, and leave nothing behind."""

    def build(mesh: DeviceMesh) -> Any:
        own = slice(mesh.get_rank(), mesh.get_rank() + 1)
        q, k, v = (x[:, own] for x in arguments())
        return Flexible(capped, mask_of(mask)), (q, k, v)

    before = FlexAttentionHOP.__call__
    program = rw.capture_ranks(build, mesh={"tp": HEADS}, ranks=ranks)
    assert FlexAttentionHOP.__call__ is before
    sequential = rw.capture(Flexible(capped, mask_of(mask)), arguments(), run=ranks != "traced")
    verdict = rw.refine(sequential, program, relations=dict.fromkeys("qkv", "Shard(1)"))
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["output"].placement == "Shard(1)"


def test_a_block_mask_that_is_made_in_the_program_is_taken_at_its_word() -> None:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return flex_attention(q, k, v, block_mask=mask_of(causal))

    assert "block masks" in rw.capture(program, arguments()).metadata["assumptions"]


@pytest.mark.parametrize("mask", [None, window])
def test_a_block_mask_that_differs_from_its_function_is_an_error(mask: Mod | None) -> None:
    blocks: Any = mask_of(causal)
    if mask is None:
        blocks = BlockMask.from_kv_blocks(blocks.kv_num_blocks, blocks.kv_indices, BLOCK_SIZE=2)
    else:
        blocks.mask_mod = mask
    with pytest.raises(CaptureError, match="a block mask leaves out scores"):
        rw.capture(Flexible(same, blocks), arguments())
