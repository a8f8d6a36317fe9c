"""Second implementations in plain PyTorch of models whose first one is Transformers', over the same checkpoint.

Written otherwise wherever that is possible: projections and experts are fused, rotary embeddings turn real pairs,
attention is over keys in other orders, routers choose among other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Weights = Mapping[str, torch.Tensor]
Part = Callable[[torch.Tensor], torch.Tensor]


class Plain(nn.Module):
    """Embeddings, layers and logits; the parts of a layer are those of a family."""

    def __init__(self, configuration: Any, weights: Weights, **changed: Any) -> None:
        super().__init__()
        self.c = configuration
        self.changed = changed
        self.weights = nn.ParameterDict({name.replace(".", "/"): w for name, w in self.fused(weights).items()})

    def fused(self, weights: Weights) -> dict[str, torch.Tensor]:
        """The checkpoint as this implementation holds it."""
        return dict(weights)

    def w(self, name: str) -> torch.Tensor:
        """A tensor of the checkpoint."""
        return self.weights[name.replace(".", "/")]

    def of(self, name: str, default: Any) -> Any:
        """A value that a test may change."""
        return self.changed.get(name, default)

    def norm(self, x: torch.Tensor, name: str, eps: float) -> torch.Tensor:
        """RMS normalisation."""
        return F.rms_norm(x, x.shape[-1:], self.w(f"{name}.weight"), eps)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = F.embedding(input_ids, self.w("model.embed_tokens.weight"))
        for layer in range(self.c.num_hidden_layers):
            at, eps = f"model.layers.{layer}", self.of("eps", self.c.rms_norm_eps)
            x = x + self.attention(self.norm(x, f"{at}.input_layernorm", eps), f"{at}.self_attn", layer)
            x = x + self.feed_forward(self.norm(x, f"{at}.post_attention_layernorm", eps), f"{at}.mlp", layer)
        return self.norm(x, "model.norm", eps) @ self.w("lm_head.weight").T

    def attention(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        raise NotImplementedError

    def feed_forward(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        raise NotImplementedError


def seen(length: int, window: int | None = None) -> torch.Tensor:
    """Which keys (columns) a query (row) attends to."""
    distance = torch.arange(length)[:, None] - torch.arange(length)
    return (distance >= 0) & (distance < (window or length))


def turns(length: int, size: int, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines (positions, half of the size)."""
    angles = torch.arange(length)[:, None] * (1.0 / base ** (torch.arange(0, size, 2) / size))
    return angles.cos(), angles.sin()


def shares(chosen: torch.Tensor, weights: torch.Tensor, experts: int) -> torch.Tensor:
    """What each expert counts for, (tokens, experts), from the chosen ones and their weights, (tokens, chosen)."""
    return (F.one_hot(chosen, experts).to(weights.dtype) * weights[..., None]).sum(-2)


