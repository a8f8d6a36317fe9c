"""The models of the demonstration: Llama on one device, over ranks, and with a layer that was parallelised wrongly.

Modules of Transformers are built on the meta device from a configuration, so nothing is downloaded or allocated.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module
from transformers import LlamaConfig, LlamaForCausalLM

Size = Literal["tiny", "8b"]
Program = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
"""What to call, with its arguments and keyword arguments."""

_8B: dict[str, Any] = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rope_parameters": {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}


class HandWrittenMLP(nn.Module):
    """The feed-forward layer on a rank's columns of gate and up, and rows of down."""

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.gate_proj = mlp.get_submodule("gate_proj")
        self.up_proj = mlp.get_submodule("up_proj")
        self.down_proj = mlp.get_submodule("down_proj")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the rank computes; the sum over ranks is missing."""
        gate, up, down = local(self.gate_proj), local(self.up_proj), local(self.down_proj)
        hidden = F.silu(F.linear(x, gate)) * F.linear(x, up)
        return F.linear(hidden, down)


def local(linear: nn.Module) -> torch.Tensor:
    """This rank's part of a weight."""
    return cast("DTensor", linear.weight).to_local()


def llama(ranks: int, size: Size = "tiny", *, backward: bool = False) -> Program:
    """Llama on one device; ``ranks`` sets the width of the tiny size. With ``backward`` it returns a loss too."""
    tiny: dict[str, Any] = {
        "vocab_size": 128,
        "hidden_size": 8 * ranks,
        "intermediate_size": 12 * ranks,
        "num_hidden_layers": 2,
        "num_attention_heads": ranks,
        "num_key_value_heads": ranks,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }
    configuration = LlamaConfig(**(_8B if size == "8b" else tiny), tie_word_embeddings=False)
    with torch.device("meta"):
        model: nn.Module = LlamaForCausalLM(configuration)
        tokens = torch.zeros((1, 8192) if size == "8b" else (2, 16), dtype=torch.long)
    labels = {"labels": torch.zeros_like(tokens)} if backward else {}
    return model.train(backward), (), {"input_ids": tokens, **labels, "use_cache": False}


def parallel_llama(mesh: DeviceMesh, size: Size = "tiny", *, backward: bool = False) -> Program:
    """The same over a mesh of one axis, by DTensor's tensor parallelism: columns first, then rows."""
    model, args, kwargs = llama(mesh.size(), size, backward=backward)
    plan: dict[str, ParallelStyle] = {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(output_layouts=Replicate()),
    }
    for projection in ("self_attn.q", "self_attn.k", "self_attn.v", "mlp.gate", "mlp.up"):
        plan[f"model.layers.*.{projection}_proj"] = ColwiseParallel()
    for projection in ("self_attn.o", "mlp.down"):
        plan[f"model.layers.*.{projection}_proj"] = RowwiseParallel()
    return parallelize_module(model, mesh, plan), args, kwargs


def broken_llama(mesh: DeviceMesh) -> Program:
    """The tiny Llama over the mesh, right but for the last layer."""
    model, args, kwargs = parallel_llama(mesh)
    layers = model.get_submodule("model.layers")
    assert isinstance(layers, nn.ModuleList)
    layer: Any = layers[-1]
    layer.mlp = HandWrittenMLP(layer.mlp)
    return model, args, kwargs
