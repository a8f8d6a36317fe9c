"""Differences between implementations that made public bug reports: a right pair and a wrong one for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from rewright.refine.verdict import Finding
from tests.equiv.decoders import PLAIN, captured

OTHER: dict[str, Any] = {"attention": "sdpa", "norm": "power", "repeat": "interleave"}
SAME: dict[str, Any] = {"norm": "power"}
WIDTH, HEADS = 8, 2


@dataclass(frozen=True)
class Bug:
    """A model, how the second implementation is written, what is wrong in it, and what is to be named.

    Nothing is wrong in programs that differ by their casts alone: there ``kind`` is empty and both pairs are proved.
    """

    threads: str
    model: Mapping[str, Any]
    wrong: Mapping[str, Any]
    kind: str = ""
    text: str = ""
    """A part of the source line of one of the two operators that are named."""
    module: str = "layers.0"
    other: Mapping[str, Any] = field(default_factory=lambda: OTHER)
    is_wrong: bool = True

    def pair(self, dtype: torch.dtype, *, wrong: bool) -> Equivalence:
        """The verdict on one of the two pairs."""
        left = PLAIN.but(dtype=dtype, **self.model)
        right = left.but(**self.other)
        return equiv(captured(left), captured(right.but(**self.wrong) if wrong else right))


@dataclass(frozen=True)
class RankBug:
    """A model on one device, a rank of the second implementation, and what a rank is given, rightly and wrongly."""

    threads: str
    ranks: int
    left: Callable[[torch.dtype], nn.Module]
    right: Callable[[torch.dtype, int], nn.Module]
    given: Sequence[Mapping[str, str]]
    kind: str = ""
    text: str = ""
    module: str = ""
    is_wrong: bool = True

    def pair(self, dtype: torch.dtype, *, wrong: bool) -> Equivalence:
        """The verdict on one of the two pairs."""
        x = torch.zeros(3, WIDTH, dtype=dtype)
        made = rw.capture_ranks(lambda _: (self.right(dtype, self.ranks), (x,)), {"tp": self.ranks})
        return equiv(rw.capture(self.left(dtype), (x,)), made, relations=self.given[wrong])


def named(bug: Bug | RankBug, findings: Sequence[Finding]) -> int:
    """Which finding is the first that names what is wrong, counted from one; 0 where none does."""
    return next((number for number, finding in enumerate(findings, 1) if _names(bug, finding)), 0)


def _names(bug: Bug | RankBug, finding: Finding) -> bool:
    places = [span for span in (finding.sequential, finding.distributed) if span is not None]
    lines = [Path(span.file).read_text().splitlines()[span.line - 1] for span in places]
    is_there = any(bug.text in line for line in lines) and any(bug.module in span.module_path for span in places)
    return finding.kind.startswith(bug.kind) and is_there


# --- ranks


class Fused(nn.Module):
    """``down(silu(gate x) * up x)``, both in one weight; a rank has some rows of each."""

    def __init__(self, dtype: torch.dtype, ranks: int = 1) -> None:
        super().__init__()
        self.ranks = ranks
        self.gate_up = nn.Linear(WIDTH, 2 * WIDTH // ranks, bias=False, dtype=dtype)
        self.down = nn.Linear(WIDTH // ranks, WIDTH, bias=False, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(x).chunk(2, -1)
        y = self.down(F.silu(gate) * up)
        if self.ranks > 1:
            dist.all_reduce(y)
        return y


class Keys(nn.Module):
    """Keys that are normed over all heads; a rank has one head, several ranks the same one."""

    def __init__(self, dtype: torch.dtype, ranks: int = 1) -> None:
        super().__init__()
        self.ranks, self.size = ranks, WIDTH // HEADS
        width = self.size if ranks > 1 else WIDTH
        self.k = nn.Linear(WIDTH, width, bias=False, dtype=dtype)
        self.norm = nn.Parameter(torch.ones(width, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keys = self.k(x)
        total = keys.float().square().sum(-1, keepdim=True)
        if self.ranks > 1:
            dist.all_reduce(total)
        each = WIDTH * max(self.ranks // HEADS, 1)
        keys = (keys * torch.rsqrt(total / each + 1e-6)).to(x.dtype) * self.norm
        if self.ranks == 1:
            return keys
        parts = [torch.empty_like(keys) for _ in range(self.ranks)]
        dist.all_gather(parts, keys)
        return torch.cat(parts[:: self.ranks // HEADS], -1)


def _fused(*, halves: bool) -> dict[str, str]:
    own = {f"gate_up.weight@{r}": f"concat([gate_up.weight[{4 * r}:{4 * r + 4}], "
           f"gate_up.weight[{4 * r + 8}:{4 * r + 12}]], axis=0)" for r in (0, 1)}  # fmt: skip
    shared = {"down.weight": "Shard(1)", "x": "Replicate()"}
    return shared | ({"gate_up.weight": "Shard(0)"} if halves else own)


def _keys(head: Callable[[int], int]) -> dict[str, str]:
    size = WIDTH // HEADS
    keys = {f"k.weight@{r}": f"k.weight[{r // 2 * size}:{r // 2 * size + size}]" for r in range(4)}
    gains = {f"norm@{r}": f"norm[{head(r) * size}:{head(r) * size + size}]" for r in range(4)}
    return {**keys, **gains, "x": "Replicate()"}


# --- all of them

_MIXTURE = {"experts": 4, "layers": 1}
_CORRECTED = {**_MIXTURE, "router_bias": "choice"}
_LATENT = {"latent": 8, "eps": 1e-4}
_LLAMA3 = {"scaling": 8.0, "context": 8, "sequence": 16}

BUGS: dict[str, Bug | RankBug] = {
    "erf for tanh": Bug("vllm#3411", {"activation": "gelu_tanh"}, {"activation": "gelu"}, "activation", "F.gelu(x"),
    "no soft-cap": Bug("vllm#7419", {"softcap": 3.0}, {"softcap": None}, "soft_cap", "softcap", other=SAME),
    "a layer without a window gets the global one": Bug(
        "vllm#21863", {"windows": (4, None)}, {"windows": (4, 8)}, "window", "style.window", "layers.1"
    ),
    "llama3 rotary scaling ignored": Bug(
        "vllm#6689", _LLAMA3, {"context": None, "scaling": 1.0}, "rotary", "positions.float()"
    ),
    "a window too long by one": Bug("vllm#3385", {"window": 4}, {"window": 5}, "window_off_by_one", "style.window", ""),
    "rotary on a layer that has none": Bug(
        "vllm#23918",
        {"rotary_layers": (True, False)},
        {"rotary_layers": None},
        "rotary",
        "x[..., : width // 2]",
        "layers.1",
    ),
    "halves rotated for neighbours": Bug(
        "vllm#747", {"rotary": "pairs"}, {"rotary": "half"}, "rotary", "x.unflatten(-1, (-1, 2))"
    ),
    "no factor of logits": Bug(
        "vllm#52158", {"logits_scale": 0.25}, {"logits_scale": None}, "missing_scale", "logits_scale", ""
    ),
    "a softmax after the choice for one before": Bug(
        "vllm#43223",
        {**_MIXTURE, "router": "softmax"},
        {"router": "chosen_only"},
        "softmax_axes",
        "torch.softmax",
        other=SAME,
    ),
    "negative scores lose against zero": Bug("vllm#43223", _MIXTURE, {"router": "zeroed"}, "", "torch.", other=SAME),
    "the default eps in a latent norm": Bug(
        "transformers#44261", _LATENT, {"latent_eps": 1e-6}, "eps", "s.eps", "latent_norm"
    ),
    "a wrong factor on cosine and sine": Bug(
        "vllm#5628", {"rotary_factor": 1.19}, {"rotary_factor": 1.24}, "rotary_scale", "style.rotary_factor"
    ),
    "the part that is rotated halved twice": Bug(
        "vllm#30384", {"head": 8, "rotary_width": 4}, {"rotary_width": 2}, "rotary", "rest"
    ),
    "the norm of queries across heads": Bug(
        "vllm#16311", {"query_norm": "plain"}, {"query_norm": "plain_all"}, "norm_axes", "x.square().mean"
    ),
    "global layers inherit the window": Bug(
        "vllm#11583", {"windows": (4, None)}, {"windows": (4, 4)}, "window", "seen", "layers.1"
    ),
    "no correction of scores": Bug(
        "vllm#21586", _CORRECTED, {"router_bias": "none"}, "unread_input", "topk", other=SAME
    ),
    "a correction that weighs": Bug(
        "transformers#39581", _CORRECTED, {"router_bias": "both"}, "routing", "topk", other=SAME
    ),
    "tied embeddings ignored": Bug(
        "vllm#5621", {"tied": True}, {"tied": False}, "other_input", "self.embed.weight.T", ""
    ),
    "the bias of attention ignored": Bug("vllm#3767", {"bias": True}, {"bias": False}, "unread_input", "self."),
    "a weight that is multiplied after the cast": Bug("vllm#42325", {}, {"cast": "after"}, is_wrong=False),
    "a fused weight split as if it were one": RankBug(
        "vllm#3775", 2, Fused, Fused, [_fused(halves=halves) for halves in (False, True)]
    ),
    "the gain of keys goes with the rank": RankBug(
        "vllm#38191", 4, Keys, Keys, [_keys(lambda rank: rank // 2), _keys(lambda rank: rank % 2)]
    ),
    "attention scaled twice": Bug(
        "transformers#38277",
        {"scale": "query"},
        {"scale": "twice"},
        "extra_scale",
        "scores = scores * scale",
        other=SAME,
    ),
    "tanh for erf": Bug("none", {"activation": "gelu"}, {"activation": "gelu_tanh"}, "activation", "F.gelu(x"),
}
