"""Feed-forward blocks, adapters, and mixtures of experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def _widths(draw: Draw) -> tuple[int, int, int]:
    return draw.pick(256, 8), draw.pick(768, 16), draw.pick(2048, 24)


def gelu_mlp(draw: Draw) -> Built:
    """Two linear layers with biases, GELU between them."""

    def run(x: T, up: T, one: T, down: T, two: T) -> T:
        return F.linear(F.gelu(F.linear(x, up, one)), down, two)

    rows, wide, hidden = _widths(draw)
    up, down = draw.weight(hidden, wide), draw.weight(wide, hidden)
    return Built(run, (draw.normal(rows, wide), up, draw.weight(hidden), down, draw.weight(wide)))


def squared_relu_mlp(draw: Draw) -> Built:
    """Two linear layers, the square of ReLU between them, and the residual."""

    def run(x: T, up: T, down: T) -> T:
        return x + F.relu(x @ up.T).square() @ down.T

    rows, wide, hidden = _widths(draw)
    return Built(run, (draw.normal(rows, wide), draw.weight(hidden, wide), draw.weight(wide, hidden)))


def swiglu(draw: Draw) -> Built:
    """SwiGLU with three weights (Llama)."""

    def run(x: T, gate: T, up: T, down: T) -> T:
        return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T

    rows, wide, hidden = _widths(draw)
    return Built(
        run,
        (draw.normal(rows, wide), draw.weight(hidden, wide), draw.weight(hidden, wide), draw.weight(wide, hidden)),
    )


def geglu(draw: Draw) -> Built:
    """GEGLU with gate and value in one weight."""

    def run(x: T, both: T, down: T) -> T:
        value, gate = (x @ both.T).chunk(2, -1)
        return (value * F.gelu(gate, approximate="tanh")) @ down.T

    rows, wide, hidden = _widths(draw)
    return Built(run, (draw.normal(rows, wide), draw.weight(2 * hidden, wide), draw.weight(wide, hidden)))


def normed_mlp(draw: Draw) -> Built:
    """A norm, a feed-forward block, and the residual."""

    def run(x: T, gain: T, up: T, down: T) -> T:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * gain
        return x + F.silu(y @ up.T) @ down.T

    rows, wide, hidden = _widths(draw)
    return Built(
        run, (draw.normal(rows, wide), draw.near_one(wide), draw.weight(hidden, wide), draw.weight(wide, hidden))
    )


def lora(draw: Draw) -> Built:
    """A linear layer and what an adapter of rank 16 adds."""

    def run(x: T, weight: T, down: T, up: T) -> T:
        return x @ weight.T + 2.0 * (x @ down.T) @ up.T

    rows, wide, _ = _widths(draw)
    rank = draw.pick(16, 4)
    return Built(
        run, (draw.normal(rows, wide), draw.weight(wide, wide), draw.weight(rank, wide), draw.weight(wide, rank))
    )


def quantised_linear(draw: Draw) -> Built:
    """A weight of eight bits, with a scale for each group of 64 inputs."""

    def run(x: T, weight: T, scale: T) -> T:
        full = (weight.to(x.dtype).unflatten(1, (scale.shape[1], -1)) * scale[..., None]).flatten(1)
        return x @ full.T

    rows, wide, hidden = draw.pick(64, 4), draw.pick(1024, 16), draw.pick(2048, 24)
    weight = (draw.integers(255, hidden, wide) - 127).to(torch.int8)
    return Built(run, (draw.normal(rows, wide), weight, draw.uniform(hidden, draw.pick(16, 4)) / 127))


def mixture_dense(draw: Draw) -> Built:
    """All of eight experts, weighted by a softmax."""

    def run(x: T, router: T, up: T, down: T) -> T:
        weight = torch.softmax(x @ router.T, -1)
        hidden = F.silu(torch.einsum("td,ehd->eth", x, up))
        return torch.einsum("eth,edh,te->td", hidden, down, weight)

    rows, wide, hidden, count = draw.pick(128, 8), draw.pick(256, 8), draw.pick(512, 12), draw.pick(8, 3)
    up, down = draw.weight(count, hidden, wide), draw.weight(count, wide, hidden)
    return Built(run, (draw.normal(rows, wide), draw.weight(count, wide), up, down))


def mixture_top_two(draw: Draw) -> Built:
    """The best two of eight experts by their normed weights; the others are multiplied by zero."""

    def run(x: T, router: T, up: T, down: T) -> T:
        weight = torch.softmax(x @ router.T, -1)
        least = weight.topk(2, -1).values[..., -1:]
        weight = torch.where(weight >= least, weight, 0.0)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number in range(up.shape[0]):
            out = out + weight[:, number, None] * (F.silu(x @ up[number].T) @ down[number].T)
        return out

    rows, wide, hidden, count = draw.pick(128, 8), draw.pick(256, 8), draw.pick(512, 12), draw.pick(8, 3)
    up, down = draw.weight(count, hidden, wide), draw.weight(count, wide, hidden)
    return Built(run, (draw.normal(rows, wide), draw.weight(count, wide), up, down))


def top_k_gating(draw: Draw) -> Built:
    """A router: the weights and numbers of eight of 128 experts, and the loss that balances them."""

    def run(x: T, router: T) -> tuple[T, T, T]:
        p = torch.softmax((x @ router.T).float(), -1)
        weight, chosen = p.topk(draw.pick(8, 2), -1)
        used = torch.zeros_like(p).scatter(-1, chosen, 1.0).mean(0)
        return weight / weight.sum(-1, keepdim=True), chosen, (used * p.mean(0)).sum() * p.shape[-1]

    rows, wide, count = draw.pick(8192, 12), draw.pick(512, 8), draw.pick(128, 6)
    return Built(run, (draw.normal(rows, wide), draw.weight(count, wide)))


PROGRAMS = programs(
    "experts",
    forward=(quantised_linear, mixture_top_two, top_k_gating),
    backward=(gelu_mlp, squared_relu_mlp, swiglu, geglu, normed_mlp, lora, mixture_dense),
)
