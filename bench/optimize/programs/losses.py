"""Losses: of classes, of pairs, of regions and of numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs

T = torch.Tensor


def _logits(draw: Draw) -> tuple[T, T]:
    rows, words = draw.pick(512, 12), draw.pick(32000, 50)
    return draw.normal(rows, words), draw.integers(words, rows)


def cross_entropy(draw: Draw) -> Built:
    """Cross-entropy over a vocabulary of 32,000."""
    return Built(F.cross_entropy, _logits(draw))


def label_smoothing(draw: Draw) -> Built:
    """With a tenth of the target spread over all words, and rows that are left out."""

    def run(x: T, y: T) -> T:
        return F.cross_entropy(x, y, label_smoothing=0.1, ignore_index=3)

    return Built(run, _logits(draw))


def linear_cross_entropy(draw: Draw) -> Built:
    """The last layer of a language model and its loss."""

    def run(x: T, weight: T, y: T) -> T:
        return F.cross_entropy((x @ weight.T).float(), y)

    rows, width, words = draw.pick(256, 12), draw.pick(256, 8), draw.pick(32000, 50)
    return Built(run, (draw.normal(rows, width), draw.weight(words, width), draw.integers(words, rows)))


def z_loss(draw: Draw) -> Built:
    """Cross-entropy, and the square of the logarithm of the partition function (PaLM)."""

    def run(x: T, y: T) -> tuple[T, T]:
        total = torch.logsumexp(x, -1)
        return (total - x.gather(-1, y[:, None]).squeeze(-1)).mean(), 1e-4 * total.square().mean()

    return Built(run, _logits(draw))


def distillation(draw: Draw) -> Built:
    """The divergence of a student from a teacher, at temperature two."""

    def run(student: T, teacher: T) -> T:
        return 4 * F.kl_div(
            F.log_softmax(student / 2, -1), F.log_softmax(teacher / 2, -1), reduction="batchmean", log_target=True
        )

    x, _ = _logits(draw)
    return Built(run, (x, draw.normal(*x.shape)))


def policy_gradient(draw: Draw) -> Built:
    """GRPO: clipped ratios of the likelihoods of tokens, and the divergence from a reference."""

    def run(x: T, y: T, old: T, reference: T, gain: T) -> T:
        likely = torch.log_softmax(x, -1).gather(-1, y[:, None]).squeeze(-1)
        ratio, apart = (likely - old).exp(), reference - likely
        clipped = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        return -(clipped - 0.04 * (apart.exp() - apart - 1)).mean()

    x, y = _logits(draw)
    likely = torch.log_softmax(x.double(), -1).gather(-1, y[:, None]).squeeze(-1)
    near = [(likely + 0.1 * torch.randn(len(y), generator=draw.generator)).to(draw.dtype) for _ in range(2)]
    return Built(run, (x, y, *near, draw.weight(len(y))))


def focal(draw: Draw) -> Built:
    """Focal loss of anchors and classes, by sigmoids."""

    def run(x: T, y: T) -> T:
        p = torch.sigmoid(x)
        each = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        right = p * y + (1 - p) * (1 - y)
        return ((0.25 * y + 0.75 * (1 - y)) * each * (1 - right) ** 2).sum() / y.sum().clamp(min=1)

    shape = draw.pick(8192, 16), draw.pick(80, 5)
    return Built(run, (draw.normal(*shape), draw.flags(0.05, *shape).to(draw.dtype)))


def contrastive(draw: Draw) -> Built:
    """CLIP's loss: images against texts and texts against images."""

    def run(a: T, b: T, scale: T) -> T:
        s = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T * scale.exp()
        own = s.diagonal()
        return (torch.logsumexp(s, 0) - own).mean() / 2 + (torch.logsumexp(s, 1) - own).mean() / 2

    shape = draw.pick(2048, 12), draw.pick(256, 8)
    return Built(run, (draw.normal(*shape), draw.normal(*shape), draw.near_one()))


def triplet(draw: Draw) -> Built:
    """Anchors, what is to be near and what is to be far."""

    def run(a: T, near: T, far: T) -> T:
        return F.relu((a - near).norm(dim=-1) - (a - far).norm(dim=-1) + 1.0).mean()

    shape = draw.pick(16384, 12), draw.pick(128, 8)
    return Built(run, tuple(draw.normal(*shape) for _ in range(3)))


def dice(draw: Draw) -> Built:
    """One minus the overlap of soft regions, class by class."""

    def run(x: T, y: T) -> T:
        p = torch.softmax(x, 1)
        target = (y[:, None] == torch.arange(x.shape[1])[:, None, None]).to(x.dtype)
        both, sizes = (p * target).sum((2, 3)), (p + target).sum((2, 3))
        return 1 - ((2 * both + 1) / (sizes + 1)).mean()

    classes, side, batch = draw.pick(8, 3), draw.pick(256, 8), draw.pick(4, 2)
    return Built(run, (draw.normal(batch, classes, side, side), draw.integers(classes, batch, side, side)))


def huber(draw: Draw) -> Built:
    """Squares of small errors and magnitudes of large ones, by weights."""

    def run(x: T, y: T, weight: T) -> T:
        return (F.huber_loss(x, y, reduction="none", delta=0.5) * weight).sum() / weight.sum()

    count = draw.pick(2_000_000, 40)
    return Built(run, (draw.normal(count), draw.normal(count), draw.uniform(count)))


PROGRAMS = programs(
    "losses",
    backward=(
        cross_entropy,
        label_smoothing,
        linear_cross_entropy,
        z_loss,
        distillation,
        policy_gradient,
        focal,
        contrastive,
        triplet,
        dice,
        huber,
    ),
)
