"""Statistics of samples, distances between them, and sums that run along."""

from __future__ import annotations

import math

import torch

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def moments(draw: Draw) -> Built:
    """Mean, variance and deviation of rows."""

    def run(x: T) -> tuple[T, T, T]:
        return x.mean(-1), x.var(-1), x.std(-1)

    return Built(run, (draw.normal(draw.pick(1024, 8), draw.pick(8192, 20)),))


def standardise(draw: Draw) -> Built:
    """Columns less their mean, over their deviation."""

    def run(x: T) -> T:
        return (x - x.mean(0)) / (x.std(0) + 1e-6)

    return Built(run, (draw.normal(draw.pick(65536, 20), draw.pick(64, 8)),))


def skewness(draw: Draw) -> Built:
    """Third and fourth standardised moments of columns."""

    def run(x: T) -> tuple[T, T]:
        x = x - x.mean(0)
        variance = x.square().mean(0)
        return x.pow(3).mean(0) / variance.pow(1.5), x.pow(4).mean(0) / variance.square()

    return Built(run, (draw.normal(draw.pick(32768, 20), draw.pick(64, 8)),))


def covariance(draw: Draw) -> Built:
    """Covariances and correlations of columns."""

    def run(x: T) -> tuple[T, T]:
        x = x - x.mean(0)
        both = x.T @ x / (x.shape[0] - 1)
        deviation = both.diagonal().sqrt()
        return both, both / (deviation[:, None] * deviation[None])

    return Built(run, (draw.normal(draw.pick(16384, 20), draw.pick(128, 8)),))


def nearest_centre(draw: Draw) -> Built:
    """The nearest of 256 centres for each point, and how far it is (k-means)."""

    def run(x: T, c: T) -> tuple[T, T]:
        d = x.square().sum(-1, keepdim=True) - 2 * x @ c.T + c.square().sum(-1)
        least, which = d.min(-1)
        return which, least.clamp(min=0).sum()

    width = draw.pick(64, 8)
    return Built(run, (draw.normal(draw.pick(16384, 20), width), draw.normal(draw.pick(256, 5), width)))


def rbf_product(draw: Draw) -> Built:
    """A kernel matrix that is never stored, by a vector (Gaussian processes)."""

    def run(x: T, y: T, w: T) -> T:
        d = x.square().sum(-1, keepdim=True) - 2 * x @ y.T + y.square().sum(-1)
        return torch.exp(-d.clamp(min=0) / 2) @ w

    width, rows = draw.pick(16, 4), draw.pick(3072, 20)
    return Built(run, (draw.normal(rows, width), draw.normal(rows, width), draw.weight(rows, 1)))


def neighbours(draw: Draw) -> Built:
    """The five nearest points and their distances."""

    def run(x: T, y: T) -> tuple[T, T]:
        d = x.square().sum(-1, keepdim=True) - 2 * x @ y.T + y.square().sum(-1)
        least, which = d.topk(5, -1, largest=False)
        return least.clamp(min=0).sqrt(), which

    width = draw.pick(32, 4)
    return Built(run, (draw.normal(draw.pick(1024, 12), width), draw.normal(draw.pick(2048, 20), width)))


def pairwise_l1(draw: Draw) -> Built:
    """Sums of magnitudes of differences, all pairs."""

    def run(x: T, y: T) -> T:
        return (x[:, None] - y[None]).abs().sum(-1)

    width = draw.pick(64, 4)
    return Built(run, (draw.normal(draw.pick(512, 12), width), draw.normal(draw.pick(512, 20), width)))


def kernel_discrepancy(draw: Draw) -> Built:
    """The squared maximum mean discrepancy of two samples, by three kernel matrices."""

    def kernel(x: T, y: T) -> T:
        d = x.square().sum(-1, keepdim=True) - 2 * x @ y.T + y.square().sum(-1)
        return torch.exp(-d.clamp(min=0) / (2 * x.shape[-1])).mean()

    def run(x: T, y: T) -> T:
        return kernel(x, x) + kernel(y, y) - 2 * kernel(x, y)

    shape = draw.pick(1536, 12), draw.pick(32, 4)
    return Built(run, (draw.normal(*shape), draw.normal(*shape)))


def entropy(draw: Draw) -> Built:
    """Entropies of softmaxes of rows, and how unlike the rows are on the whole."""

    def run(x: T) -> tuple[T, T]:
        p = torch.softmax(x, -1)
        each = -(p * torch.log_softmax(x, -1)).sum(-1)
        mean = p.mean(0)
        return each, -(mean * mean.clamp(min=1e-12).log()).sum() - each.mean()

    return Built(run, (draw.normal(draw.pick(2048, 8), draw.pick(4096, 20)),))


def density(draw: Draw) -> Built:
    """A density at 256 places, by a Gaussian at each sample."""

    def run(x: T, places: T) -> T:
        z = (places[:, None] - x[None]) / 0.2
        return torch.exp(-z.square() / 2).sum(-1) / (x.shape[0] * 0.2 * math.sqrt(2 * math.pi))

    return Built(run, (draw.normal(draw.pick(32768, 20)), torch.linspace(-3, 3, draw.pick(256, 7)).to(draw.dtype)))


def cumulative(draw: Draw) -> Built:
    """Sums and maxima that run along, and how far a path falls from its highest."""

    def run(x: T) -> tuple[T, T]:
        path = x.cumsum(-1)
        fall = path.cummax(-1).values - path
        return path, fall.amax(-1)

    return Built(run, (draw.normal(draw.pick(1024, 6), draw.pick(2048, 20)),))


PROGRAMS = programs(
    "statistics",
    forward=(
        moments,
        standardise,
        skewness,
        covariance,
        nearest_centre,
        rbf_product,
        neighbours,
        pairwise_l1,
        kernel_discrepancy,
        entropy,
        density,
        cumulative,
    ),
)
