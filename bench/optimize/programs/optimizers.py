"""Steps of optimizers, as functions from parameters, gradients and states to new ones."""

from __future__ import annotations

import torch

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def _state(draw: Draw) -> tuple[T, T, T, T]:
    """A weight, its gradient, and averages of the gradient and of its square."""
    rows, columns = draw.pick(2048, 8), draw.pick(1024, 12)
    w, g, m = (draw.normal(rows, columns) for _ in range(3))
    return w, g, m, draw.uniform(rows, columns)


def sgd_momentum(draw: Draw) -> Built:
    """Nesterov's momentum with weight decay."""

    def run(w: T, g: T, m: T) -> tuple[T, T]:
        g = g + 1e-2 * w
        m = 0.9 * m + g
        return w - 0.1 * (g + 0.9 * m), m

    return Built(run, _state(draw)[:3])


def adamw(draw: Draw) -> Built:
    """AdamW, with the number of the step as an argument."""

    def run(w: T, g: T, m: T, v: T, step: T) -> tuple[T, T, T]:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g.square()
        mean, square = m / (1 - 0.9**step), v / (1 - 0.999**step)
        return w * (1 - 1e-5) - 1e-3 * mean / (square.sqrt() + 1e-8), m, v

    return Built(run, (*_state(draw), torch.tensor(10.0)))


def lion(draw: Draw) -> Built:
    """Signs of an average."""

    def run(w: T, g: T, m: T) -> tuple[T, T]:
        return w * (1 - 1e-5) - 1e-4 * torch.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g

    return Built(run, _state(draw)[:3])


def adafactor(draw: Draw) -> Built:
    """Second moments by rows and columns, and a step that is clipped by its mean square."""

    def run(w: T, g: T, rows: T, columns: T) -> tuple[T, T, T]:
        square = g.square() + 1e-30
        rows, columns = 0.999 * rows + 0.001 * square.mean(1), 0.999 * columns + 0.001 * square.mean(0)
        step = g * torch.rsqrt(rows / rows.mean())[:, None] * torch.rsqrt(columns)[None]
        step = step / (step.square().mean().sqrt() / 1.0).clamp(min=1.0)
        return w - 1e-2 * step, rows, columns

    w, g, _, _ = _state(draw)
    return Built(run, (w, g, draw.uniform(w.shape[0]) + 0.1, draw.uniform(w.shape[1]) + 0.1))


def lamb(draw: Draw) -> Built:
    """Adam's step, by the ratio of the norms of weight and step."""

    def run(w: T, g: T, m: T, v: T) -> tuple[T, T, T]:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g.square()
        step = m / (v.sqrt() + 1e-6) + 0.01 * w
        size, own = w.norm(), step.norm()
        ratio = torch.where((size > 0) & (own > 0), size / own, 1.0)
        return w - 1e-3 * ratio * step, m, v

    return Built(run, _state(draw))


def muon(draw: Draw) -> Built:
    """Newton and Schulz's iteration towards an orthogonal matrix, five times (Muon)."""

    def run(g: T) -> T:
        x = g / (g.norm() + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return x

    side = draw.pick(512, 12)
    return Built(run, (draw.normal(side, side),))


def clip_by_norm(draw: Draw) -> Built:
    """Three gradients, clipped by the norm of all."""

    def run(a: T, b: T, c: T) -> tuple[T, T, T, T]:
        norm = torch.sqrt(a.square().sum() + b.square().sum() + c.square().sum())
        factor = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        return a * factor, b * factor, c * factor, norm

    side = draw.pick(1024, 12)
    return Built(run, (draw.normal(side, side), draw.normal(side), draw.normal(2 * side, side)))


def moving_average(draw: Draw) -> Built:
    """An average of weights over training, and how far the weights are from it."""

    def run(w: T, average: T) -> tuple[T, T]:
        average = torch.lerp(average, w, 1e-3)
        return average, (w - average).square().mean().sqrt()

    w, g, _, _ = _state(draw)
    return Built(run, (w, g))


PROGRAMS = programs(
    "optimizers", forward=(sgd_momentum, adamw, lion, adafactor, lamb, muon, clip_by_norm, moving_average)
)
