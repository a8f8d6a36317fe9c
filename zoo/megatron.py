"""The decoder of ``decoder.py`` split by hand over a tensor-parallel group, in the manner of Megatron-LM.

Collectives are plain ``torch.distributed`` calls inside autograd functions. Parameters are local tensors under the
names of the sequential model. Embedding and cross-entropy are split over the vocabulary. With sequence parallelism the
activations between the split regions are split along the sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn

from zoo.decoder import DecoderConfig, Norm, attend

Group = Any
Operation = Callable[[torch.Tensor, Group], torch.Tensor]
dist: Any = torch.distributed  # most of it is not annotated


class Exchange(torch.autograd.Function):
    """An operation over a group whose gradient is another one, its adjoint."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group, operation: Operation, adjoint: Operation) -> torch.Tensor:
        """The operation."""
        ctx.group, ctx.adjoint = group, adjoint
        return operation(x, group)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The adjoint."""
        return ctx.adjoint(gradients[0], ctx.group), None, None, None


class VocabularyCrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of logits split over the vocabulary, as in Megatron-LM's ``vocab_parallel_cross_entropy``."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor, start: int, group: Group) -> torch.Tensor:
        """Logits (tokens, local vocabulary) and labels (tokens) to a scalar."""
        largest = logits.amax(-1)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
        shifted = logits - largest.unsqueeze(-1)
        outside = (labels < start) | (labels >= start + logits.shape[-1])
        local = (labels - start).masked_fill(outside, 0)
        wanted = shifted.gather(-1, local.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0)
        dist.all_reduce(wanted, group=group)
        exponentials = shifted.exp()
        total = exponentials.sum(-1)
        dist.all_reduce(total, group=group)
        ctx.save_for_backward(exponentials / total.unsqueeze(-1), local, outside)
        return (total.log() - wanted).mean()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Softmax minus one at the label, where the label is local."""
        softmax, local, outside = ctx.saved_tensors
        hit = (~outside).to(softmax.dtype).unsqueeze(-1)
        gradient = softmax.scatter_add(-1, local.unsqueeze(-1), -hit)
        return gradient * (gradients[0] / local.numel()), None, None, None


def apply(function: type[torch.autograd.Function], *args: Any) -> torch.Tensor:
    """Call an autograd function."""
    untyped: Any = function
    return untyped.apply(*args)


def keep(x: torch.Tensor, group: Group) -> torch.Tensor:
    """The tensor itself."""
    return x.view_as(x)


def reduce(x: torch.Tensor, group: Group) -> torch.Tensor:
    """The sum over the ranks."""
    total = x.clone()
    dist.all_reduce(total, group=group)
    return total


