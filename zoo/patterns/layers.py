"""Bugs in forward passes: what is added, cut, scaled or numbered wrongly where a layer is split."""

from __future__ import annotations

import math
from typing import Any

import torch

from zoo.decoder import rotate
from zoo.patterns.pattern import (
    Pattern,
    enter,
    exchange,
    gathered,
    leave,
    reduced,
    scattered,
    sum_gradients,
    weight,
    world,
)

ROWS, WIDTH, INNER, HEADS = 8, 4, 6, 2


def row_bias() -> Pattern:
    """The bias of a layer that is split by rows is added on every rank, before the sum."""

    def step(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        y = leave(x @ w + bias) if wrong else leave(x @ w) + bias
        loss: Any = y.tanh().sum()
        loss.backward()
        return {"loss": loss}

    references = ("TGI #1036", "slapo #10", "Paddle #35186", "MinivLLM #80")
    return Pattern(
        references,
        lambda: (step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER))),
        lambda _, wrong: (step, (torch.zeros(ROWS, WIDTH // 2), weight(WIDTH // 2, INNER), weight(INNER), wrong)),
        {"x": "Shard(1)", "w": "Shard(0)", "bias": "Replicate()"},
        "leave(x @ w + bias)",
    )


def residual() -> Pattern:
    """What every rank has is added before the ranks' addends are summed."""

    def step(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        inner = (enter(x) @ up).relu() @ down
        y = leave(inner + x) if wrong else leave(inner) + x
        return {"output": y.sigmoid()}

    references = ("TensorRT-LLM #15922", "tpu-inference #3435", "vllm #37856")
    whole = (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, INNER), torch.zeros(INNER, WIDTH))
    own = (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, INNER // 2), torch.zeros(INNER // 2, WIDTH))
    relations = {"x": "Replicate()", "up": "Shard(1)", "down": "Shard(0)"}
    return Pattern(references, lambda: (step, whole), lambda _, wrong: (step, (*own, wrong)), relations, "inner + x")


def positions() -> Pattern:
    """Every rank counts the positions of its part of the sequence from zero."""
    length = 8

    def rotated(x: torch.Tensor, start: int) -> torch.Tensor:
        padded = torch.cat([x.new_zeros(x.shape[0], start, x.shape[2]), x], dim=1)
        return rotate(padded, padded.shape[1])[:, start:]

    def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        _, rank = world()
        start = 0 if wrong else rank * q.shape[1]
        query, key = rotated(q, start), rotated(k, start)
        if world()[0] > 1:
            key, v = (gathered(t.transpose(0, 1)).transpose(0, 1) for t in (key, v))
        scores = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(WIDTH), dim=-1)
        return {"output": scores @ v}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.zeros(HEADS, length // parts, WIDTH) for _ in range(3))

    references = ("Megatron-LM #560", "Megatron-LM #1612", "NeMo Automodel #1482", "Seq1F1B #6")
    relations = dict.fromkeys("qkv", "Shard(1)")
    return Pattern(
        references,
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        relations,
        "angles",
    )


def fused_projection() -> Pattern:
    """One weight for query, key and value is cut into equal parts, as if it were one projection."""

    def step(x: torch.Tensor, wqkv: torch.Tensor) -> dict[str, torch.Tensor]:
        q, k, v = (x @ wqkv.T).chunk(3, dim=-1)
        return {"output": torch.sigmoid(q * k) * v}

    equation = ", ".join(f"wqkv@{rank}[{2 * part}:{2 * part + 2}, :]" for part in range(3) for rank in range(2))
    references = ("Megatron-LM #360", "vllm #36242", "tt-forge-models #855")
    return Pattern(
        references,
        lambda: (step, (torch.zeros(ROWS, WIDTH), torch.zeros(12, WIDTH))),
        lambda _, wrong: (step, (torch.zeros(ROWS, WIDTH), torch.zeros(6, WIDTH))),
        {"x": "Replicate()", "wqkv": f"concat([{equation}], axis=0)"},
        "chunk(3",
        misread={"wqkv": "Shard(0)"},
    )


def head_scale() -> Pattern:
    """Scores are scaled by the width of all heads that a rank has instead of by that of one head."""

    def step(q: torch.Tensor, k: torch.Tensor, width: int = INNER) -> dict[str, torch.Tensor]:
        query, key = (t.view(ROWS, -1, INNER).transpose(0, 1) for t in (q, k))
        scores = query @ key.transpose(-1, -2) / math.sqrt(width)
        return {"output": torch.softmax(scores, dim=-1)}

    def arguments(heads: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS, heads * INNER), torch.zeros(ROWS, heads * INNER)

    return Pattern(
        ("gpt-neox #1424",),
        lambda: (step, arguments(2 * HEADS)),
        lambda _, wrong: (step, (*arguments(HEADS), HEADS * INNER if wrong else INNER)),
        dict.fromkeys("qk", "Shard(1)"),
        "math.sqrt(width)",
    )


def local_norm() -> Pattern:
    """A norm over an axis that is split takes the mean over the part that a rank has."""

    def step(x: torch.Tensor, scale: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        ranks, _ = world()
        squares = x.square().sum(-1, keepdim=True)
        mean = squares / x.shape[-1] if wrong else exchange(squares, reduced, reduced) / (ranks * x.shape[-1])
        loss: Any = (x * torch.rsqrt(mean + 1e-5) * scale).sigmoid().sum()
        loss.backward()
        return {"loss": reduced(loss.detach())}

    return Pattern(
        ("vllm #35932",),
        lambda: (step, (torch.zeros(ROWS, WIDTH), weight(WIDTH))),
        lambda _, wrong: (step, (torch.zeros(ROWS, WIDTH // 2), weight(WIDTH // 2), wrong)),
        {"x": "Shard(1)", "scale": "Shard(0)"},
        "squares / x.shape[-1]",
    )


def sequence_scatter() -> Pattern:
    """Gradients of weights that see a part of the sequence are addends under sequence parallelism."""

    def step(x: torch.Tensor, norm: torch.Tensor, up: torch.Tensor, wrong: bool = False) -> dict[str, torch.Tensor]:
        y = x * norm
        inner = exchange(y, gathered, scattered) @ up if world()[0] > 1 else y @ up
        loss: Any = inner.tanh().sum()
        loss.backward()
        if world()[0] > 1 and not wrong:
            sum_gradients(norm)
        return {"loss": reduced(loss.detach())}

    def arguments(parts: int) -> tuple[torch.Tensor, ...]:
        return torch.zeros(ROWS // parts, WIDTH), weight(WIDTH), weight(WIDTH, INNER // parts)

    return Pattern(
        ("Megatron-LM #816",),
        lambda: (step, arguments(1)),
        lambda _, wrong: (step, (*arguments(2), wrong)),
        {"x": "Shard(0)", "norm": "Replicate()", "up": "Shard(1)"},
        "x * norm",
        gradient=True,
    )


LAYERS = {
    "bias added before the sum": row_bias(),
    "residual added before the sum": residual(),
    "positions counted from zero": positions(),
    "fused projection cut into equal parts": fused_projection(),
    "scores scaled by the width of all heads": head_scale(),
    "norm over the local part of an axis": local_norm(),
    "gradient under sequence parallelism not summed": sequence_scatter(),
}
"""Patterns by name."""
