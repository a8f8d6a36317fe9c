"""What counts as different from eager PyTorch: errors, structure, types, memory, and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

TIMES, ROUNDINGS = 8.0, 64.0
"""How many times eager's own error, and how many roundings of the result's size, a difference may be."""


@dataclass(frozen=True)
class Outcome:
    """What a call did: what it returned and left in its arguments, or how it failed."""

    results: Any = None
    left: tuple[Any, ...] = ()
    error: str = ""


def outcome(function: Callable[..., Any], args: Sequence[Any]) -> Outcome:
    """Call it; what it raises is an outcome too."""
    try:
        torch.manual_seed(0)
        return Outcome(function(*args), tuple(args))
    except Exception as error:  # any: it is compared with that of eager PyTorch
        return Outcome(None, tuple(args), type(error).__name__)


def difference(ours: Outcome, eager: Outcome, exact: Outcome | None) -> str:
    """How an outcome is not that of eager PyTorch, in words; ``exact`` is the same call in float64."""
    if bool(ours.error) != bool(eager.error):
        return f"raises {ours.error or 'nothing'}, eager {eager.error or 'nothing'}"
    if eager.error:
        return ""
    mine, theirs = ((o.results, o.left) for o in (ours, eager))
    (a, one), (b, two) = (pytree.tree_flatten(tree) for tree in (mine, theirs))
    if one != two:
        return f"structure {one} is not {two}"
    references = pytree.tree_leaves((exact.results, exact.left)) if exact is not None and not exact.error else []
    references = references if len(references) == len(b) else [None] * len(b)
    for place, (x, y, z) in enumerate(zip(a, b, references, strict=True)):
        if why := _leaf(x, y, z):
            return f"leaf {place}: {why}"
    if _sharing(a) != _sharing(b):
        return f"shares memory as {_sharing(a)}, eager as {_sharing(b)}"
    return ""


def _leaf(x: Any, y: Any, exact: Any) -> str:
    if not isinstance(y, torch.Tensor):
        same = type(x) is type(y) and (x == y or (x != x and y != y))
        return "" if same else f"{x!r} is not {y!r}"
    if not isinstance(x, torch.Tensor) or type(x) is not type(y):
        return f"{type(x).__name__} is not {type(y).__name__}"
    for what in ("shape", "dtype", "device", "requires_grad", "layout"):
        if getattr(x, what) != getattr(y, what):
            return f"{what} {getattr(x, what)} is not {getattr(y, what)}"
    if x.numel() > 1 and _steps(x) != _steps(y):
        return f"strides {x.stride()} are not {y.stride()}"
    return _values(x.detach(), y.detach(), exact)


def _steps(x: torch.Tensor) -> list[int]:
    """The strides of axes of more than one element; no element is found by the others."""
    return [stride for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1]


def _values(x: torch.Tensor, y: torch.Tensor, exact: Any) -> str:
    if not y.is_floating_point():
        wrong = (x != y).nonzero()
        return f"{len(wrong)} of {y.numel()} differ, first at {wrong[0].tolist()}" if len(wrong) else ""
    precise = isinstance(exact, torch.Tensor) and exact.shape == y.shape and exact.is_floating_point()
    reference = exact.detach().double() if precise else y.double()
    x, kept, y = x.double(), y.dtype, y.double()
    finite = reference.isfinite() & y.isfinite()
    own = (y - reference).abs().where(finite, 0)
    size = reference.abs().where(finite, 0)
    most = torch.maximum(size, TIMES * own).amax() if size.numel() else 0.0  # sums of many numbers round by as much
    rounds = ROUNDINGS * (64 if kept is torch.float64 else 1)  # where nothing says how large eager's own error is
    room = TIMES * (own.amax() if own.numel() else 0.0) + rounds * torch.finfo(kept).eps * most
    near = (x - reference).abs() <= room + 4 * torch.finfo(kept).tiny
    overflows = ~y.isfinite() & reference.isfinite() & precise  # where that depends on the order of a sum
    same = overflows | (x == y) | (x.isnan() & y.isnan()) | (x == reference) | (x.isnan() & reference.isnan())
    bad = (~(same | (near & finite))).nonzero()
    if not len(bad):
        return ""
    at = tuple(bad[0].tolist())
    return (
        f"{len(bad)} of {y.numel()} differ, first at {list(at)}: {x[at]:.9g} is not {y[at]:.9g} ({reference[at]:.9g})"
    )


def _sharing(leaves: Sequence[Any]) -> list[tuple[int, int]]:
    """Which leaves lie in the same storage."""
    found = [x for x in leaves if isinstance(x, torch.Tensor) and x.numel()]
    pointers = [x.untyped_storage().data_ptr() for x in found]
    return [(i, j) for j in range(len(found)) for i in range(j) if pointers[i] == pointers[j]]


def in_double(value: Any) -> Any:
    """The same argument in float64, apart from all others."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().double().requires_grad_(value.requires_grad)
    return value.clone() if isinstance(value, torch.Tensor) else value


def bits(x: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor's elements, in which NaN is itself."""
    return x.detach().resolve_neg().clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)


__all__ = ["Outcome", "bits", "difference", "in_double", "outcome"]