def gather(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Everybody's tensors one after the other along axis 0."""
    whole = x.new_empty((x.shape[0] * dist.get_world_size(group), *x.shape[1:]))
    dist.all_gather_into_tensor(whole, x.contiguous(), group=group)
    return whole


def scatter(x: torch.Tensor, group: Group) -> torch.Tensor:
    """This rank's part along axis 0 of the sum."""
    part = x.new_empty((x.shape[0] // dist.get_world_size(group), *x.shape[1:]))
    dist.reduce_scatter_tensor(part, x.contiguous(), group=group)
    return part


class Regions:
    """How activations enter and leave the split regions, with or without sequence parallelism."""

    def __init__(self, group: Group, sequence: bool) -> None:
        self.group, self.sequence = group, sequence
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)

    def enter(self, x: torch.Tensor) -> torch.Tensor:
        """To the activations that every rank needs whole; their gradients are addends."""
        return apply(Exchange, x, self.group, *((gather, scatter) if self.sequence else (keep, reduce)))

    def leave(self, x: torch.Tensor) -> torch.Tensor:
        """From addends to the sum, or to a part of it."""
        return apply(Exchange, x, self.group, *((scatter, gather) if self.sequence else (reduce, keep)))


class ParallelVocabulary(nn.Module):
    """An embedding of this rank's rows of the vocabulary; the last rank may have fewer."""

    def __init__(self, config: DecoderConfig, regions: Regions) -> None:
        super().__init__()
        step = -(-config.vocabulary // regions.size)
        self.start = min(step * regions.rank, config.vocabulary)
        self.rows = min(step, config.vocabulary - self.start)
        self.weight = nn.Parameter(torch.empty(self.rows, config.width))
        self.regions = regions

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Rows that are elsewhere are zeros here; the sum over the ranks has them all."""
        outside = (tokens < self.start) | (tokens >= self.start + self.rows)
        found = F.embedding((tokens - self.start).masked_fill(outside, 0), self.weight)
        return self.regions.leave(found.masked_fill(outside.unsqueeze(-1), 0.0))


class Row(nn.Module):
    """A linear layer split by input features; the bias is added once, after the sum."""

    def __init__(self, given: int, width: int, regions: Regions) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, given // regions.size))
        self.bias = nn.Parameter(torch.empty(width))
        self.regions = regions

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, local features) to (sequence, batch, width)."""
        return self.regions.leave(F.linear(x, self.weight)) + self.bias


class ParallelAttention(nn.Module):
    """Attention over this rank's heads."""

    def __init__(self, config: DecoderConfig, regions: Regions) -> None:
        super().__init__()
        self.head, self.regions = config.head, regions
        shared = config.shared_heads * config.head // regions.size
        self.query = nn.Linear(config.width, config.heads * config.head // regions.size)
        self.key, self.value = nn.Linear(config.width, shared), nn.Linear(config.width, shared)
        self.output = Row(config.heads * config.head, config.width, regions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, width) to the same."""
        x = self.regions.enter(x)
        return self.output(attend(self.query(x), self.key(x), self.value(x), self.head))


class ParallelFeedForward(nn.Module):
    """This rank's part of the gated unit."""

    def __init__(self, config: DecoderConfig, regions: Regions) -> None:
        super().__init__()
        self.regions = regions
        self.gate = nn.Linear(config.width, config.inner // regions.size)
        self.up = nn.Linear(config.width, config.inner // regions.size)
        self.down = Row(config.inner, config.width, regions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, width) to the same."""
        x = self.regions.enter(x)
        return self.down(F.silu(self.gate(x)) * self.up(x))


class ParallelBlock(nn.Module):
    """Attention and feed-forward with residual connections."""

    def __init__(self, config: DecoderConfig, regions: Regions) -> None:
        super().__init__()
        self.attention_norm, self.attention = Norm(config.width), ParallelAttention(config, regions)
        self.feed_forward_norm, self.feed_forward = Norm(config.width), ParallelFeedForward(config, regions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(sequence, batch, width) to the same."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class ParallelDecoder(nn.Module):
    """One rank of the decoder: token ids (sequence, batch) to this rank's logits, and the whole loss with labels."""

    def __init__(self, config: DecoderConfig, group: Group, *, sequence: bool = False) -> None:
        super().__init__()
        self.regions = Regions(group, sequence)
        self.embedding = ParallelVocabulary(config, self.regions)
        self.blocks = nn.ModuleList([ParallelBlock(config, self.regions) for _ in range(config.layers)])
        self.norm = Norm(config.width)
        self.head = nn.Linear(config.width, self.embedding.rows, bias=False)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """``logits`` (sequence, batch, local vocabulary), and ``loss`` where labels are given."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.regions.enter(self.norm(x)))
        if labels is None:
            return {"logits": logits}
        flat = logits.flatten(0, 1)
        loss = apply(VocabularyCrossEntropy, flat, labels.flatten(), self.embedding.start, self.regions.group)
        return {"loss": loss, "logits": logits}

    def reduce_gradients(self) -> None:
        """With sequence parallelism norms and row biases see a part of the sequence: sum their gradients."""
        if not self.regions.sequence:
            return
        for name, parameter in self.named_parameters():
            if "norm" in name or name.endswith(("output.bias", "down.bias")):
                dist.all_reduce(parameter.grad, group=self.regions.group)


def train_step(model: ParallelDecoder, tokens: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Forward, backward and the reductions that follow; gradients stay in the parameters."""
    results = model(tokens, labels)
    results["loss"].backward()
    model.reduce_gradients()
    return results
