"""Pooling to a given size, and gradients of pooling by the places of the maxima."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewright.frontends.torch.definitions.table import Definitions

DEFINITIONS = Definitions()


def _spans(size: int, count: int) -> list[range]:
    """Which elements of an axis go into each of ``count`` ones."""
    return [range(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def _average(x: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    """Means over spans of an axis."""
    parts = [x.narrow(axis, span.start, len(span)).mean(axis) for span in _spans(x.shape[axis], count)]
    return torch.stack(parts, axis) if parts else x.narrow(axis, 0, 0)


def _spread(gradient: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The gradient of such means."""
    total = gradient.new_zeros((*gradient.shape[:axis], size, *gradient.shape[axis + 1 :]))
    for place, span in enumerate(_spans(size, gradient.shape[axis])):
        part = gradient.narrow(axis, place, 1) / len(span)
        shape = [-1] * gradient.dim()
        shape[axis] = len(span)
        pads = [0, 0] * (gradient.dim() - 1 - axis) + [span.start, size - span.stop]
        total = total + torch.nn.functional.pad(part.expand(shape), pads)
    return total


@DEFINITIONS.define("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default")
def adaptive_avg_pool(x: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """Means over boxes, one axis after the other."""
    first = x.dim() - len(output_size)
    for axis, count in enumerate(output_size, first):
        x = _average(x, axis, count)
    return x


def _spread_over(count: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    def backward(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """The gradient of what is averaged over the last axes."""
        for axis in range(x.dim() - count, x.dim()):
            gradient = _spread(gradient, axis, x.shape[axis])
        return gradient

    return backward


DEFINITIONS.define("_adaptive_avg_pool2d_backward.default")(_spread_over(2))
DEFINITIONS.define("_adaptive_avg_pool3d_backward.default")(_spread_over(3))


def _largest(count: int) -> Callable[[torch.Tensor, Sequence[int]], tuple[torch.Tensor, torch.Tensor]]:
    def pooled(x: torch.Tensor, output_size: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """The largest element of every box, and its place in the row-major order of the spatial axes."""
        sizes = x.shape[-count:]
        spans = [_spans(size, out) for size, out in zip(sizes, output_size, strict=True)]
        flat = x.reshape(*x.shape[:-count], -1)
        values: list[torch.Tensor] = []
        places: list[torch.Tensor] = []
        for box in itertools.product(*spans):
            inside = list(itertools.product(*box))
            index = torch.tensor([_row_major(place, sizes) for place in inside], device=x.device)
            value, place = flat.index_select(-1, index).max(-1)
            values.append(value)
            places.append(index[place])
        shape = (*x.shape[:-count], *output_size)
        if not values:
            return x.new_zeros(shape), x.new_zeros(shape, dtype=torch.int64)
        return torch.stack(values, -1).reshape(shape), torch.stack(places, -1).reshape(shape)

    return pooled


def _row_major(place: Sequence[int], sizes: Sequence[int]) -> int:
    found = 0
    for index, size in zip(place, sizes, strict=True):
        found = found * size + index
    return found


DEFINITIONS.define("adaptive_max_pool2d.default")(_largest(2))
DEFINITIONS.define("adaptive_max_pool3d.default")(_largest(3))


def _gradient_of_maxima(count: int) -> Callable[..., torch.Tensor]:
    def backward(gradient: torch.Tensor, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        """Every gradient goes to the place that its maximum was at."""
        indices: torch.Tensor = rest[-1]
        lead = x.shape[:-count]
        flat = x.new_zeros((*lead, x.shape[-count:].numel()))
        found = flat.scatter_add(-1, indices.reshape(*lead, -1), gradient.reshape(*lead, -1))
        return found.reshape(x.shape)

    return backward


DEFINITIONS.define("adaptive_max_pool2d_backward.default")(_gradient_of_maxima(2))
DEFINITIONS.define("adaptive_max_pool3d_backward.default", "max_pool3d_with_indices_backward.default")(
    _gradient_of_maxima(3)
)
