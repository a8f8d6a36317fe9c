"""The broken program of the demonstration: a Llama of which one layer was parallelised by hand, and wrongly."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from rewright.zoo import parallel


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


def broken_llama(mesh: DeviceMesh) -> Any:
    """A tiny Llama over the mesh, right but for the last layer."""
    model, args, kwargs = parallel("llama", degree=mesh.size())(mesh)
    layer = model.model.layers[-1]
    layer.mlp = HandWrittenMLP(layer.mlp)
    return model, args, kwargs
