"""Tensors that a program holds without declaring them: real ones are constants, fake ones and parameters cannot be."""

from __future__ import annotations

import torch
import torch.fx
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

from rewright.frontends.torch.spans import SourceRecorder
from rewright.ir.errors import CaptureError


def check_constants(module: torch.fx.GraphModule, recorder: SourceRecorder) -> None:
    """Raise CaptureError for constants that have no values, and for parameters, which would get no gradient."""
    for node in module.graph.nodes:
        if node.op != "get_attr":
            continue
        value = getattr(module, node.target)
        if not isinstance(value, torch.Tensor):
            continue
        what = f"a tensor of shape {tuple(value.shape)} "
        place = recorder.span(next(iter(node.users), node))
        if isinstance(value, FakeTensor) or value.device.type == "meta":
            advice = "register it as a buffer or parameter, or pass it as an argument"
            raise CaptureError(f"the program uses {what}without values at {place}; {advice}")
        if isinstance(value, nn.Parameter):
            advice = "pass that module as an argument"
            raise CaptureError(f"the program uses a parameter of a module that it does not name at {place}; {advice}")
