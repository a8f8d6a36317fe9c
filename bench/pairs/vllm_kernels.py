"""What vLLM's kernels compute, by definition: attention over whole sequences, and experts on every token.

Kernels for a CPU are compiled for it and cannot be looked into. Each is replaced by a few operators here: attention as
the contract of its cache (causal, with the layer's own scale, window, soft-cap, sinks and linear biases), products as
themselves, and a fused mixture as its routing and its experts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F

_PARTS = "vllm.model_executor.layers"


@contextmanager
def defined(batch: int) -> Generator[None]:
    """With attention as it is defined, over ``batch`` sequences of one length that follow each other."""
    plain = importlib.import_module(f"{_PARTS}.attention.attention").Attention
    latent = importlib.import_module(f"{_PARTS}.attention.mla_attention").MLAAttention
    with ExitStack() as stack:
        for kind, function in ((plain, _attention), (latent, _latent_attention)):
            stack.enter_context(mock.patch.object(kind, "forward", partial_method(function, batch)))
        yield


def partial_method(function: Callable[..., torch.Tensor], batch: int) -> Callable[..., torch.Tensor]:
    """The function as a method; what it does not take is about buffers for results."""

    def method(self: Any, *tensors: torch.Tensor, **_: object) -> torch.Tensor:
        return function(self, batch, *tensors[:3])

    return method


@contextmanager
def plain_products() -> Generator[None]:
    """While weights are prepared: nothing is packed for a kernel, and products are products."""
    layers = importlib.import_module(f"{_PARTS}.utils")
    experts = importlib.import_module(f"{_PARTS}.fused_moe.experts.cpu_moe")
    with (
        mock.patch.object(layers, "dispatch_cpu_unquantized_gemm", _plain),
        mock.patch.object(experts, "cpu_prepack_moe_weight", lambda weight, isa: weight),
    ):
        yield


@contextmanager
def plain_experts() -> Generator[None]:
    """While a model runs: every expert on every token, weighted by the router."""
    experts = importlib.import_module(f"{_PARTS}.fused_moe.experts.cpu_moe")
    with mock.patch.object(experts, "cpu_fused_moe", _experts):
        yield


def _plain(layer: Any, remove_weight: bool = False) -> None:
    layer.cpu_linear = F.linear


def _by_heads(x: torch.Tensor, batch: int, heads: int) -> torch.Tensor:
    """(tokens, heads * size) as (sequences, heads, positions, size)."""
    return x.reshape(batch, -1, heads, x.shape[-1] // heads if x.dim() == 2 else x.shape[-1]).transpose(1, 2)


def _attention(layer: Any, batch: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    kernel = layer.impl
    q = _by_heads(query.flatten(1), batch, layer.num_heads)
    k, v = (_by_heads(x.flatten(1), batch, layer.num_kv_heads) for x in (key, value))
    k, v = (x.repeat_interleave(layer.num_heads // layer.num_kv_heads, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * kernel.scale
    cap = getattr(kernel, "logits_soft_cap", None)
    if cap:
        scores = torch.tanh(scores / cap) * cap
    place = torch.arange(scores.shape[-1], device=query.device)
    distance = place[:, None] - place[None, :]
    slopes = getattr(kernel, "alibi_slopes", None)
    if slopes is not None:
        scores = scores - torch.as_tensor(slopes, dtype=scores.dtype)[:, None, None] * distance
    if layer.attn_type != "encoder_only":
        seen = distance >= 0
        if layer.sliding_window:
            seen = seen & (distance < layer.sliding_window)
        scores = scores.masked_fill(~seen, float("-inf"))
    return _weighted(scores, v, getattr(kernel, "sinks", None))


def _weighted(scores: torch.Tensor, value: torch.Tensor, sinks: torch.Tensor | None = None) -> torch.Tensor:
    """Values weighted by a softmax of scores; a sink is a score of each head that has no value."""
    if sinks is None:
        weights = scores.softmax(-1)
    else:
        sink = sinks[None, :, None, None].expand(*scores.shape[:3], 1)
        weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
    return (weights @ value).transpose(1, 2).flatten(0, 1).flatten(1)


def _latent_attention(
    layer: Any, batch: int, query: torch.Tensor, latent: torch.Tensor, rotary_key: torch.Tensor
) -> torch.Tensor:
    """Attention whose keys and values are made of one latent vector; the rotary part of a key is of all heads."""
    heads = layer.num_heads
    both = _by_heads(layer.kv_b_proj(latent)[0], batch, heads)
    own, value = both.split([layer.qk_nope_head_dim, layer.v_head_dim], -1)
    turned = _by_heads(rotary_key.flatten(1), batch, 1).expand(-1, heads, -1, -1)
    q = _by_heads(query.flatten(1), batch, heads)
    scores = q @ torch.cat([own, turned], -1).transpose(-1, -2) * layer.scale
    place = torch.arange(scores.shape[-1])
    return _weighted(scores.masked_fill(place[:, None] < place[None, :], float("-inf")), value)


def _experts(
    out: torch.Tensor,
    x: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    gate_up_bias: torch.Tensor | None,
    down_bias: torch.Tensor | None,
    weights: torch.Tensor,
    chosen: torch.Tensor,
    activation: str,
    isa: object,
    weights_first: bool = False,
) -> None:
    """The mixture of all experts on all tokens, into ``out``; weights are (experts, outputs, inputs)."""
    if weights_first:
        raise NotImplementedError("weights of experts that are applied to their inputs have no definition here")
    both = x @ gate_up.transpose(1, 2)
    both = both if gate_up_bias is None else both + gate_up_bias[:, None]
    every = _gated(both, activation) @ down.transpose(1, 2)
    every = every if down_bias is None else every + down_bias[:, None]
    numbers = torch.arange(gate_up.shape[0])
    share = torch.where(chosen[..., None] == numbers, weights[..., None], 0.0).sum(1).to(x.dtype)
    out.copy_((every * share.T[..., None]).sum(0))


def _gated(both: torch.Tensor, activation: str) -> torch.Tensor:
    if activation == "swigluoai":
        gate, up = both[..., ::2].clamp(max=7.0), both[..., 1::2].clamp(-7.0, 7.0)
        return gate * torch.sigmoid(1.702 * gate) * (up + 1)
    named: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "silu": F.silu,
        "gelu": F.gelu,
        "gelu_tanh": partial(F.gelu, approximate="tanh"),
    }
    gate, up = both.chunk(2, -1)
    return named[activation](gate) * up
