"""Image models of timm, whose weights are those of Transformers' under other names, against Transformers'."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.pairs import reference
from bench.pairs.reference import Pair
from zoo.transformers_models import quiet, transformers_module

PAIRS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "vit": ({"num_heads": 2}, {"act_layer": "gelu_tanh"}),
    "convnext": ({"norm_eps": 1e-3}, {"act_layer": "gelu_tanh"}),
}
"""By family what is changed of timm's model."""
_SIDE, _CLASSES = 32, 10


class Scores(nn.Module):
    """An image classifier as a function from pixels to scores."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(pixel_values=x).logits


def pair(name: str, changed: Mapping[str, Any] | None) -> Pair:
    """A model of Transformers, and timm's with some of its arguments changed."""
    left, right = {"vit": _vit, "convnext": _convnext}[name](changed or {})
    pixels = torch.randn((2, 3, _SIDE, _SIDE), generator=torch.Generator().manual_seed(0))
    return reference.pair(Scores(left), right, (pixels,))


def _vit(changed: Mapping[str, Any]) -> tuple[nn.Module, nn.Module]:
    depth, sizes = 2, {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "patch_size": 8}
    left = _filled("ViT", {**sizes, "num_hidden_layers": depth, "image_size": _SIDE, "layer_norm_eps": 1e-6})
    made = _timm("vision_transformer").VisionTransformer(
        **{
            "img_size": _SIDE,
            "patch_size": 8,
            "embed_dim": 64,
            "depth": depth,
            "num_heads": 4,
            "mlp_ratio": 2,
            "num_classes": _CLASSES,
            **changed,
        }
    )
    own = left.state_dict()
    made.load_state_dict({name: _vit_weight(name, own.__getitem__) for name in made.state_dict()})
    return left, made.eval()


_VIT_NAMES = {
    "patch_embed.proj": "vit.embeddings.patch_embeddings.projection",
    "pos_embed": "vit.embeddings.position_embeddings",
    "cls_token": "vit.embeddings.cls_token",
    "blocks": "vit.layers",
    "attn.proj": "attention.o_proj",
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "head": "classifier",
}


def _vit_weight(name: str, own: Callable[[str], torch.Tensor]) -> torch.Tensor:
    """A tensor of timm's transformer from those of Transformers'."""
    if name.startswith("norm."):
        return own(f"vit.layernorm.{name.removeprefix('norm.')}")
    for theirs, ours in _VIT_NAMES.items():
        name = name.replace(theirs, ours)
    if "attn.qkv" in name:
        return torch.cat([own(name.replace("attn.qkv", f"attention.{part}_proj")) for part in "qkv"])
    return own(name)


def _convnext(changed: Mapping[str, Any]) -> tuple[nn.Module, nn.Module]:
    widths, depths = [8, 16, 24, 32], [1, 1, 2, 1]
    left = _filled("ConvNext", {"hidden_sizes": widths, "depths": depths, "image_size": _SIDE, "layer_norm_eps": 1e-6})
    made = _timm("convnext").ConvNeXt(**{"depths": depths, "dims": widths, "num_classes": _CLASSES, **changed})
    pairs = zip(made.state_dict(), left.state_dict().values(), strict=True)  # both list them in one order
    made.load_state_dict(dict(pairs))
    return left, made.eval()


def _filled(stem: str, values: Mapping[str, Any]) -> nn.Module:
    """An image classifier of Transformers with random values."""
    with quiet():
        configuration = getattr(transformers_module(), f"{stem}Config")(**values, num_labels=_CLASSES)
        configuration._attn_implementation = "eager"
        model: nn.Module = getattr(transformers_module(), f"{stem}ForImageClassification")(configuration)
    reference.fill(model)
    return model.eval()


@cache
def _library() -> torch.library.Library:
    """torchvision's operators by name: its build for another torch brings none, and timm imports it all the same."""
    sys.path.append(str(Path(sys.prefix) / "torchvision"))
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def _timm(module: str) -> Any:
    _library()
    return importlib.import_module(f"timm.models.{module}")
