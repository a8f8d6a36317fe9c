"""Small decoders in the styles that implementations differ in, every style a field, and every known bug a field too."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import nn

import rewright as rw
from rewright.ir.graph import Graph


@dataclass(frozen=True)
class Style:
    """How a decoder is written; fields named after parts of a model are its configuration."""

    layers: int = 2
    width: int = 16
    heads: int = 4
    kv_heads: int = 2
    head: int = 4
    hidden: int = 24
    vocabulary: int = 29
    sequence: int = 12
    batch: int = 2
    eps: float = 1e-6
    theta: float = 10000.0
    scaling: float = 1.0
    """By how much the frequencies of a rotary embedding are divided; with ``context`` only those that turn slowly."""
    context: int | None = None
    """The original context length of a llama3 scaling."""
    rotary: Literal["half", "pairs", "interleaved", "split", "none"] = "half"
    rotary_width: int | None = None
    rotary_factor: float = 1.0
    """What cosine and sine are multiplied by, as longrope and yarn do."""
    rotary_layers: tuple[bool, ...] | None = None
    """Which layers rotate; all, where nothing is said."""
    norm: Literal["rsqrt", "sqrt", "power", "functional", "offset", "sum"] = "rsqrt"
    qkv: Literal["apart", "fused", "grouped"] = "apart"
    mlp: Literal["apart", "fused", "chunked"] = "apart"
    activation: Literal["silu", "sigmoid", "gelu", "gelu_tanh", "tanh_by_hand", "relu"] = "silu"
    attention: Literal["eager", "sdpa", "grouped", "einsum", "plain"] = "eager"
    mask: Literal["lowest", "infinite", "where", "multiplied", "causal"] = "lowest"
    scale: Literal["scores", "query", "both", "divide", "twice"] = "scores"
    scale_value: float | None = None
    repeat: Literal["expand", "interleave", "index"] = "expand"
    window: int | None = None
    windows: tuple[int | None, ...] | None = None
    """The window of every layer, instead of one for all."""
    softcap: float | None = None
    capped: Literal["divide", "multiply"] = "divide"
    query_norm: Literal["none", "head", "all", "plain", "plain_all"] = "none"
    """Over each head or over all heads; plain ones have no weight."""
    latent: int | None = None
    """The width of a normed vector that keys and values are made of."""
    latent_eps: float | None = None
    """The eps of its norm; that of all others, where nothing is said."""
    post_norm: bool = False
    bias: bool = False
    logits_scale: float | None = None
    tied: bool = False
    experts: int = 0
    chosen: int = 2
    router: Literal["renormalised", "chosen_only", "softmax", "sigmoid", "zeroed"] = "renormalised"
    """Zeroed routers give the others the score zero, which is more than a negative one."""
    router_bias: Literal["none", "choice", "both"] = "none"
    """A correction of the scores that choose, and of those that weigh too."""
    dtype: torch.dtype = torch.float32
    cast: Literal["before", "after"] = "before"

    def but(self, **changes: Any) -> Style:
        """The same in another style."""
        return replace(self, **changes)

    def of_layer(self, number: int) -> Style:
        """The style of one layer."""
        window = self.window if self.windows is None else self.windows[number]
        turns = self.rotary_layers is None or self.rotary_layers[number]
        return replace(self, window=window, rotary=self.rotary if turns else "none")


class Norm(nn.Module):
    def __init__(self, width: int, style: Style) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=style.dtype))
        self.style = style

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = self.style
        if s.norm == "functional":
            return F.rms_norm(x, (x.shape[-1],), self.weight, s.eps)
        y = x.float()
        if s.norm in ("rsqrt", "offset"):
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + s.eps)
        elif s.norm == "sqrt":
            y = y / torch.sqrt((y * y).mean(-1, keepdim=True) + s.eps)
        elif s.norm == "sum":
            y = y / ((y * y).sum(-1, keepdim=True) / y.shape[-1] + s.eps).sqrt()
        else:
            y = y * (y.square().mean(-1, keepdim=True) + s.eps) ** -0.5
        weight = self.weight + 1 if s.norm == "offset" else self.weight
        return (y * weight.float()).to(x.dtype) if s.cast == "after" else weight * y.to(x.dtype)


def normed(x: torch.Tensor, s: Style) -> torch.Tensor:
    """Divided by the root of the mean square of the last axis."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + s.eps)