class DeepseekV2(Plain):
    """Latent attention with the keys' projection applied to queries or to keys, and a router in groups."""

    def fused(self, weights: Weights) -> dict[str, torch.Tensor]:
        found = dict(weights)
        for name in weights:
            if name.endswith("gate_proj.weight"):
                up = name.replace("gate_proj", "up_proj")
                found[name.replace("gate_proj", "gate_up")] = torch.cat([found.pop(name), found.pop(up)])
        return found

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        """Neighbours turned by their angles; x is (sequences, positions, heads, size)."""
        cos, sin = (t[:, None] for t in turns(x.shape[1], x.shape[-1], self.of("base", 1e4)))
        one, two = x.unflatten(-1, (-1, 2)).unbind(-1)
        if self.of("halves", False):
            one, two = x.chunk(2, -1)
        return torch.stack([one * cos - two * sin, two * cos + one * sin], -1).flatten(-2)

    def attention(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        c, heads = self.c, self.c.num_attention_heads
        low = self.norm(x @ self.w(f"{at}.q_a_proj.weight").T, f"{at}.q_a_layernorm", 1e-6)
        q = (low @ self.w(f"{at}.q_b_proj.weight").T).unflatten(-1, (heads, -1))
        own, turning = q.split([c.qk_nope_head_dim, c.qk_rope_head_dim], -1)
        both = x @ self.w(f"{at}.kv_a_proj_with_mqa.weight").T
        latent = self.norm(both[..., : c.kv_lora_rank], f"{at}.kv_a_layernorm", 1e-6)
        shared = self.turned(both[..., None, c.kv_lora_rank :]).squeeze(2)
        kv = (latent @ self.w(f"{at}.kv_b_proj.weight").T).unflatten(-1, (heads, -1))
        k, v = kv.split([c.qk_nope_head_dim, c.v_head_dim], -1)
        scores = torch.einsum("bqhd,bkhd->bhqk", own, k)
        scores = scores + torch.einsum("bqhd,bkd->bhqk", self.turned(turning), shared)
        scores = scores / math.sqrt(self.of("size", c.qk_nope_head_dim + c.qk_rope_head_dim))
        scores = scores.masked_fill(~seen(x.shape[1]), -math.inf)
        return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(-2) @ self.w(f"{at}.o_proj.weight").T

    def gated(self, x: torch.Tensor, at: str) -> torch.Tensor:
        gate, up = (x @ self.w(f"{at}.gate_up.weight").T).chunk(2, -1)
        return (gate * torch.sigmoid(gate) * up) @ self.w(f"{at}.down_proj.weight").T

    def feed_forward(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        if layer < self.c.first_k_dense_replace:
            return self.gated(x, at)
        flat = x.flatten(0, 1)
        share = self.routed(flat @ self.w(f"{at}.gate.weight").T)
        total = torch.zeros_like(flat)
        for expert in range(self.c.n_routed_experts):
            gate, up = (flat @ self.w(f"{at}.experts.gate_up_proj")[expert].T).chunk(2, -1)
            total = total + share[:, expert, None] * ((F.silu(gate) * up) @ self.w(f"{at}.experts.down_proj")[expert].T)
        return total.view_as(x) + self.gated(x, f"{at}.shared_experts")

    def routed(self, logits: torch.Tensor) -> torch.Tensor:
        c, experts = self.c, self.c.n_routed_experts
        probabilities = logits.softmax(-1)
        grouped = probabilities.unflatten(-1, (c.n_group, -1))
        best = torch.topk(grouped.amax(-1), self.of("groups", c.topk_group)).indices
        kept = F.one_hot(best, c.n_group).sum(-2).bool()[..., None].expand_as(grouped).flatten(-2)
        values, chosen = torch.topk(torch.where(kept, probabilities, self.of("fill", 0.0)), c.num_experts_per_tok)
        return shares(chosen, values * self.of("scale", c.routed_scaling_factor), experts)


class GptOss(Plain):
    """A sink as one more addend of the softmax's sum, windows in turn, and biased experts with a clamped gate."""

    def projected(self, x: torch.Tensor, at: str) -> torch.Tensor:
        bias = self.w(f"{at}.bias") if f"{at}.bias".replace(".", "/") in self.weights else None
        return F.linear(x, self.w(f"{at}.weight"), bias)

    def attention(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        c = self.c
        q, k, v = (self.projected(x, f"{at}.{name}_proj").unflatten(-1, (-1, c.head_dim)) for name in "qkv")
        times = c.num_attention_heads // c.num_key_value_heads
        k, v = (t.repeat_interleave(times, 2) for t in (self.turned(k), v))
        scores = torch.einsum("bqhd,bkhd->bhqk", self.turned(q), k) / math.sqrt(c.head_dim)
        window = self.of("window", c.sliding_window) if c.layer_types[layer] == "sliding_attention" else None
        scores = scores.masked_fill(~seen(x.shape[1], window), -math.inf)
        sinks = self.w(f"{at}.sinks")[:, None, None]
        exponentials = scores.exp()
        total = exponentials.sum(-1, keepdim=True)
        total = total if self.of("sinkless", False) else total + sinks.exp()
        return self.projected(torch.einsum("bhqk,bkhd->bqhd", exponentials / total, v).flatten(-2), f"{at}.o_proj")

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        cos, sin = (t[:, None] for t in turns(x.shape[1], x.shape[-1], self.of("base", 1e4)))
        one, two = x.chunk(2, -1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def feed_forward(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        flat = x.flatten(0, 1)
        values, chosen = torch.topk(self.projected(flat, f"{at}.router"), self.c.num_experts_per_tok)
        share = shares(chosen, values.softmax(-1), self.c.num_local_experts)
        both = torch.einsum("td,edf->etf", flat, self.w(f"{at}.experts.gate_up_proj"))
        both = both + self.w(f"{at}.experts.gate_up_proj_bias")[:, None]
        gate, up = both.unflatten(-1, (-1, 2)).unbind(-1)
        gate, up = gate.clamp(max=self.of("limit", 7.0)), up.clamp(-7.0, 7.0)
        inner = (up + self.of("offset", 1)) * gate * torch.sigmoid(self.of("alpha", 1.702) * gate)
        made = torch.einsum("etf,efd->etd", inner, self.w(f"{at}.experts.down_proj"))
        made = made + self.w(f"{at}.experts.down_proj_bias")[:, None]
        return torch.einsum("te,etd->td", share, made).view_as(x)


class Llama3(Plain):
    """Queries and keys with rows permuted for neighbours, turned as complex numbers; scaled frequencies."""

    def fused(self, weights: Weights) -> dict[str, torch.Tensor]:
        found = dict(weights)
        for name, value in weights.items():
            if ("q_proj" in name or "k_proj" in name) and not self.of("unpermuted", False):
                heads = value.shape[0] // self.c.head_dim
                found[name] = value.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2).contiguous()
        return found

    def turns(self, length: int) -> torch.Tensor:
        rotary, size = self.c.rope_parameters, self.c.head_dim
        frequencies = 1.0 / rotary["rope_theta"] ** (torch.arange(0, size, 2).float() / size)
        waves = 2 * math.pi / frequencies
        old = rotary["original_max_position_embeddings"]
        low, high = rotary["low_freq_factor"], rotary["high_freq_factor"]
        smooth = ((old / waves - low) / (high - low)).clamp(0, 1)
        factor = self.of("factor", rotary["factor"])
        scaled = frequencies * (smooth + (1 - smooth) / factor)
        angles = torch.outer(torch.arange(length).float(), scaled)
        return torch.polar(torch.ones_like(angles), angles * (-1 if self.of("reversed", False) else 1))

    def attention(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        c, turning = self.c, self.turns(x.shape[1])[:, None]
        q, k, v = ((x @ self.w(f"{at}.{name}_proj.weight").T).unflatten(-1, (-1, c.head_dim)) for name in "qkv")
        q, k = (torch.view_as_complex(t.unflatten(-1, (-1, 2))) for t in (q, k))
        q, k = (torch.view_as_real(t * turning).flatten(-2).transpose(1, 2) for t in (q, k))
        made = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True, enable_gqa=True)
        return made.transpose(1, 2).flatten(-2) @ self.w(f"{at}.o_proj.weight").T

    def feed_forward(self, x: torch.Tensor, at: str, layer: int) -> torch.Tensor:
        gate, up = (x @ self.w(f"{at}.{name}_proj.weight").T for name in ("gate", "up"))
        return (gate * torch.sigmoid(gate) * up) @ self.w(f"{at}.down_proj.weight").T
