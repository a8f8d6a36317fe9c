"""Linear equations and inverses, by substitution with factors."""

from __future__ import annotations

import torch

from rewright.frontends.torch.definitions.factors import count_of, eliminated, exchanged
from rewright.frontends.torch.definitions.table import Definitions, common_shape

DEFINITIONS = Definitions()


def substituted(a: torch.Tensor, b: torch.Tensor, *, upper: bool, unit: bool) -> torch.Tensor:
    """The x of ``a x = b`` for a triangular matrix, row by row."""
    size = count_of(a.shape[-1])
    found: dict[int, torch.Tensor] = {}
    for row in reversed(range(size)) if upper else range(size):
        rest = b[..., row, :]
        for other, x in found.items():
            rest = rest - a[..., row, other].unsqueeze(-1) * x
        found[row] = rest if unit else rest / a[..., row, row].unsqueeze(-1)
    return torch.stack([found[row] for row in range(size)], -2) if size else b.clone()


def _together(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Matrices with common leading axes."""
    lead = common_shape(a.shape[:-2], b.shape[:-2])
    return a.expand((*lead, *a.shape[-2:])), b.expand((*lead, *b.shape[-2:]))


@DEFINITIONS.define("linalg_solve_triangular.default")
def solve_triangular(
    a: torch.Tensor, b: torch.Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> torch.Tensor:
    """The x of ``a x = b``, or of ``x a = b``."""
    a, b = _together(a, b)
    if left:
        return substituted(a, b, upper=upper, unit=unitriangular)
    return substituted(a.mT, b.mT, upper=not upper, unit=unitriangular).mT


@DEFINITIONS.define("triangular_solve.default")
def triangular_solve(
    b: torch.Tensor, a: torch.Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The x of ``a x = b``, and a copy of the matrix."""
    a, b = _together(a, b)
    used = a.mT if transpose else a
    return substituted(used, b, upper=upper != transpose, unit=unitriangular), a.clone()


@DEFINITIONS.define("linalg_lu_solve.default")
def lu_solve(
    packed: torch.Tensor, pivots: torch.Tensor, b: torch.Tensor, *, left: bool = True, adjoint: bool = False
) -> torch.Tensor:
    """The x of ``a x = b`` by the factors of a."""
    if not left:
        return lu_solve(packed, pivots, b.mT, adjoint=not adjoint).mT
    packed, b = _together(packed, b)
    order = exchanged(pivots, packed.shape[-1]).expand(packed.shape[:-1]).unsqueeze(-1)
    if not adjoint:
        b = b.gather(-2, order.expand(b.shape))
        lower = substituted(packed, b, upper=False, unit=True)
        return substituted(packed, lower, upper=True, unit=False)
    lower = substituted(packed.mT, b, upper=False, unit=False)
    solved = substituted(packed.mT, lower, upper=True, unit=True)
    back = torch.sort(order.expand(b.shape), dim=-2, stable=True).indices
    return solved.gather(-2, back)


@DEFINITIONS.define("_linalg_solve_ex.default")
def solve_ex(
    a: torch.Tensor, b: torch.Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The x of ``a x = b``; vectors are matrices of one column."""
    vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    packed, pivots, info = eliminated(a)
    columns = b.unsqueeze(-1) if vector else b
    x = lu_solve(packed, pivots, columns, left=left)
    return (x.squeeze(-1) if vector else x), packed, pivots, info


@DEFINITIONS.define("linalg_inv_ex.default")
def inv_ex(a: torch.Tensor, *, check_errors: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The inverse, and the first zero pivot."""
    packed, pivots, info = eliminated(a)
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)
    return lu_solve(packed, pivots, identity), info


@DEFINITIONS.define("cholesky_solve.default")
def cholesky_solve(b: torch.Tensor, factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """The x of ``a x = b`` by the triangular factor of a positive matrix."""
    lower = factor.mT if upper else factor
    lower, b = _together(lower, b)
    return substituted(lower.mT, substituted(lower, b, upper=False, unit=False), upper=True, unit=False)


@DEFINITIONS.define("cholesky_inverse.default")
def cholesky_inverse(factor: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """The inverse of a positive matrix by its triangular factor."""
    identity = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device).expand(factor.shape)
    return cholesky_solve(identity, factor, upper)
