"""Small programs to optimise, each with its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from rewright.frontends.torch.names import leaves
from rewright.frontends.torch.owners import Owners
from rewright.optimize.calls.dispatch import arguments_by_name

Program = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Standard normal numbers, always the same."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and result of attention with an additive mask."""
    mask = mask.to(q.dtype) if isinstance(mask, torch.Tensor) else mask
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask, -1)
    return weights, weights @ v


def places(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Row and column numbers."""
    return torch.arange(rows)[:, None], torch.arange(columns)[None]


def causal() -> Program:
    """Causal attention of ragged length with the sums of its columns."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, j = places(q.shape[-2], k.shape[-2])
        weights, out = attention(q, k, v, torch.where(j <= i, 0.0, float("-inf")))
        return out, weights.sum(-2)

    return program, tuple(normal(1, 2, 37, 16, seed=s) for s in range(3))


def window() -> Program:
    """Attention to the last few keys."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        return attention(q, k, v, torch.where((j <= i) & (j > i - 7), 0.0, float("-inf")))[1]

    return program, tuple(normal(1, 2, 53, 16, seed=s) for s in range(3))


def grouped() -> Program:
    """Grouped keys and values, more keys than queries."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    return program, (normal(1, 4, 19, 32), normal(1, 2, 41, 32, seed=1), normal(1, 2, 41, 32, seed=2))


def decode() -> Program:
    """One query."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attention(q, k, v, 0.0)[1]

    return program, (normal(2, 3, 1, 16), normal(2, 3, 45, 16, seed=1), normal(2, 3, 45, 16, seed=2))


def alibi() -> Program:
    """Causal attention with a bias that grows with the distance."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        bias = (slopes[:, None, None] * (j - i)).masked_fill(j > i, float("-inf"))
        return attention(q, k, v, bias)[1]

    return program, (*(normal(1, 2, 29, 16, seed=s) for s in range(3)), torch.tensor([0.5, 0.25]))


def residual_norm() -> Program:
    """RMS norm of a sum, which is returned too."""

    def program(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = x + y
        return h, F.rms_norm(h, (w.shape[0],), w)

    return program, (normal(13, 50), normal(13, 50, seed=1), normal(50, seed=2))


def norm_product() -> Program:
    """Layer norm and the matrix product after it."""

    def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (w.shape[0],), w, b) @ m

    return program, (normal(21, 32), normal(32, seed=1), normal(32, seed=2), normal(32, 40, seed=3))


def bare_norm_product() -> Program:
    """Layer norm without weights, and what it is added to: of the product a mean times a sum of columns is left."""

    def program(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        y = F.layer_norm(x, (m.shape[0],))
        return y + torch.tanh(y @ m)

    return program, (normal(21, 32), normal(32, 32, seed=1))


def deviation() -> Program:
    """Mean and standard deviation of long rows, far from zero."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = x.mean(-1, keepdim=True)
        return mean, ((x - mean) ** 2).mean(-1, keepdim=True).sqrt()

    return program, (normal(7, 531) + 20,)


def gated() -> Program:
    """SwiGLU."""

    def program(x: torch.Tensor, g: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return F.silu(x @ g) * (x @ u)

    return program, (normal(9, 16), normal(16, 24, seed=1), normal(16, 24, seed=2))


def loss() -> Program:
    """Cross entropy over a product with a large vocabulary."""

    def program(h: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(h @ w.t(), labels)

    return program, (normal(11, 16), normal(97, 16, seed=1), torch.arange(11) * 7)


def gating() -> Program:
    """The two largest probabilities, normalised."""

    def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, chosen = torch.topk(torch.softmax(x @ w, -1), 2)
        return values / values.sum(-1, keepdim=True), chosen

    return program, (normal(17, 16), normal(16, 8, seed=1))


def largest() -> Program:
    """The largest element of long rows with ties, its place, the last such place, and the place of the smallest."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, first = x.max(-1)
        last = torch.where(x == values[:, None], torch.arange(x.shape[-1]), -1).amax(-1)
        return values, first, last, x.argmin(-1)

    return program, ((normal(7, 131) * 2).round(),)


def router() -> Program:
    """Each row's one expert: the largest probability and whose it is."""

    def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, chosen = torch.topk(torch.softmax(x @ w, -1), 1)
        return values, chosen

    return program, (normal(17, 16), normal(16, 40, seed=1))


def rotary() -> Program:
    """Rotary positions: halves of the features change places."""

    def program(q: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        half = q.shape[-1] // 2
        return q * c + torch.cat((-q[..., half:], q[..., :half]), -1) * s

    return program, (normal(2, 7, 16), normal(7, 16, seed=1), normal(7, 16, seed=2))


def threshold() -> Program:
    """Whether a weight of a column is ever above its row's threshold."""

    def program(q: torch.Tensor, k: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        weights, _ = attention(q, k, k, torch.where(j <= i, 0.0, float("-inf")))
        return (weights >= least[:, None]).any(-2)

    return program, (normal(1, 1, 40, 16), normal(1, 1, 40, 16, seed=1), 1 / (torch.arange(40) + 1.0))


def sinks() -> Program:
    """Causal attention with one more logit for each head, which takes a part of the weights and has no value."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        scores = (q @ k.transpose(-1, -2) / 4).masked_fill(j > i, float("-inf"))
        last = sink[None, :, None, None].expand(q.shape[0], -1, q.shape[2], 1)
        return torch.softmax(torch.cat([scores, last], -1), -1)[..., :-1] @ v

    return program, (*(normal(1, 2, 29, 16, seed=s) for s in range(3)), normal(2, seed=3))


def differential() -> Program:
    """The difference of two causal softmaxes, the second one with a weight, which is a number."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        (q1, q2), (k1, k2) = q.chunk(2, -1), k.chunk(2, -1)
        first, second = (
            torch.softmax((a @ b.transpose(-1, -2) / 4).masked_fill(j > i, float("-inf")), -1)
            for a, b in ((q1, k1), (q2, k2))
        )
        return (first - weight * second) @ v

    return program, (*(normal(1, 2, 29, 32, seed=s) for s in range(3)), torch.tensor(0.8))


def documents() -> Program:
    """Soft-capped attention within documents, whose numbers float32 cannot tell apart."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        scores = 30 * torch.tanh(q @ k.transpose(-1, -2) / 4 / 30)
        together = (ids[:, None, :, None] == ids[:, None, None, :]) & (j <= i)
        return torch.softmax(torch.where(together, scores, float("-inf")), -1) @ v

    ids = 2**40 + torch.arange(33)[None] // 9
    return program, (*(normal(1, 2, 33, 16, seed=s) for s in range(3)), ids)


def empty_rows() -> Program:
    """Attention under a mask that keeps every key from some queries, which PyTorch answers with zero."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    mask = normal(1, 1, 27, 31, seed=3) > 0.2
    mask[..., 5:7, :] = False
    return program, (normal(1, 2, 27, 16), normal(1, 2, 31, 16, seed=1), normal(1, 2, 31, 16, seed=2), mask)


def log_total() -> Program:
    """Attention by way of the logarithm of the sum of exponentials, which is returned, as the caches of chunks need."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = q @ k.transpose(-1, -2) / 4
        total = torch.logsumexp(scores, -1, keepdim=True)
        return torch.exp(scores - total) @ v, total

    return program, tuple(normal(1, 2, 27, 16, seed=s) for s in range(3))


def weights_entropy() -> Program:
    """Causal attention and the entropy of its weights."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, j = places(q.shape[-2], k.shape[-2])
        weights, out = attention(q, k, v, torch.where(j <= i, 0.0, float("-inf")))
        return out, -(weights * torch.log(weights + 1e-9)).sum(-1)

    return program, tuple(normal(1, 2, 27, 16, seed=s) for s in range(3))


def forgetting() -> Program:
    """Causal attention that decays by gates, of which the running total of the logarithms is added to the scores."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        total = torch.cumsum(F.logsigmoid(gates), -1)
        scores = q @ k.transpose(-1, -2) / 4 + total[..., :, None] - total[..., None, :]
        return torch.softmax(scores.masked_fill(j > i, float("-inf")), -1) @ v

    return program, (*(normal(1, 2, 27, 16, seed=s) for s in range(3)), normal(1, 2, 27, seed=3))


def relative() -> Program:
    """A bias that is looked up by the distance of two positions."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        bias = table[(j - i).clamp(-8, 8) + 8].permute(2, 0, 1)
        return torch.softmax(q @ k.transpose(-1, -2) / 4 + bias, -1) @ v

    return program, (*(normal(1, 2, 27, 16, seed=s) for s in range(3)), normal(17, 2, seed=3))


def windowed_sums() -> Program:
    """The weights that each key gets of the last queries, averaged over neighbours: which keys a cache keeps."""

    def program(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        scores = q[:, :, -8:] @ k.transpose(-1, -2) / 4
        return F.avg_pool1d(torch.softmax(scores, -1).sum(-2), 5, 1, 2)

    return program, (normal(1, 2, 53, 16), normal(1, 2, 53, 16, seed=1))


def smoothed_loss() -> Program:
    """Cross entropy with smoothed labels, some of which are to be ignored."""

    def program(h: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(h @ w.t(), labels, label_smoothing=0.1, ignore_index=-100)

    labels = torch.where(torch.arange(11) % 4 == 1, -100, torch.arange(11) * 7)
    return program, (normal(11, 16), normal(97, 16, seed=1), labels)


def quantised_norm() -> Program:
    """RMS norm of a sum, rounded to whole steps of a row's own size, which is returned."""

    def program(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = x + y
        normed = F.rms_norm(h, (w.shape[0],), w)
        step = normed.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        return h, torch.round(normed / step).clamp(-128, 127), step

    return program, (normal(13, 50), normal(13, 50, seed=1), normal(50, seed=2))


def masked_mean() -> Program:
    """The mean of the elements of each sequence that its mask keeps."""

    def program(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = mask.float()[..., None]
        return (x * kept).sum(1) / kept.sum(1).clamp(min=1)

    return program, (normal(3, 41, 16), torch.arange(41)[None] < torch.tensor([[41], [7], [0]]))


def group_norm() -> Program:
    """Normalisation over groups of channels, and an activation."""

    def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.silu(F.group_norm(x, 4, w, b))

    return program, (normal(2, 16, 5, 7), normal(16, seed=1), normal(16, seed=2))


def absorbed() -> Program:
    """Attention over latents that all heads share, one query: axes of one element beside the features."""

    def program(q: torch.Tensor, latents: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(torch.einsum("bhsr,btr->bhst", q, latents) / 4, -1)
        return torch.einsum("bhsr,hrd->bhsd", torch.einsum("bhst,btr->bhsr", weights, latents), up)

    return program, (normal(1, 3, 5, 12), normal(1, 17, 12, seed=1), normal(3, 12, 16, seed=2))


def weighed() -> Program:
    """Attention whose features are weighed by several numbers each: its accumulators have two loops too many."""

    def program(q: torch.Tensor, k: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        return (torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ k)[..., None] * numbers

    return program, (normal(2, 9, 16), normal(2, 13, 16, seed=1), normal(5, seed=2))


PROGRAMS: dict[str, Callable[[], Program]] = {
    f.__name__: f
    for f in (
        absorbed,
        weighed,
        causal,
        window,
        grouped,
        decode,
        alibi,
        residual_norm,
        norm_product,
        bare_norm_product,
        deviation,
        gated,
        loss,
        gating,
        largest,
        router,
        rotary,
        threshold,
        sinks,
        differential,
        documents,
        empty_rows,
        log_total,
        weights_entropy,
        forgetting,
        relative,
        windowed_sums,
        smoothed_loss,
        quantised_norm,
        masked_mean,
        group_norm,
    )
}


def tensors_by_name(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors of a call by the names that a capture gives them: parameters, buffers, arguments."""
    arguments = arguments_by_name(program, args, kwargs)
    owners = Owners.of(program, arguments, wrappers=True)
    found: dict[str, torch.Tensor] = {**owners.parameters(), **owners.buffers()}
    for name, value in arguments.items():
        found |= {n: leaf for n, leaf in leaves(name, value) if isinstance(leaf, torch.Tensor)}
    return found
