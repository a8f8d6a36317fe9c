"""Convolutions with what stands around them."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def _image(draw: Draw, channels: int = 64, side: int = 56) -> T:
    side = draw.pick(side, 8)
    return draw.normal(draw.pick(4, 2), draw.pick(channels, 8), side, side)


def _filters(draw: Draw, out: int, into: int, side: int) -> T:
    return (draw.weight(out, into * side * side) * 1.4).view(out, into, side, side)


def conv_bn_relu(draw: Draw) -> Built:
    """A convolution, batch norm by running statistics, ReLU."""

    def run(x: T, weight: T, mean: T, variance: T, gain: T, shift: T) -> T:
        return F.relu(F.batch_norm(F.conv2d(x, weight, padding=1), mean, variance, gain, shift))

    x = _image(draw)
    n = x.shape[1]
    norm = draw.weight(n), draw.uniform(n) + 0.5, draw.near_one(n), draw.weight(n)
    return Built(run, (x, _filters(draw, n, n, 3), *norm))


def bottleneck(draw: Draw) -> Built:
    """ResNet's bottleneck, norms folded into the filters, with the residual."""

    def run(x: T, down: T, middle: T, up: T, one: T, two: T, three: T) -> T:
        y = F.relu(F.conv2d(x, down, one))
        y = F.relu(F.conv2d(y, middle, two, padding=1))
        return F.relu(x + F.conv2d(y, up, three))

    x = _image(draw, 256, 28)
    n, few = x.shape[1], x.shape[1] // 4
    filters = _filters(draw, few, n, 1), _filters(draw, few, few, 3), _filters(draw, n, few, 1)
    return Built(run, (x, *filters, draw.weight(few), draw.weight(few), draw.weight(n)))


def inverted_residual(draw: Draw) -> Built:
    """MobileNet 2: wider, depthwise, narrower."""

    def run(x: T, up: T, middle: T, down: T) -> T:
        y = F.relu6(F.conv2d(x, up))
        y = F.relu6(F.conv2d(y, middle, padding=1, groups=middle.shape[0]))
        return x + F.conv2d(y, down)

    x = _image(draw, 32)
    n, wide = x.shape[1], 4 * x.shape[1]
    return Built(run, (x, _filters(draw, wide, n, 1), _filters(draw, wide, 1, 3), _filters(draw, n, wide, 1)))


def convnext_block(draw: Draw) -> Built:
    """Depthwise convolution, layer norm of channels, and a feed-forward block with GELU."""

    def run(x: T, deep: T, gain: T, shift: T, up: T, down: T, scale: T) -> T:
        y = F.conv2d(x, deep, padding=3, groups=x.shape[1]).permute(0, 2, 3, 1)
        y = F.layer_norm(y, y.shape[-1:], gain, shift, 1e-6)
        y = F.gelu(y @ up.T) @ down.T * scale
        return x + y.permute(0, 3, 1, 2)

    x = _image(draw, 96)
    n = x.shape[1]
    norm = draw.near_one(n), draw.weight(n)
    weights = draw.weight(4 * n, n), draw.weight(n, 4 * n), draw.near_one(n)
    return Built(run, (x, _filters(draw, n, 1, 7), *norm, *weights))


def conv1d_causal(draw: Draw) -> Built:
    """Depthwise causal convolution along a sequence, then SiLU (Mamba)."""

    def run(x: T, weight: T, bias: T) -> T:
        return F.silu(F.conv1d(F.pad(x, (3, 0)), weight, bias, groups=x.shape[1]))

    channels = draw.pick(1536, 8)
    weight = draw.weight(channels, 4)[:, None].contiguous()
    return Built(run, (draw.normal(1, channels, draw.pick(1024, 12)), weight, draw.weight(channels)))


def squeeze_excite(draw: Draw) -> Built:
    """Channels by gates that come from their means."""

    def run(x: T, down: T, one: T, up: T, two: T) -> T:
        gate = F.relu(F.linear(x.mean((2, 3)), down, one))
        return x * torch.sigmoid(F.linear(gate, up, two))[..., None, None]

    x = _image(draw, 256)
    n, few = x.shape[1], x.shape[1] // 4
    return Built(run, (x, draw.weight(few, n), draw.weight(few), draw.weight(n, few), draw.weight(n)))


def unet_block(draw: Draw) -> Built:
    """Norm of groups, SiLU, convolution, twice, with a condition and the residual (diffusion models)."""

    def run(x: T, condition: T, gain: T, shift: T, first: T, into: T, second: T) -> T:
        y = F.conv2d(F.silu(F.group_norm(x, 4, gain, shift)), first, padding=1)
        y = y + (F.silu(condition) @ into.T)[..., None, None]
        return x + F.conv2d(F.silu(F.group_norm(y, 4)), second, padding=1)

    x = _image(draw, 64, 32)
    n, wide = x.shape[1], draw.pick(256, 12)
    filters = _filters(draw, n, n, 3), draw.weight(n, wide), _filters(draw, n, n, 3)
    return Built(run, (x, draw.normal(x.shape[0], wide), draw.near_one(n), draw.weight(n), *filters))


def pooled_stem(draw: Draw) -> Built:
    """A wide convolution with stride two, ReLU and the maximum of windows (ResNet's first layers)."""

    def run(x: T, weight: T, bias: T) -> T:
        return F.max_pool2d(F.relu(F.conv2d(x, weight, bias, stride=2, padding=3)), 3, 2, 1)

    side, out = draw.pick(224, 16), draw.pick(64, 8)
    return Built(run, (draw.normal(draw.pick(2, 1), 3, side, side), _filters(draw, out, 3, 7), draw.weight(out)))


PROGRAMS = programs(
    "convolutions",
    forward=(conv_bn_relu, inverted_residual, pooled_stem),
    backward=(bottleneck, convnext_block, conv1d_causal, squeeze_excite, unet_block),
)
