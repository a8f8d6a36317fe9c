"""Writing at indices that are read from data, in the forms that are more than a scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rewright.frontends.torch.definitions.table import Definitions, broadcast_pair

DEFINITIONS = Definitions()
TRACED = Definitions()


def _identity(reduce: str, dtype: torch.dtype) -> float | int | bool:
    """What changes nothing that it is combined with."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype is torch.bool:
        return reduce == "amin"
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    limits = torch.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


@DEFINITIONS.define("scatter_reduce.two")
def scatter_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """Elements combined with what goes to their place; without their own value where something does, if so asked."""
    if not x.dim():
        return scatter_reduce(
            x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self
        ).reshape(())
    if reduce == "mean":
        return _scatter_mean(x, dim, index, src, include_self)
    base = x if include_self else x.scatter(dim, index, _identity(reduce, x.dtype))
    if reduce == "sum":
        return base.scatter_add(dim, index, src)
    return base.scatter_reduce(dim, index, src, reduce, include_self=True)


def _scatter_mean(
    x: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, include_self: bool
) -> torch.Tensor:
    total = scatter_reduce(x, dim, index, src, "sum", include_self=include_self)
    own = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = own.scatter_add(dim, index, torch.ones_like(src)).clamp(min=1)
    return total / count if x.is_floating_point() else torch.div(total, count, rounding_mode="floor")


@DEFINITIONS.define("index_reduce.default")
def index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """Slices combined with those that go to their place."""
    if not x.dim():
        return index_reduce(x.reshape(1), 0, index, source.reshape(-1), reduce, include_self=include_self).reshape(())
    shape = [1] * x.dim()
    shape[dim] = index.numel()
    every = index.reshape(shape).expand(source.shape)
    return scatter_reduce(x, dim, every, source, reduce, include_self=include_self)


def _places(mask: torch.Tensor) -> torch.Tensor:
    """For every element of a mask the number of true ones before it."""
    flat = mask.reshape(-1).long()
    return (flat.cumsum(0) - flat).reshape(mask.shape)


@DEFINITIONS.define("masked_scatter.default")
def masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Where a mask holds, the elements of a source one after the other."""
    mask, x = broadcast_pair(mask, x)
    if not source.numel():
        return x.clone()
    places = _places(mask).clamp(max=source.numel() - 1)
    return torch.where(mask, source.reshape(-1)[places], x)


@TRACED.define("masked_scatter_backward.default")
def masked_scatter_backward(gradient: torch.Tensor, mask: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The gradient of the source: that of the places where its elements went."""
    count = math.prod(sizes)
    mask = mask.expand(gradient.shape)
    kept = torch.where(mask, gradient, 0.0).reshape(-1)
    places = _places(mask).reshape(-1)
    longer = max(count, kept.shape[0])
    return gradient.new_zeros(longer).index_put((places,), kept, accumulate=True)[:count].reshape(sizes)


@DEFINITIONS.define("take.default")
def take(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Elements by their place in row-major order."""
    return x.reshape(-1)[index]


@DEFINITIONS.define("put.default")
def put(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    """Elements written by their place in row-major order."""
    flat = x.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


def _bags(offsets: torch.Tensor, count: int, include_last_offset: bool) -> torch.Tensor:
    """Whether an element is in a bag: (bags, elements)."""
    starts = offsets[:-1] if include_last_offset else offsets
    ends = offsets[1:] if include_last_offset else torch.cat([offsets[1:], offsets.new_full((1,), count)])
    ramp = torch.arange(count, device=offsets.device)
    return (ramp >= starts.unsqueeze(1)) & (ramp < ends.unsqueeze(1))


@DEFINITIONS.define("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sums, means or maxima of the rows of every bag; in which bag each element is, the sizes, and where maxima are."""
    inside = _bags(offsets, indices.shape[0], include_last_offset)
    counted = inside & (indices != padding_idx)
    sizes = counted.sum(1)
    of = inside.long().argmax(0) if inside.shape[0] else indices.new_zeros(indices.shape)
    rows = weight[indices]
    if mode == 2:
        masked = torch.where(counted.unsqueeze(-1), rows.unsqueeze(0), -math.inf)
        largest, place = masked.max(1)
        empty = (sizes == 0).unsqueeze(-1)
        return torch.where(empty, 0.0, largest), of, sizes, torch.where(empty, -1, indices[place])
    rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(-1)
    total = counted.to(weight.dtype) @ rows
    if mode == 1:
        total = total / sizes.clamp(min=1).to(weight.dtype).unsqueeze(-1)
    return total, of, sizes, indices.new_zeros((0,))


@DEFINITIONS.define("_embedding_bag_dense_backward.default")
def embedding_bag_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum_indices: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> torch.Tensor:
    """The gradient of the rows."""
    start = gradient.new_zeros((num_weights, gradient.shape[-1]))
    if mode == 2:
        there = maximum_indices >= 0
        return start.scatter_add(0, maximum_indices.clamp(min=0), torch.where(there, gradient, 0.0))
    parts = gradient[offset2bag]
    if mode == 1:
        parts = parts / bag_size[offset2bag].clamp(min=1).to(gradient.dtype).unsqueeze(-1)
    if per_sample_weights is not None:
        parts = parts * per_sample_weights.unsqueeze(-1)
    if scale_grad_by_freq:
        parts = parts / (indices.unsqueeze(0) == indices.unsqueeze(1)).sum(1).to(gradient.dtype).unsqueeze(-1)
    parts = torch.where((indices != padding_idx).unsqueeze(-1), parts, 0.0)
    return start.index_add(0, indices, parts)


@DEFINITIONS.define("_embedding_bag_backward.default")
def embedding_bag_dispatched_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum_indices: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> torch.Tensor:
    """The same, dense or not."""
    return embedding_bag_backward(
        gradient,
        indices,
        offset2bag,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


@DEFINITIONS.define("_embedding_bag_per_sample_weights_backward.default")
def embedding_bag_weights_backward(
    gradient: torch.Tensor,
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    mode: int,
    padding_idx: int = -1,
) -> torch.Tensor:
    """The gradient of what the rows are weighed by."""
    shares = (gradient[offset2bag] * weight[indices]).sum(-1)
    return torch.where(indices != padding_idx, shares, 0.0)
