"""Norms of activations and of weights, alone and with what stands around them."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def _rows(draw: Draw) -> tuple[T, int]:
    width = draw.pick(1024, 16)
    return draw.normal(draw.pick(4096, 8), width), width


def _image(draw: Draw) -> T:
    side = draw.pick(64, 8)
    return draw.normal(draw.pick(8, 2), draw.pick(64, 8), side, side)


def layer_norm(draw: Draw) -> Built:
    """Layer norm of rows."""

    def run(x: T, gain: T, shift: T) -> T:
        return F.layer_norm(x, x.shape[-1:], gain, shift)

    x, width = _rows(draw)
    return Built(run, (x, draw.near_one(width), draw.weight(width)))


def layer_norm_gelu(draw: Draw) -> Built:
    """Layer norm, then GELU with the error function."""

    def run(x: T, gain: T, shift: T) -> T:
        return F.gelu(F.layer_norm(x, x.shape[-1:], gain, shift))

    x, width = _rows(draw)
    return Built(run, (x, draw.near_one(width), draw.weight(width)))


def rms_norm_residual(draw: Draw) -> Built:
    """The sum with the residual, and its norm by the root of the mean square; both are returned."""

    def run(x: T, residual: T, gain: T) -> tuple[T, T]:
        total = x + residual
        return total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6) * gain, total

    x, width = _rows(draw)
    return Built(run, (x, draw.normal(*x.shape), draw.near_one(width)))


def gated_rms_norm(draw: Draw) -> Built:
    """What a gate leaves, normed in groups (Mamba 2)."""
    groups = draw.pick(8, 2)

    def run(x: T, gate: T, gain: T) -> T:
        y = (x * F.silu(gate)).unflatten(-1, (groups, -1))
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).flatten(-2) * gain

    x, width = _rows(draw)
    return Built(run, (x, draw.normal(*x.shape), draw.near_one(width)))


def adaptive_norm(draw: Draw) -> Built:
    """Layer norm that a condition scales and shifts, a residual that it gates (DiT)."""

    def run(x: T, y: T, condition: T) -> tuple[T, T]:
        scale, shift, gate = condition.chunk(3, -1)
        x = x + gate[:, None] * y
        return F.layer_norm(x, x.shape[-1:]) * (1 + scale[:, None]) + shift[:, None], x

    width = draw.pick(768, 16)
    shape = draw.pick(8, 2), draw.pick(256, 8), width
    return Built(run, (draw.normal(*shape), draw.normal(*shape), draw.normal(shape[0], 3 * width)))


def group_norm(draw: Draw) -> Built:
    """Group norm of an image, then SiLU."""

    def run(x: T, gain: T, shift: T) -> T:
        return F.silu(F.group_norm(x, 4, gain, shift))

    x = _image(draw)
    return Built(run, (x, draw.near_one(x.shape[1]), draw.weight(x.shape[1])))


def instance_norm(draw: Draw) -> Built:
    """Instance norm of an image, then ReLU."""

    def run(x: T, gain: T, shift: T) -> T:
        return F.relu(F.instance_norm(x, weight=gain, bias=shift))

    x = _image(draw)
    return Built(run, (x, draw.near_one(x.shape[1]), draw.weight(x.shape[1])))


def batch_norm_training(draw: Draw) -> Built:
    """Batch norm in training, with new running statistics."""

    def run(x: T, gain: T, shift: T, mean: T, variance: T) -> tuple[T, T, T]:
        own, spread = x.mean((0, 2, 3)), x.var((0, 2, 3))
        y = F.batch_norm(x, None, None, gain, shift, training=True)
        return y, torch.lerp(mean, own, 0.1), torch.lerp(variance, spread, 0.1)

    x = _image(draw)
    channels = x.shape[1]
    gain, shift, mean = draw.near_one(channels), draw.weight(channels), draw.weight(channels)
    return Built(run, (x, gain, shift, mean, draw.near_one(channels)))


def weight_norm(draw: Draw) -> Built:
    """A linear layer whose weight has rows of given lengths."""

    def run(x: T, direction: T, length: T, bias: T) -> T:
        weight = direction * (length / direction.norm(dim=1))[:, None]
        return F.linear(x, weight, bias)

    wide = draw.pick(1024, 16)
    direction = draw.weight(wide, wide)
    return Built(run, (draw.normal(draw.pick(512, 8), wide), direction, draw.near_one(wide), draw.weight(wide)))


PROGRAMS = programs(
    "norms",
    forward=(weight_norm,),
    backward=(
        layer_norm,
        layer_norm_gelu,
        rms_norm_residual,
        gated_rms_norm,
        adaptive_norm,
        group_norm,
        instance_norm,
        batch_norm_training,
    ),
)
