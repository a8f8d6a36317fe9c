"""Local and global views of tensors that may be DTensors, and tensors that stand for other ones."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.tensor import DTensor

_WITH_ATTRIBUTES = (torch.Tensor, FakeTensor, DTensor)
"""Buffers are plain tensors with an attribute that says so."""


def local(value: torch.Tensor) -> torch.Tensor:
    """This rank's part of a DTensor; a plain tensor unchanged."""
    return value.to_local() if isinstance(value, DTensor) else value


def spec_of(value: Any) -> Any:
    """The DTensorSpec of a DTensor, None for anything else."""
    return cast("Any", value)._spec if isinstance(value, DTensor) else None


def from_local(spec: Any, value: torch.Tensor) -> torch.Tensor:
    """A DTensor of that spec around a rank's part, without communication or checks; the part itself without a spec."""
    if spec is None:
        return value
    return DTensor.from_local(value, spec.mesh, spec.placements, run_check=False, shape=spec.shape, stride=spec.stride)


def parameter_like(old: nn.Parameter, value: torch.Tensor) -> nn.Parameter:
    """A parameter with this value and with the attributes and gradient hooks of another one.

    Frameworks mark parameters by attributes (``sequence_parallel``) and reduce gradients in hooks; a stand-in without
    them would be another program.
    """
    new = nn.Parameter(value, requires_grad=old.requires_grad)
    attributes: dict[str, Any] = {k: v for k, v in vars(old).items() if k not in vars(new)}
    vars(new).update(attributes)
    if not old.requires_grad:
        return new
    source, copy = cast("Any", old), cast("Any", new)
    for table, register in (
        (source._backward_hooks, copy.register_hook),
        (source._post_accumulate_grad_hooks, copy.register_post_accumulate_grad_hook),
    ):
        for hook in _values(table):
            register(hook)
    return new


def stand_in(old: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A tensor with this value, and with the class and the attributes of another one.

    Programs ask ``isinstance(x, nn.Parameter)`` and read what somebody set (``x.scale``). What is not copied is the
    state of a subclass, which is none of a plain tensor's.
    """
    if isinstance(old, nn.Parameter):
        return parameter_like(old, value)
    if type(old) in _WITH_ATTRIBUTES:
        attributes: dict[str, Any] = {k: v for k, v in vars(old).items() if k not in vars(value)}
        vars(value).update(attributes)
    return value


def version(value: torch.Tensor, held: torch.Tensor) -> int:
    """How often a tensor was written in place, through itself or through ``held``, its local part.

    An operator on a DTensor counts on the DTensor only. The local part is named because a sharding library may put
    another one, a padded copy, into the DTensor, which writes nothing.
    """
    outer, inner = cast("Any", value), cast("Any", held)
    return outer._version + inner._version


def _values(table: Any) -> list[Any]:
    return list(table.values()) if table else []
