"""Whole models of random weights: those of Transformers, and a U-Net by hand.

Full sizes have two layers of 256; large ones have between twenty and a hundred million parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


class Output(nn.Module):
    """A model of Transformers that returns one of its outputs, a tensor."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, given: T) -> T:
        """The output of that name."""
        return getattr(self.model(given), self.name)


def _model(draw: Draw, name: str, kind: str, output: str, **sizes: Any) -> Output:
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes)
    model = getattr(transformers, f"{name}{kind}")(config)
    return Output(model.eval().to(draw.dtype), output)


def _sizes(draw: Draw) -> dict[str, int]:
    return {
        "hidden_size": draw.pick(256, 64, 512),
        "num_hidden_layers": draw.pick(2, 1, 8),
        "num_attention_heads": draw.pick(4, 4, 8),
        "intermediate_size": draw.pick(768, 96, 1536),
    }


def _tokens(draw: Draw) -> T:
    return draw.integers(draw.pick(1000, 100), draw.pick(1, 2), draw.pick(128, 24, 256))


def _language(draw: Draw, name: str, **more: Any) -> Built:
    """A model that gives logits of tokens."""
    words = {"vocab_size": draw.pick(1000, 100, 16000), "use_cache": False, "pad_token_id": 0}
    sizes = _sizes(draw) | words | {"bos_token_id": 1, "eos_token_id": 2} | more
    return Built(_model(draw, name, "ForCausalLM", "logits", **sizes), (_tokens(draw),))


def _mixture(draw: Draw, name: str, **more: Any) -> Built:
    """A model with experts, whose product of groups has no float64 where a loop over experts has."""
    slow = _language(draw, name, **more, experts_implementation="eager").function
    return replace(_language(draw, name, **more), exact=slow)


def gpt2(draw: Draw) -> Built:
    """Learned positions and biases."""
    own = _sizes(draw)
    sizes = {"n_embd": own["hidden_size"], "n_layer": own["num_hidden_layers"], "n_head": own["num_attention_heads"]}
    words = {"vocab_size": draw.pick(1000, 100, 16000), "use_cache": False, "bos_token_id": 1, "eos_token_id": 2}
    return Built(_model(draw, "GPT2", "LMHeadModel", "logits", **sizes, **words), (_tokens(draw),))


def llama(draw: Draw) -> Built:
    """Rotary positions and grouped heads."""
    return _language(draw, "Llama", num_key_value_heads=2)


def gemma(draw: Draw) -> Built:
    """Gemma 2: capped logits and a window."""
    more = {"head_dim": draw.pick(64, 16), "sliding_window": draw.pick(64, 8), "attn_implementation": "eager"}
    return _language(draw, "Gemma2", num_key_value_heads=2, **more)


def mixtral(draw: Draw) -> Built:
    """Experts."""
    return _mixture(draw, "Mixtral", num_key_value_heads=2, num_local_experts=4)


def starcoder2(draw: Draw) -> Built:
    """Biases and a window."""
    return _language(draw, "Starcoder2", num_key_value_heads=2, sliding_window=draw.pick(64, 8))


def qwen3_moe(draw: Draw) -> Built:
    """More experts, and norms of queries and keys."""
    more = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": draw.pick(256, 32, 512)}
    return _mixture(draw, "Qwen3Moe", num_key_value_heads=2, head_dim=draw.pick(64, 16), **more)


def mamba(draw: Draw) -> Built:
    """A selective scan, token by token."""
    wide, layers = draw.pick(256, 16, 512), draw.pick(2, 1, 8)
    sizes = {
        "hidden_size": wide,
        "num_hidden_layers": layers,
        "state_size": 8,
        "vocab_size": draw.pick(1000, 100, 16000),
    }
    model = _model(draw, "Mamba", "ForCausalLM", "logits", **sizes, use_cache=False)
    return Built(model, (draw.integers(100, 1, draw.pick(32, 8)),))


def bert(draw: Draw) -> Built:
    """Attention both ways."""
    sizes = {"vocab_size": draw.pick(1000, 100, 16000), **_sizes(draw)}
    return Built(_model(draw, "Bert", "Model", "last_hidden_state", **sizes), (_tokens(draw),))


def vit(draw: Draw) -> Built:
    """Patches of images."""
    side = draw.pick(112, 32, 224)
    model = _model(draw, "ViT", "Model", "last_hidden_state", image_size=side, patch_size=16, **_sizes(draw))
    return Built(model, (draw.normal(1, 3, side, side),))


def whisper_encoder(draw: Draw) -> Built:
    """Two convolutions of a spectrogram, then attention both ways."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    own, length = _sizes(draw), draw.pick(256, 32, 1500)
    config = WhisperConfig(
        d_model=own["hidden_size"],
        encoder_layers=own["num_hidden_layers"],
        encoder_attention_heads=own["num_attention_heads"],
        encoder_ffn_dim=own["intermediate_size"],
        max_source_positions=length,
        num_mel_bins=draw.pick(80, 16),
    )
    torch.manual_seed(0)
    model = Output(WhisperEncoder(config).eval().to(draw.dtype), "last_hidden_state")
    return Built(model, (draw.normal(1, config.num_mel_bins, 2 * length),))


def convnext(draw: Draw) -> Built:
    """Depthwise convolutions in four stages."""
    base, deep, side = draw.pick(48, 8, 96), draw.pick(1, 1, 3), draw.pick(96, 32, 224)
    sizes = {"hidden_sizes": [base, 2 * base, 4 * base, 8 * base], "depths": [deep, deep, 2 * deep, deep]}
    model = _model(draw, "ConvNext", "Model", "last_hidden_state", **sizes, image_size=side)
    return Built(model, (draw.normal(1, 3, side, side),))


def swin(draw: Draw) -> Built:
    """Shifted windows in two stages."""
    base, side, heads = draw.pick(48, 8, 256), draw.pick(112, 32, 224), draw.pick(2, 2, 8)
    sizes = {"embed_dim": base, "depths": [2, draw.pick(2, 2, 8)], "num_heads": [heads, 2 * heads], "image_size": side}
    model = _model(draw, "Swin", "Model", "last_hidden_state", **sizes, window_size=draw.pick(7, 4), patch_size=4)
    return Built(model, (draw.normal(1, 3, side, side),))


class UNet(nn.Module):
    """Two levels with a skip between them, norms of groups and SiLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3, padding=1)
        self.narrow = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
        self.widen = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.merge = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.leave = nn.Conv2d(channels, 3, 1)
        self.norms = nn.ModuleList(nn.GroupNorm(4, c) for c in (channels, 2 * channels, 2 * channels, channels))

    def forward(self, x: T) -> T:
        """An image from an image."""
        first = F.silu(self.norms[0](self.enter(x)))
        y = F.silu(self.norms[1](self.narrow(first)))
        y = y + F.silu(self.norms[2](self.middle(y)))
        y = torch.cat((first, self.widen(y)), 1)
        return self.leave(F.silu(self.norms[3](self.merge(y))))


def unet(draw: Draw) -> Built:
    """Down, up, and what is skipped over."""
    torch.manual_seed(0)
    side = draw.pick(64, 8, 64)
    model = UNet(draw.pick(32, 8, 512)).eval().to(draw.dtype)
    return Built(model, (draw.normal(draw.pick(2, 1), 3, side, side),))


PROGRAMS = programs(
    "models",
    forward=(gemma, mixtral, starcoder2, qwen3_moe, mamba, swin),
    backward=(gpt2, llama, bert, vit, whisper_encoder, convnext, unet),
)
