"""Medians, modes and running sums of exponentials."""

from __future__ import annotations

import math

import torch

from rewright.frontends.torch.definitions.table import Definitions, axis_of

DEFINITIONS = Definitions()
Chosen = tuple[torch.Tensor, torch.Tensor]


def _line(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The tensor with an axis last; one without axes has one element on it."""
    return x.reshape(1) if not x.dim() else x.movedim(dim, -1)


def _back(x: torch.Tensor, found: torch.Tensor, dim: int, keepdim: bool) -> torch.Tensor:
    if not x.dim():
        return found.reshape(())
    return found.movedim(-1, axis_of(x, dim)) if keepdim else found.squeeze(-1)


def _choose(x: torch.Tensor, dim: int, keepdim: bool, values: torch.Tensor, indices: torch.Tensor) -> Chosen:
    return _back(x, values, dim, keepdim), _back(x, indices, dim, keepdim)


@DEFINITIONS.define("median.dim")
def median_along(x: torch.Tensor, dim: int, keepdim: bool = False) -> Chosen:
    """The lower one of the two in the middle, and NaN where there is one."""
    line = _line(x, dim)
    middle = (line.shape[-1] - 1) // 2
    values, indices = torch.sort(line, dim=-1)
    value, index = values[..., middle : middle + 1], indices[..., middle : middle + 1]
    if x.is_floating_point():
        none = torch.isnan(line)
        some = none.any(-1, keepdim=True)
        value = torch.where(some, math.nan, value)
        index = torch.where(some, none.long().argmax(-1, keepdim=True), index)
    return _choose(x, dim, keepdim, value, index)


@DEFINITIONS.define("median.default")
def median(x: torch.Tensor) -> torch.Tensor:
    """The median of all elements."""
    return median_along(x.reshape(-1), 0)[0]


@DEFINITIONS.define("nanmedian.dim")
def nanmedian_along(x: torch.Tensor, dim: int, keepdim: bool = False) -> Chosen:
    """The median of what is a number; NaN sorts behind that."""
    line = _line(x, dim)
    values, indices = torch.sort(line, dim=-1)
    count = torch.isnan(line).logical_not().sum(-1, keepdim=True)
    middle = ((count - 1).clamp(min=0)) // 2
    return _choose(x, dim, keepdim, values.gather(-1, middle), indices.gather(-1, middle))


@DEFINITIONS.define("nanmedian.default")
def nanmedian(x: torch.Tensor) -> torch.Tensor:
    """The median of all elements that are numbers."""
    return nanmedian_along(x.reshape(-1), 0)[0]


@DEFINITIONS.define("mode.default")
def mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The smallest one of the elements that occur most often, and where it is last."""
    line = _line(x, dim)
    ordered, indices = torch.sort(line, dim=-1)
    counts = (ordered.unsqueeze(-1) == ordered.unsqueeze(-2)).sum(-1)
    first = (counts == counts.amax(-1, keepdim=True)).long().argmax(-1, keepdim=True)
    place = first + counts.gather(-1, first).clamp(min=1) - 1
    return _choose(x, dim, keepdim, ordered.gather(-1, place), indices.gather(-1, place))


@DEFINITIONS.define("logcumsumexp.default")
def logcumsumexp(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The logarithm of the sum of the exponentials up to each element, of differences to the largest one of those."""
    line = _line(x, dim)
    top = line.cummax(-1).values
    level = torch.where(torch.isfinite(top), top, 0.0)
    ramp = torch.arange(line.shape[-1], device=x.device)
    kept = ramp.unsqueeze(0) <= ramp.unsqueeze(1)
    parts = torch.where(kept, line.unsqueeze(-2), -math.inf) - level.unsqueeze(-1)
    total = parts.exp().sum(-1).log() + level
    return total.reshape(()) if not x.dim() else total.movedim(-1, axis_of(x, dim))


@DEFINITIONS.define("isin.Tensor_Tensor")
def isin(
    elements: torch.Tensor, test_elements: torch.Tensor, *, assume_unique: bool = False, invert: bool = False
) -> torch.Tensor:
    """Whether an element is among some others."""
    found = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
    return found.logical_not() if invert else found


@DEFINITIONS.define("nonzero_static.default")
def nonzero_static(x: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    """The places of the first ``size`` elements that are not zero, one a row."""
    flat = (x != 0).reshape(-1)
    order = torch.sort(flat.logical_not().long(), stable=True).indices
    count = flat.sum()
    missing = max(size - flat.shape[0], 0)
    kept = torch.cat([order, order.new_zeros(missing)])[:size]
    columns = list(torch.unravel_index(kept, x.shape)) if x.dim() else []
    if not columns:
        return kept.new_zeros((size, 0))
    there = (torch.arange(size, device=x.device) < count).unsqueeze(-1)
    return torch.where(there, torch.stack(columns, -1), fill_value)
