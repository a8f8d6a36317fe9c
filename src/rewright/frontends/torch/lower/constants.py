"""Tensors that are attributes of a traced module, as constants or as shared inputs."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from rewright import ops
from rewright.frontends.torch.lower.sizes import type_of
from rewright.ir.errors import CaptureError
from rewright.ir.types import DType, TensorType
from rewright.ops.reference.simplifying import SimplifyingBuilder

LARGEST = 65_536
"""Constants with more elements that differ become inputs, named by their content."""


def constant(b: SimplifyingBuilder, tensor: torch.Tensor, name: str, known: dict[str, int]) -> int:
    """A node for a real tensor: a splat, an index ramp, literal values, or an input ``const:<digest>``.

    What is the same along an axis is broadcast along it, so that parts of a batch have the constants of the whole.

    ``known`` holds the inputs made so far, so that equal constants are one input. Raises CaptureError for a fake
    tensor, whose values nobody knows.
    """
    if isinstance(tensor, FakeTensor) or tensor.is_meta:
        raise CaptureError(f"the constant {name} is a fake tensor without values; make it an argument or a buffer")
    kind = type_of(tensor)
    plain = tensor.detach().cpu()
    if plain.numel() and bool((plain == plain.flatten()[0]).all()):
        return b.add(ops.Constant(kind, (plain.flatten()[0].item(),)))
    ramp = _ramp(b, plain, kind)
    if ramp is not None:
        return ramp
    varying = _varying(plain)
    if len(varying) < plain.dim():
        others = tuple(0 if axis not in varying else slice(None) for axis in range(plain.dim()))
        return b.add(ops.BroadcastInDim(kind.shape, varying), constant(b, plain[others], name, known))
    if plain.numel() <= LARGEST:
        values = cast("Any", plain.flatten()).tolist()
        return b.add(ops.Constant(kind, tuple(values)))
    digest = _digest(plain)
    if digest not in known:
        known[digest] = b.input(f"const:{digest}", ops.Input(f"const:{digest}", kind))
    return known[digest]


def _varying(tensor: torch.Tensor) -> tuple[int, ...]:
    """Axes along which the elements are not all the same."""
    every = tuple(range(tensor.dim()))
    if not tensor.numel():
        return every
    return tuple(axis for axis in every if not bool((tensor == tensor.narrow(axis, 0, 1)).all()))


def _ramp(b: SimplifyingBuilder, tensor: torch.Tensor, kind: TensorType) -> int | None:
    """``start + step * index`` along one axis, for integers."""
    if not kind.dtype.is_integer or kind.dtype is DType.BOOL or not tensor.numel():
        return None
    for axis, size in enumerate(tensor.shape):
        if size < 2:
            continue
        line: Any = tensor.movedim(axis, 0).reshape(size, -1)
        start, step = int(line[0, 0]), int(line[1, 0]) - int(line[0, 0])
        if not all(-(2**63) <= number < 2**63 for number in (start, step, start + step * (size - 1))):
            continue
        expected = start + step * torch.arange(size, dtype=torch.int64, device="cpu").unsqueeze(1)
        if bool((line.to(torch.int64) == expected).all()):
            result = b.add(ops.Multiply(), b.add(ops.Iota(kind, axis)), b.add(ops.Constant(kind, (step,))))
            return b.add(ops.Add(), result, b.add(ops.Constant(kind, (start,))))
    return None


def _digest(tensor: torch.Tensor) -> str:
    wide = tensor.contiguous()
    raw = wide.view(torch.uint8) if wide.dtype is not torch.bool else wide.to(torch.uint8)
    found = hashlib.sha256(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    found.update(raw.numpy().tobytes())
    return found.hexdigest()[:16]
