"""Images and physics on grids: stencils, filters, boxes and bodies."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def _field(draw: Draw) -> T:
    return draw.normal(draw.pick(1024, 12), draw.pick(1024, 16))


def heat(draw: Draw) -> Built:
    """Five steps of the heat equation on a torus, by rolls."""

    def run(x: T) -> T:
        for _ in range(5):
            around = sum(torch.roll(x, turn, axis) for axis in (0, 1) for turn in (-1, 1))
            x = x + 0.1 * (around - 4 * x)
        return x

    return Built(run, (_field(draw),))


def wave(draw: Draw) -> Built:
    """A step of the wave equation within fixed borders, by slices, and its energy."""

    def run(now: T, before: T) -> tuple[T, T]:
        inner = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1]
        after = F.pad(2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.2 * inner, (1, 1, 1, 1))
        return after, (after - now).square().sum()

    x = _field(draw)
    return Built(run, (x, draw.normal(*x.shape)))


def sobel(draw: Draw) -> Built:
    """Magnitudes of gradients of images, by two filters of three by three."""

    def run(x: T) -> T:
        filters = x.new_tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        both = F.conv2d(x, torch.stack((filters, filters.T))[:, None], padding=1)
        return torch.sqrt(both.square().sum(1) + 1e-12)

    side = draw.pick(512, 12)
    return Built(run, (draw.normal(draw.pick(4, 2), 1, side, side),))


def gaussian_blur(draw: Draw) -> Built:
    """Rows, then columns, by eleven weights."""

    def run(x: T, weight: T) -> T:
        row = weight.expand(x.shape[1], 1, 1, -1)
        x = F.conv2d(F.pad(x, (5, 5, 0, 0), mode="replicate"), row, groups=x.shape[1])
        return F.conv2d(F.pad(x, (0, 0, 5, 5), mode="replicate"), row.transpose(2, 3), groups=x.shape[1])

    side = draw.pick(512, 14)
    weight = torch.exp(-torch.arange(-5, 6).square() / 8.0)
    return Built(run, (draw.normal(1, 3, side, side), (weight / weight.sum()).to(draw.dtype)))


def structural_similarity(draw: Draw) -> Built:
    """SSIM of two images, by means of windows."""

    def run(x: T, y: T) -> T:
        def mean(t: T) -> T:
            return F.avg_pool2d(t, 7, 1)

        a, b = mean(x), mean(y)
        both, one, two = mean(x * y) - a * b, mean(x * x) - a * a, mean(y * y) - b * b
        return ((2 * a * b + 1e-4) * (2 * both + 9e-4) / ((a * a + b * b + 1e-4) * (one + two + 9e-4))).mean()

    side = draw.pick(512, 14)
    return Built(run, (draw.normal(1, 3, side, side), draw.normal(1, 3, side, side)))


def bilinear(draw: Draw) -> Built:
    """Twice as large by bilinear interpolation, then normed channels."""

    def run(x: T, mean: T, deviation: T) -> T:
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return (x - mean[:, None, None]) / deviation[:, None, None]

    side = draw.pick(384, 10)
    return Built(run, (draw.normal(2, 3, side, side), draw.weight(3), draw.near_one(3)))


def overlaps(draw: Draw) -> Built:
    """Intersection over union of all pairs of boxes."""

    def run(a: T, b: T) -> T:
        low, high = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        one, two = (a[:, 2:] - a[:, :2]).prod(-1), (b[:, 2:] - b[:, :2]).prod(-1)
        return both / (one[:, None] + two[None] - both + 1e-9)

    def boxes(count: int) -> T:
        corner = draw.uniform(count, 2)
        return torch.cat((corner, corner + 0.2 * draw.uniform(count, 2) + 0.01), -1) * draw.scale

    return Built(run, (boxes(draw.pick(1500, 9)), boxes(draw.pick(1000, 7))))


def bodies(draw: Draw) -> Built:
    """Accelerations of bodies by the gravity of all others."""

    def run(x: T, mass: T) -> T:
        apart = x[None] - x[:, None]
        weight = mass[None] * (apart.square().sum(-1) + 1e-2).pow(-1.5)
        return (apart * weight[..., None]).sum(1)

    count = draw.pick(1024, 14)
    return Built(run, (draw.normal(count, 3), draw.uniform(count)))


def colours(draw: Draw) -> Built:
    """Brightness, contrast and saturation of images, clamped."""

    def run(x: T, bright: T, contrast: T, saturated: T) -> T:
        grey = x.new_tensor([0.299, 0.587, 0.114])
        x = (x * bright[:, None, None, None]).clamp(0, 1)
        mean = (x * grey[:, None, None]).sum(1).mean((1, 2))[:, None, None, None]
        x = (mean + contrast[:, None, None, None] * (x - mean)).clamp(0, 1)
        own = (x * grey[:, None, None]).sum(1, keepdim=True)
        return (own + saturated[:, None, None, None] * (x - own)).clamp(0, 1)

    side, batch = draw.pick(224, 8), draw.pick(16, 2)
    changes = [draw.near_one(batch) for _ in range(3)]
    return Built(run, (draw.uniform(batch, 3, side, side), *changes))


PROGRAMS = programs(
    "images",
    forward=(heat, wave, sobel, gaussian_blur, structural_similarity, bilinear, overlaps, bodies, colours),
)
