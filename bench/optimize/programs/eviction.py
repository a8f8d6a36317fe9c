"""Attention with what decides which keys of a cache are kept, as plain PyTorch: seven modules of FlashTensor's paper.

Their inputs have any length, dtype and device, since they are measured on GPUs and for errors too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs

Tensors = tuple[torch.Tensor, ...]


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cap: float | None = None) -> Tensors:
    length, width = q.shape[1], k.shape[1]
    mask = torch.full((length, width), float("-inf"), dtype=q.dtype, device=q.device)
    mask = torch.triu(mask, diagonal=width - length + 1)
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    s = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if cap is not None:
        s = torch.tanh(s / cap) * cap
    s = s + mask
    p = torch.softmax(_wide(s), -1)
    return s, p, (p.to(v.dtype) @ v).transpose(1, 2).contiguous()


def _wide(t: torch.Tensor) -> torch.Tensor:
    """At least float32; a reference in float64 stays one."""
    return t.to(torch.promote_types(t.dtype, torch.float32))


def attn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention."""
    return _attention(q, k, v)[2]


def gemma2(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """With logits capped softly."""
    return _attention(q, k, v, 50.0)[2]


def h2o(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """With the sums of columns."""
    _, p, out = _attention(q, k, v)
    return out, p.sum(dim=2)


def roco(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """With the sums of columns, and of their squares."""
    _, p, out = _attention(q, k, v)
    return out, p.sum(2), (p**2).sum(2)


def snapkv(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Tensors:
    """With pooled sums of columns."""
    _, p, out = _attention(q, k, v)
    return out, F.avg_pool1d(p.sum(2), 5, padding=2, stride=1)


def keyformer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, exp_rand: torch.Tensor) -> Tensors:
    """With the sums of columns of a second, perturbed softmax."""
    s, _, out = _attention(q, k, v)
    return out, torch.softmax((_wide(s) - torch.log(exp_rand)) / 1.5, -1).sum(2)


def corm(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, corm_mask: torch.Tensor) -> Tensors:
    """With whether a key is above a threshold for any query."""
    _, p, out = _attention(q, k, v)
    return out, (p >= corm_mask).any(dim=2)


MODULES: dict[str, Callable[..., Any]] = {f.__name__: f for f in (attn, gemma2, h2o, roco, snapkv, keyformer, corm)}
FLEX = ("attn", "gemma2")


def inputs(
    name: str, length: int, heads: int, width: int, dtype: torch.dtype, device: str, scale: float, seed: int = 0
) -> Tensors:
    """The inputs of a module."""
    generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    found = [(normal(1, length, heads, width) * scale).to(dtype) for _ in range(3)]
    if name == "keyformer":
        found.append(1 + normal(1, heads, length, length).abs())
    if name == "corm":
        rows = 1 / torch.arange(1, length + 1, device=device, dtype=torch.float32)
        found.append(rows[:, None].expand(length, length).contiguous())
    return tuple(found)


def flex(name: str, q: torch.Tensor) -> Callable[..., torch.Tensor]:
    """One of the modules ``FLEX`` by FlexAttention."""
    from torch.nn.attention.flex_attention import flex_attention

    settings = flex_settings(name, q.shape[1], q.device)
    compiled: Any = torch.compile(flex_attention, dynamic=False)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        a, b, c = (t.transpose(1, 2) for t in (q, k, v))
        return compiled(a, b, c, **settings).transpose(1, 2).contiguous()

    return run


def flex_settings(name: str, length: int, device: torch.device) -> dict[str, Any]:
    """What FlexAttention is told for one of the modules ``FLEX``."""
    from torch.nn.attention.flex_attention import create_block_mask

    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i >= j

    def capped(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return torch.tanh(score / 50.0) * 50.0

    mask = create_block_mask(causal, None, None, length, length, device=device)
    return {"score_mod": capped if name == "gemma2" else None, "block_mask": mask}


def fused(name: str) -> Callable[..., torch.Tensor] | None:
    """The module by scaled_dot_product_attention, where that can express it."""
    if name != "attn":
        return None

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        a, b, c = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(a, b, c, is_causal=True).transpose(1, 2).contiguous()

    return run


def _build(name: str) -> Callable[[Draw], Built]:
    """The module at the sizes of the benchmark: eight heads of 128."""

    def build(draw: Draw) -> Built:
        sizes = draw.pick(1024, 24), draw.pick(8, 2), draw.pick(128, 16)
        args = inputs(name, *sizes, draw.dtype, "cpu", draw.scale)
        by_sdpa, by_flex = fused(name), partial(flex, name, args[0]) if name in FLEX else None
        return Built(MODULES[name], args, None if by_sdpa is None else lambda: by_sdpa, by_flex)

    build.__name__ = name
    return build


PROGRAMS = programs("eviction", forward=[_build("corm")], backward=[_build(n) for n in MODULES if n != "corm"])
