"""A small decoder in plain PyTorch: the sequential twin of the hand-parallelised one in ``megatron.py``.

Activations are (sequence, batch, width), as in Megatron-LM, so that sequence parallelism gathers along axis 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

from rewright.ir.errors import CaptureError
from zoo.families import split_size


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the decoder; heads and key-value heads are split by tensor parallelism, the vocabulary unevenly too."""

    vocabulary: int = 128
    width: int = 32
    inner: int = 64
    layers: int = 2
    heads: int = 4
    shared_heads: int = 2
    head: int = 8
    sequence: int = 16
    batch: int = 2


DECODERS: dict[str, DecoderConfig] = {
    "8b": DecoderConfig(128256, 4096, 14336, 32, 32, 8, 128, 8192, 1),
    "70b": DecoderConfig(128256, 8192, 28672, 80, 64, 8, 128, 8192, 1),
    "405b": DecoderConfig(128256, 16384, 53248, 126, 128, 8, 128, 8192, 1),
}


def decoder_config(size: str, degree: int) -> DecoderConfig:
    """The sizes of that name; ``tiny`` has as many heads as the degree of parallelism needs.

    Raises CaptureError for a size that does not exist.
    """
    shape, layers = split_size(size)
    if shape != "tiny" and shape not in DECODERS:
        raise CaptureError(f"the decoder has no size {shape!r}; the sizes are tiny, {', '.join(DECODERS)}")
    tiny = DecoderConfig(
        width=16 * degree, inner=24 * degree, heads=2 * degree, shared_heads=degree, sequence=4 * degree
    )
    config = tiny if shape == "tiny" else DECODERS[shape]
    return config if layers is None else replace(config, layers=layers)


class Norm(nn.Module):
    """Root mean square normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last axis."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, head: int) -> torch.Tensor:
    """Causal attention with rotary positions; operands are (sequence, batch, heads * head)."""
    length, batch, _ = query.shape
    q, k, v = (x.view(length, batch, -1, head).permute(1, 2, 0, 3) for x in (query, key, value))
    q, k = rotate(q, length), rotate(k, length)
    repeats = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.permute(2, 0, 1, 3).reshape(length, batch, -1)


def rotate(x: torch.Tensor, length: int) -> torch.Tensor:
    """Rotary position embedding of (batch, heads, sequence, head)."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angles = torch.arange(length, dtype=x.dtype, device=x.device).unsqueeze(-1) * frequencies
    first, second = x[..., :half], x[..., half:]
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class Attention(nn.Module):
    """Grouped-query attention with biases."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.head = config.head
        self.query = nn.Linear(config.width, config.heads * config.head)
        self.key = nn.Linear(config.width, config.shared_heads * config.head)
        self.value = nn.Linear(config.width, config.shared_heads * config.head)
        self.output = nn.Linear(config.heads * config.head, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, width) to the same."""
        return self.output(attend(self.query(x), self.key(x), self.value(x), self.head))


class FeedForward(nn.Module):
    """A gated unit with biases."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.inner)
        self.up = nn.Linear(config.width, config.inner)
        self.down = nn.Linear(config.inner, config.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, width) to the same."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Attention and feed-forward with residual connections."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.attention_norm, self.attention = Norm(config.width), Attention(config)
        self.feed_forward_norm, self.feed_forward = Norm(config.width), FeedForward(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, width) to the same."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """Token ids (sequence, batch) to logits (sequence, batch, vocabulary), or to the mean loss with labels."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = Norm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """``logits``, and ``loss`` where labels are given."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if labels is None:
            return {"logits": logits}
        logp = F.log_softmax(logits.flatten(0, 1), dim=-1)
        return {"loss": -logp.gather(1, labels.flatten()[:, None]).mean(), "logits": logits}