def angles(style: Style, positions: torch.Tensor) -> torch.Tensor:
    width = style.rotary_width or style.head
    frequencies = 1.0 / (style.theta ** (torch.arange(0, width, 2).float() / width))
    if style.context is not None:  # llama3: what turns once to four times within the context is in between
        smooth = ((style.context * frequencies / (2 * math.pi) - 1.0) / 3.0).clamp(0.0, 1.0)
        return positions.float()[:, None] * (frequencies * (smooth + (1 - smooth) / style.scaling))[None, :]
    return positions.float()[:, None] * frequencies[None, :] / style.scaling


def rotate(x: torch.Tensor, style: Style) -> torch.Tensor:
    """``x`` is (batch, heads, sequence, head)."""
    if style.rotary == "none":
        return x
    width = style.rotary_width or style.head
    x, rest = x[..., :width], x[..., width:]
    angle = angles(style, torch.arange(x.shape[-2]))
    cos, sin = angle.cos(), angle.sin()
    if style.rotary_factor != 1.0:
        cos, sin = cos * style.rotary_factor, sin * style.rotary_factor
    if style.rotary == "half":
        cos, sin = torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
        a, b = x[..., : width // 2], x[..., width // 2 :]
        y = x * cos + torch.cat([-b, a], -1) * sin
    elif style.rotary == "split":
        a, b = x.chunk(2, -1)
        y = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    elif style.rotary == "pairs":
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        y = torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
    else:
        cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        turned = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        y = x * cos + turned * sin
    return torch.cat([y.to(x.dtype), rest], -1)


class Attention(nn.Module):
    def __init__(self, style: Style) -> None:
        super().__init__()
        s = self.style = style
        kwargs: dict[str, Any] = {"bias": s.bias, "dtype": s.dtype}
        total = s.heads * s.head
        if s.latent is not None:
            self.down = nn.Linear(s.width, s.latent, **kwargs)
            self.latent_norm = Norm(s.latent, s if s.latent_eps is None else s.but(eps=s.latent_eps))
        if s.qkv == "apart":
            self.q = nn.Linear(s.width, total, **kwargs)
            self.k = nn.Linear(s.latent or s.width, s.kv_heads * s.head, **kwargs)
            self.v = nn.Linear(s.latent or s.width, s.kv_heads * s.head, **kwargs)
        else:
            self.qkv = nn.Linear(s.width, total + 2 * s.kv_heads * s.head, **kwargs)
        self.o = nn.Linear(total, s.width, bias=False, dtype=s.dtype)
        if s.query_norm in ("head", "all"):
            self.q_norm = Norm(s.head if s.query_norm == "head" else s.heads * s.head, s)
            self.k_norm = Norm(s.head if s.query_norm == "head" else s.kv_heads * s.head, s)

    def _projected(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        s = self.style
        if s.qkv == "apart":
            inner = x if s.latent is None else self.latent_norm(self.down(x))
            return self.q(x), self.k(inner), self.v(inner)
        if s.qkv == "fused":
            sizes = [s.heads * s.head, s.kv_heads * s.head, s.kv_heads * s.head]
            q, k, v = self.qkv(x).split(sizes, -1)
            return q, k, v
        groups = s.heads // s.kv_heads
        wide = self.qkv(x).view(*x.shape[:2], s.kv_heads, groups + 2, s.head)
        q, k, v = wide.split([groups, 1, 1], 3)
        return q.reshape(*x.shape[:2], -1), k.reshape(*x.shape[:2], -1), v.reshape(*x.shape[:2], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = self.style
        batch, length, _ = x.shape
        q, k, v = self._projected(x)
        if s.query_norm == "all":
            q, k = self.q_norm(q), self.k_norm(k)
        if s.query_norm == "plain_all":
            q, k = normed(q, s), normed(k, s)
        q = q.view(batch, length, s.heads, s.head)
        k = k.view(batch, length, s.kv_heads, s.head)
        if s.query_norm == "head":
            q, k = self.q_norm(q), self.k_norm(k)
        if s.query_norm == "plain":
            q, k = normed(q, s), normed(k, s)
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        v = v.view(batch, length, s.kv_heads, s.head).transpose(1, 2)
        q, k = rotate(q, s), rotate(k, s)
        out = attend(q, k, v, s)
        return self.o(out.transpose(1, 2).reshape(batch, length, -1))


def allowed(length: int, style: Style) -> torch.Tensor:
    i, j = torch.arange(length)[:, None], torch.arange(length)[None, :]
    seen = j <= i
    return seen if style.window is None else seen & (i - j < style.window)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, s: Style) -> torch.Tensor:
    groups, length = s.heads // s.kv_heads, q.shape[-2]
    scale = s.scale_value if s.scale_value is not None else s.head**-0.5
    if s.attention == "grouped":
        q = q.view(q.shape[0], s.kv_heads, groups, length, s.head)
        k, v = k[:, :, None], v[:, :, None]
    else:
        k, v = repeated(k, groups, s), repeated(v, groups, s)
    seen = allowed(length, s)
    if s.attention == "sdpa":
        if s.mask == "causal" and s.window is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        mask = seen if s.mask == "where" else torch.where(seen, 0.0, -math.inf).to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    if s.scale in ("query", "twice"):
        q = q * scale
    elif s.scale == "both":
        q, k = q * math.sqrt(scale), k * math.sqrt(scale)
    scores = torch.einsum("bhid,bhjd->bhij", q, k) if s.attention == "einsum" else q @ k.transpose(-1, -2)
    if s.scale in ("scores", "twice"):
        scores = scores * scale
    elif s.scale == "divide":
        scores = scores / (1 / scale)
    if s.softcap is not None:
        scores = scores / s.softcap if s.capped == "divide" else scores * (1 / s.softcap)
        scores = torch.tanh(scores) * s.softcap
    probabilities = softmax(masked(scores, seen, s), s)
    if s.attention == "einsum":
        return torch.einsum("bhij,bhjd->bhid", probabilities, v)
    out = probabilities @ v
    return out.flatten(1, 2) if s.attention == "grouped" else out


def masked(scores: torch.Tensor, seen: torch.Tensor, s: Style) -> torch.Tensor:
    lowest = torch.finfo(scores.dtype).min
    if s.mask == "lowest":
        return scores + torch.where(seen, 0.0, lowest).to(scores.dtype)
    if s.mask == "multiplied":
        return scores + (1.0 - seen.to(scores.dtype)) * lowest
    if s.mask == "infinite":
        return scores + torch.where(seen, 0.0, -math.inf).to(scores.dtype)
    return scores.masked_fill(~seen, -math.inf)


def softmax(scores: torch.Tensor, s: Style) -> torch.Tensor:
    if s.attention == "plain":
        powers = scores.exp()
        return powers / powers.sum(-1, keepdim=True)
    return torch.softmax(scores, -1, dtype=torch.float32).to(scores.dtype)


def repeated(x: torch.Tensor, groups: int, s: Style) -> torch.Tensor:
    batch, heads, length, width = x.shape
    if s.repeat == "interleave":
        return x.repeat_interleave(groups, 1)
    if s.repeat == "index":
        return x[:, torch.arange(heads * groups) // groups]
    return x[:, :, None].expand(batch, heads, groups, length, width).reshape(batch, heads * groups, length, width)


def activated(x: torch.Tensor, s: Style) -> torch.Tensor:
    if s.activation == "silu":
        return F.silu(x)
    if s.activation == "sigmoid":
        return x / (1 + torch.exp(-x))
    if s.activation == "gelu":
        return F.gelu(x)
    if s.activation == "gelu_tanh":
        return F.gelu(x, approximate="tanh")
    if s.activation == "tanh_by_hand":
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
    return F.relu(x)


class Mlp(nn.Module):
    def __init__(self, style: Style) -> None:
        super().__init__()
        s = self.style = style
        kwargs: dict[str, Any] = {"bias": False, "dtype": s.dtype}
        if s.mlp == "apart":
            self.gate = nn.Linear(s.width, s.hidden, **kwargs)
            self.up = nn.Linear(s.width, s.hidden, **kwargs)
        else:
            self.gate_up = nn.Linear(s.width, 2 * s.hidden, **kwargs)
        self.down = nn.Linear(s.hidden, s.width, **kwargs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        s = self.style
        if s.mlp == "apart":
            gate, up = self.gate(x), self.up(x)
        elif s.mlp == "fused":
            both = self.gate_up(x)
            gate, up = both[..., : s.hidden], both[..., s.hidden :]
        else:
            gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(activated(gate, s) * up)


class Experts(nn.Module):
    """A router, and every expert on every token, weighted by what the router chose."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        s = self.style = style
        self.gate = nn.Linear(s.width, s.experts, bias=False, dtype=s.dtype)
        self.experts = nn.ModuleList(Mlp(style) for _ in range(s.experts))
        if s.router_bias != "none":
            self.correction = nn.Parameter(torch.zeros(s.experts, dtype=s.dtype))

    def chosen(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights of the chosen experts, and which these are."""
        s = self.style
        if s.router == "chosen_only":
            logits, index = torch.topk(logits, s.chosen, dim=-1)
            return torch.softmax(logits, -1), index
        if s.router == "zeroed":
            best = torch.topk(logits, s.chosen, dim=-1).indices
            kept = (best.unsqueeze(-1) == torch.arange(s.experts)).any(-2)
            logits = torch.where(kept, logits, 0.0)
        scores = torch.sigmoid(logits) if s.router == "sigmoid" else torch.softmax(logits, -1)
        if s.router_bias == "none":
            weights, index = torch.topk(scores, s.chosen, dim=-1)
        else:
            corrected = scores + self.correction
            weights, index = torch.topk(corrected, s.chosen, dim=-1)
            weights = weights if s.router_bias == "both" else scores.gather(-1, index)
        return (weights if s.router == "softmax" else weights / weights.sum(-1, keepdim=True)), index

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, index = self.chosen(self.gate(x).float())
        numbers = torch.arange(self.style.experts)
        shares = ((index.unsqueeze(-1) == numbers).to(weights.dtype) * weights.unsqueeze(-1)).sum(-2).to(x.dtype)
        parts = [shares[..., k : k + 1] * expert(x) for k, expert in enumerate(self.experts)]
        return torch.stack(parts).sum(0)


class Layer(nn.Module):
    def __init__(self, style: Style) -> None:
        super().__init__()
        self.style = style
        self.norm1, self.norm2 = Norm(style.width, style), Norm(style.width, style)
        self.attention, self.mlp = Attention(style), Experts(style) if style.experts else Mlp(style)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.style.post_norm:
            x = x + self.norm1(self.attention(x))
            return x + self.norm2(self.mlp(x))
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, style: Style) -> None:
        super().__init__()
        self.style = style
        self.embed = nn.Embedding(style.vocabulary, style.width, dtype=style.dtype)
        self.layers = nn.ModuleList([Layer(style.of_layer(k)) for k in range(style.layers)])
        self.norm = Norm(style.width, style)
        if not style.tied:
            self.head = nn.Linear(style.width, style.vocabulary, bias=False, dtype=style.dtype)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        logits = x @ self.embed.weight.T if self.style.tied else self.head(x)
        return logits if self.style.logits_scale is None else logits * self.style.logits_scale


PLAIN = Style()


@cache
def captured(style: Style) -> Graph:
    """The program of a decoder, without weights; all tests share it."""
    with torch.device("meta"):
        model = Decoder(style).eval()
    tokens = torch.zeros(style.batch, style.sequence, dtype=torch.long, device="meta")
    return rw.capture(model, (tokens,))


FUSED_QKV = {"layers.*.attention.qkv.weight": "concat([layers.*.attention.q.weight, layers.*.attention.k.weight, "
             "layers.*.attention.v.weight], axis=0)"}  # fmt: skip
FUSED_MLP = {"layers.*.mlp.gate_up.weight": "concat([layers.*.mlp.gate.weight, layers.*.mlp.up.weight], axis=0)"}
