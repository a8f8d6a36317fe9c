"""What programs return, and how far it is from the same in float64."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as trees

from bench.optimize.program import Built


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of a result, in order."""
    return [leaf for leaf in trees.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def in_double(built: Built) -> Built:
    """The program with every floating tensor of the arguments, and of a module, in float64; a module is copied."""
    function = built.exact or built.function
    if isinstance(function, torch.nn.Module):
        function = copy.deepcopy(function).double()
    args = (a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in built.args)
    return Built(function, tuple(args))


def error(found: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """The largest difference of any output over the largest magnitude of that output; infinite where it is not finite.

    Of whole numbers and conditions it is the share that differs. Where what is exact is NaN or an infinity, the other
    has to be the same.
    """
    if len(found) != len(exact):
        return math.inf
    return max((_error(f.detach(), e.detach()) for f, e in zip(found, exact, strict=True)), default=0.0)


def _error(found: torch.Tensor, exact: torch.Tensor) -> float:
    if found.shape != exact.shape:
        return math.inf
    if not exact.is_floating_point():
        return (found != exact).double().mean().item()
    known = exact.isfinite()
    if not torch.allclose(found.double()[~known], exact.double()[~known], equal_nan=True):
        return math.inf
    if not bool(known.any()):
        return 0.0
    apart = (found.double() - exact)[known].abs().max().item()
    if not math.isfinite(apart):
        return math.inf
    return apart / max(exact[known].abs().max().item(), torch.finfo(torch.float32).tiny)
