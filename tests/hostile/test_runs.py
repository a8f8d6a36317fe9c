"""Programs that were proved equal, or passed as equal, and compute other things on inputs that nobody had drawn."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

import rewright as rw
from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.refine import alarm, objections

beyond_the_proof = pytest.mark.alarm(reason="a proof does not look at infinities and ties yet, and a run does")


def embedding(i: Tensor, e: Tensor) -> Tensor:
    return F.embedding(i, e)


def through_bfloat16(i: Tensor, e: Tensor) -> Tensor:
    return F.embedding(i.to(torch.bfloat16).long(), e)


def verdict_of(left: Any, right: Any, *args: Tensor, **how: Any) -> rw.equiv.Equivalence:
    return rw.equiv(rw.capture(left, args, **how), rw.capture(right, args, **how))


# --- integers: high bits, wrapping, whole numbers in short floats


class Awq(nn.Module):
    """A linear layer whose weights are nibbles of 32-bit integers."""

    def __init__(self, order: list[int]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        packed = torch.randint(-(2**31), 2**31 - 1, (2, 8), dtype=torch.int32, generator=generator)
        self.order, self.scales = order, nn.Parameter(torch.rand(8, generator=generator))
        self.qweight: Tensor
        self.register_buffer("qweight", packed)

    def forward(self, x: Tensor) -> Tensor:
        nibbles = torch.stack([(self.qweight >> (4 * j)) & 15 for j in self.order], -1).float()
        return x @ (nibbles.transpose(1, 2).reshape(16, 8) * self.scales)


@pytest.mark.parametrize("given", [False, True])
def test_nibbles_in_a_wrong_order(given: bool) -> None:
    """Integers were drawn too small to reach the high digits, and values that were given were not run: unknown."""
    left, right = Awq([0, 2, 4, 6, 1, 3, 5, 7]), Awq([0, 4, 1, 5, 2, 6, 3, 7])
    x = torch.randn(3, 16)
    values = ({"qweight": left.qweight, "scales": left.scales},) * 2 if given else None

    assert rw.equiv(rw.capture(left, (x,)), rw.capture(right, (x,)), values).status == "refuted"


def test_a_hash_of_ids_that_wraps() -> None:
    """Proved before: the product wraps for every id above 2147."""
    ids = torch.randint(3000, 50000, (3, 8))

    verdict = verdict_of(lambda i: (i.int() * 1000003) % 1021, lambda i: (i.long() * 1000003) % 1021, ids)

    assert verdict.status == "refuted"
    assert "does not fit i32 and wraps" in verdict.reason


def test_token_ids_that_pass_through_bfloat16() -> None:
    """Proved before, without a note: ids above 256 read other rows."""
    ids, table = torch.arange(300, 320)[None], torch.randn(700, 4)

    verdict = verdict_of(embedding, through_bfloat16, ids, table)

    assert verdict.status == "refuted"
    assert "whole numbers pass through bf16 at test_runs.py" in verdict.reason


def test_few_token_ids_pass_through_bfloat16() -> None:
    """As long as the table has no more rows than bfloat16 holds nothing is lost."""
    ids, table = torch.arange(10, 20)[None], torch.randn(200, 4)

    verdict = verdict_of(embedding, through_bfloat16, ids, table)

    assert verdict.status == "proved"


def rope(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    def rotated(q: Tensor) -> Tensor:
        inverse = 1 / (10000 ** (torch.arange(0, 8, 2).float() / 8))
        angle = torch.outer(torch.arange(q.shape[-2]).to(dtype).float(), inverse)
        angle = torch.cat([angle, angle], -1)
        return q * angle.cos() + torch.cat([-q[..., 4:], q[..., :4]], -1) * angle.sin()

    return rotated


def test_positions_that_pass_through_bfloat16() -> None:
    """Proved before: of positions above 256 every other one, and later all but a few, are other positions."""
    q = torch.randn(1, 300, 8)

    assert verdict_of(rope(torch.float32), rope(torch.bfloat16), q).status == "refuted"
    assert verdict_of(rope(torch.float32), rope(torch.bfloat16), q[:, :200]).status == "proved"


def test_positions_of_any_length_that_pass_through_bfloat16() -> None:
    q = torch.randn(1, 6, 8)

    verdict = verdict_of(rope(torch.float32), rope(torch.bfloat16), q, dynamic={"q": {1: "S"}})

    assert verdict.status == "refuted"


# --- rows of masks and labels in which nothing counts


def scores(q: Tensor, k: Tensor, m: Tensor) -> Tensor:
    return (q @ k.transpose(-1, -2) * 8**-0.5).masked_fill(~m, -math.inf).softmax(-1)


def test_rows_without_a_key_are_left_out_visibly() -> None:
    """Proved before, under an assumption that nobody reads: padded rows are nan on the left and 0 on the right."""
    q, m = torch.randn(2, 4, 5, 8), torch.ones(2, 1, 5, 5, dtype=torch.bool)

    verdict = verdict_of(
        lambda q, k, v, m: scores(q, k, m) @ v, lambda q, k, v, m: scores(q, k, m).nan_to_num(0) @ v, q, q, q, m
    )

    (told,) = [text for text in verdict.assumptions if text.startswith(objections.LEFT_OUT)]
    assert "is nan and 0" in told


def test_padding_of_transformers_is_left_out_visibly() -> None:
    """Proved before without a word: rows of left padding differ between the two attentions of one model."""
    transformers = pytest.importorskip("transformers")
    config = transformers.Qwen2Config(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=20,
    )  # fmt: skip
    model = transformers.Qwen2ForCausalLM(config).eval()

    class Logits(nn.Module):
        def __init__(self, how: str) -> None:
            super().__init__()
            self.model = copy.deepcopy(model)
            self.model.config._attn_implementation = how

        def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
            return self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits

    ids, mask = torch.randint(1, 20, (2, 6)), torch.ones(2, 6, dtype=torch.long)

    verdict = verdict_of(Logits("eager"), Logits("sdpa"), ids, mask)

    assert verdict.status == "proved"
    assert any(text.startswith(objections.LEFT_OUT) for text in verdict.assumptions)


def test_a_rank_without_a_token() -> None:
    """Unknown before, "so no proof is not a bug": where all labels of a rank are ignored, its loss is 0/0 * 0."""

    def sequential(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        return {"l": F.cross_entropy(x, y, ignore_index=-100)}

    def ranks(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        count = (y != -100).sum().float()
        loss = F.cross_entropy(x, y, ignore_index=-100) * count
        dist.all_reduce(loss)
        dist.all_reduce(count)
        return {"l": loss / count}

    def args(rows: int) -> tuple[Tensor, Tensor]:
        return torch.zeros(rows, 5), torch.zeros(rows, dtype=torch.long)

    program = rw.capture_ranks(lambda mesh: (ranks, args(3)), mesh={"dp": 2})

    verdict = rw.refine(rw.capture(sequential, args(6)), program, relations={"x": "Shard(0)", "y": "Shard(0)"})

    assert verdict.status == "refuted"
    assert "rows in which nothing counts" in verdict.reason


# --- infinities and ties


MASK = torch.ones(4, 4).triu(1).bool()


def masked(x: Tensor) -> Tensor:
    return x.masked_fill(MASK, -math.inf)


@beyond_the_proof
@pytest.mark.parametrize(
    "function",
    [lambda x: torch.exp(-masked(x)), lambda x: torch.log(torch.exp(masked(x))), lambda x: torch.floor(masked(x))],
    ids=["exp", "log", "floor"],
)
def test_infinities_do_not_cancel(function: Callable[[Tensor], Tensor]) -> None:
    """The first two were proved: the difference of an infinite number and itself is none."""
    verdict = verdict_of(lambda x: function(x) - function(x), lambda x: torch.zeros_like(x), torch.randn(4, 4))

    assert verdict.status == "refuted"


@beyond_the_proof
def test_an_attention_that_is_not_a_number() -> None:
    """Proved before: scores that are masked are subtracted from themselves after an exponential."""

    def right(x: Tensor, v: Tensor) -> Tensor:
        s = masked(x)
        return torch.softmax(s - (torch.exp(-s) - torch.exp(-s)), -1) @ v

    verdict = verdict_of(lambda x, v: torch.softmax(masked(x), -1) @ v, right, torch.randn(4, 4), torch.randn(4, 3))

    assert verdict.status == "refuted"


class Router(nn.Module):
    def __init__(self, biased: bool) -> None:
        super().__init__()
        self.biased = biased
        self.gate = nn.Linear(8, 6, bias=False)

    def forward(self, x: Tensor, kind: Tensor) -> Tensor:
        found = self.gate(x)
        if self.biased:
            found = found + torch.tensor([0.0, -math.inf])[kind][:, None]
        return found.topk(2, dim=-1).indices


@beyond_the_proof
def test_the_largest_of_a_row_of_infinities() -> None:
    """Proved before: rows whose bias is -inf have only ties, of which the first are chosen."""
    assert verdict_of(Router(True), Router(False), torch.randn(4, 8), torch.tensor([0, 1, 0, 1])).status == "refuted"


def chosen(biased: bool) -> Graph:
    builder = GraphBuilder("left" if biased else "right")
    x = builder.input("logits", ops.Input("logits", TensorType((4, 8), DType.F32)))
    kind = builder.input("kind", ops.Input("kind", TensorType((4, 1), DType.I64)))
    if biased:
        bias = builder.add(ops.Constant(TensorType((2,), DType.F32), (0.0, -math.inf)))
        row = builder.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), bias, kind)
        x = builder.add(ops.Add(), x, builder.add(ops.BroadcastInDim((4, 8), (0,)), row))
    builder.output("chosen", builder.add(ops.TopK(2, "indices"), x))
    return builder.build()


@beyond_the_proof
def test_the_largest_of_a_row_of_infinities_from_a_table() -> None:
    """The same, as a graph."""
    assert rw.equiv(chosen(True), chosen(False)).status == "refuted"


# --- sizes and constants


def window(width: int) -> Callable[[Tensor], Tensor]:
    def attended(q: Tensor) -> Tensor:
        places = torch.arange(q.shape[0])
        near = (places[:, None] - places[None]).abs() < width
        return (q @ q.T).masked_fill(~near, 0.0) @ q

    return attended


def test_windows_that_are_longer_than_the_captured_size() -> None:
    """Unknown before: at six tokens a window of eight and one of nine are the same."""
    verdict = verdict_of(window(8), window(9), torch.randn(6, 4), dynamic={"q": {0: "S"}})

    assert verdict.status == "refuted"
    assert verdict.findings[0].counterexample is not None
    assert verdict.findings[0].counterexample.sizes["q"][0] > 8


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x: torch.round(x) + 1, lambda x: torch.round(x + 1)),
        (lambda x: torch.round(x), lambda x: torch.floor(x + 0.5)),
        (lambda x: F.softplus(x, threshold=20), lambda x: F.softplus(x, threshold=5)),
        (lambda x: (x > 0).float(), lambda x: (x >= 0).float()),
        (lambda x: torch.where(x > 100, 2 * x, x), lambda x: x),
        (lambda x: x.clamp(-1e4, 1e4), lambda x: x),
    ],
    ids=["halves", "rounding", "threshold", "order", "branch", "clamp"],
)
def test_constants_halves_and_ties(left: Callable[[Tensor], Tensor], right: Callable[[Tensor], Tensor]) -> None:
    """Unknown before, with the words that values agree on random inputs."""
    assert verdict_of(left, right, torch.randn(8, 16)).status == "refuted"


def test_a_rare_token() -> None:
    """Unknown before: constants of the right program were drawn, and not those of the left one."""
    ids, table = torch.randint(0, 90000, (8,)), torch.randn(90000, 2)

    def left(i: Tensor, e: Tensor) -> Tensor:
        return F.embedding(torch.where(i == 77777, 0, i), e)

    assert verdict_of(left, embedding, ids, table).status == "refuted"


# --- the alarm


def sums(rows: bool) -> Graph:
    builder = GraphBuilder("sums")
    x = builder.input("x", ops.Input("x", TensorType((4, 8), DType.F32)))
    if rows:
        x = builder.add(ops.Multiply(), x, builder.add(ops.Constant(TensorType((4, 8), DType.F32), (1.001,))))
    builder.output("sum", builder.add(ops.Reduce("sum", (1,)), x))
    return builder.build()


@pytest.mark.alarm(reason="the alarm is what is tested")
def test_an_alarm_is_unknown_and_can_be_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong proof is made up here; what contradicts it is written into a folder."""
    claimed = rw.equiv(sums(False), sums(False))
    assert claimed.status == "proved"
    one = Mesh.of({"rank": 1})
    held = {"x": place((4, 8), one, ("Replicate()",))}
    program = RankProgram((sums(True),), one, held, {})
    pair = objections.Run(sums(False), program, objections.replicated_outputs(sums(False)))

    verdict = objections.challenge_verdict(claimed, pair, tmp_path)

    assert verdict.status == "unknown"
    assert verdict.reason.startswith(alarm.PREFIX)
    (folder,) = tmp_path.iterdir()
    assert str(folder) in verdict.reason
    about, (first, second) = alarm.rerun(folder)
    index = tuple(about["index"])
    assert not np.isclose(first["sum"][index], second["sum"][index], rtol=1e-4)
    alarm.main(str(folder))
    assert "sum" in capsys.readouterr().out
