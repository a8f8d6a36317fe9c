"""Tensors that a program holds without declaring them: real ones are constants, fake ones cannot be."""

from __future__ import annotations

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor

from rewright.frontends.torch.spans import SourceRecorder
from rewright.ir.errors import CaptureError


def check_constants(module: torch.fx.GraphModule, recorder: SourceRecorder) -> None:
    """Raise CaptureError for a constant that is a fake or meta tensor: its values are not known to anybody."""
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        value = getattr(module, node.target)
        if isinstance(value, FakeTensor) or (isinstance(value, torch.Tensor) and value.device.type == "meta"):
            user = next(iter(node.users), node)
            raise CaptureError(
                f"the program uses a tensor of shape {tuple(value.shape)} without values at {recorder.span(user)}; "
                "register it as a buffer or parameter, or pass it as an argument"
            )
