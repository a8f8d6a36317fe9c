"""Factors of matrices, written out column by column as LAPACK computes them: LU, Cholesky, QR, and determinants."""

from __future__ import annotations

import torch

from rewright.frontends.torch.definitions.table import Definitions
from rewright.ir.errors import UnsupportedOperator

DEFINITIONS = Definitions()
TRACED = Definitions()
MOST = 32
"""Matrices with more rows or columns are not written out."""
Pair = tuple[torch.Tensor, torch.Tensor]


def count_of(size: int) -> int:
    """A size over which a loop is written out; raises UnsupportedOperator where it is too large."""
    if size > MOST:
        raise UnsupportedOperator(f"the factors of a matrix of more than {MOST} rows are not written out; pass them in")
    return size


def eliminated(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Both factors in one matrix, by which row each row was exchanged (from one on), and the first zero pivot."""
    rows, columns = a.shape[-2:]
    ramp = torch.arange(rows, device=a.device)
    pivots: list[torch.Tensor] = []
    info = torch.zeros(a.shape[:-2], dtype=torch.int32, device=a.device)
    for k in range(count_of(min(rows, columns))):
        chosen = a[..., k:, k].abs().argmax(-1) + k
        pivots.append((chosen + 1).to(torch.int32))
        other = chosen.unsqueeze(-1)
        order = torch.where(ramp == k, other, torch.where(ramp == other, k, ramp))
        a = a.gather(-2, order.unsqueeze(-1).expand(a.shape))
        pivot = a[..., k, k]
        info = torch.where((info == 0) & (pivot == 0), k + 1, info)
        below = a[..., k + 1 :, k]
        divisor = torch.where(pivot == 0, 1.0, pivot).unsqueeze(-1)
        factor = below / divisor
        rest = a[..., k + 1 :, k + 1 :] - factor.unsqueeze(-1) * a[..., k, k + 1 :].unsqueeze(-2)
        lower = torch.cat([a[..., k + 1 :, :k], factor.unsqueeze(-1), rest], -1)
        a = torch.cat([a[..., : k + 1, :], lower], -2)
    made = torch.stack(pivots, -1) if pivots else a.new_zeros((*a.shape[:-2], 0), dtype=torch.int32)
    return a, made, info.to(torch.int32)


@DEFINITIONS.define("linalg_lu_factor_ex.default")
def lu_factor_ex(
    a: torch.Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """LU with partial pivoting."""
    if not pivot:
        raise UnsupportedOperator("LU without pivoting; use the default")
    return eliminated(a)


def exchanged(pivots: torch.Tensor, rows: int) -> torch.Tensor:
    """Which row of the matrix each row of the product of its factors is."""
    order = torch.arange(rows, device=pivots.device).expand((*pivots.shape[:-1], rows))
    ramp = torch.arange(rows, device=pivots.device)
    for k in range(pivots.shape[-1]):
        other = pivots[..., k : k + 1].long() - 1
        mine, theirs = order[..., k : k + 1], order.gather(-1, other)
        order = torch.where(ramp == k, theirs, torch.where(ramp == other, mine, order))
    return order


def _permutation(pivots: torch.Tensor, rows: int, dtype: torch.dtype) -> torch.Tensor:
    order = exchanged(pivots, rows)
    ramp = torch.arange(rows, device=pivots.device).unsqueeze(-1)
    return (order.unsqueeze(-2) == ramp).to(dtype)


@DEFINITIONS.define("lu_unpack.default")
def lu_unpack(
    lu: torch.Tensor, pivots: torch.Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The permutation and both factors."""
    rows, columns = lu.shape[-2:]
    size = min(rows, columns)
    none = lu.new_zeros((0,))
    permutation = _permutation(pivots, rows, lu.dtype) if unpack_pivots else none
    if not unpack_data:
        return permutation, none, none
    lower = lu[..., :size].tril(-1) + torch.eye(rows, size, dtype=lu.dtype, device=lu.device)
    return permutation, lower, lu[..., :size, :].triu()


@DEFINITIONS.define("linalg_lu.default")
def lu(a: torch.Tensor, *, pivot: bool = True) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The permutation and both factors of a matrix."""
    packed, pivots, _ = lu_factor_ex(a, pivot=pivot)
    return lu_unpack(packed, pivots)


def turned(a: torch.Tensor) -> torch.Tensor:
    """What LAPACK, which counts by columns, is given of a matrix that lies in memory row by row."""
    return a.mT if a.is_contiguous() else a


def _sign(pivots: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    places = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    odd = (pivots != places).sum(-1) % 2
    return 1 - 2 * odd.to(dtype)


@DEFINITIONS.define("_linalg_det.default")
def determinant(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The product of the pivots, with the sign of the exchanges."""
    packed, pivots, _ = eliminated(turned(a))
    return _sign(pivots, a.dtype) * packed.diagonal(dim1=-2, dim2=-1).prod(-1), packed, pivots


@DEFINITIONS.define("_linalg_slogdet.default")
def slogdet(a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sign of the determinant, and the logarithm of its size."""
    packed, pivots, _ = eliminated(turned(a))
    diagonal = packed.diagonal(dim1=-2, dim2=-1)
    return _sign(pivots, a.dtype) * diagonal.sign().prod(-1), diagonal.abs().log().sum(-1), packed, pivots


@DEFINITIONS.define("linalg_cholesky_ex.default")
def cholesky_ex(a: torch.Tensor, *, upper: bool = False, check_errors: bool = False) -> Pair:
    """The triangular factor, and the first column where the matrix is not positive."""
    if upper:
        factor, info = cholesky_ex(a.mT)
        return factor.mT, info
    size = count_of(a.shape[-1])
    info = torch.zeros(a.shape[:-2], dtype=torch.int32, device=a.device)
    columns: list[torch.Tensor] = []
    for k in range(size):
        rest = a[..., k:, k]
        for column in columns:
            rest = rest - column[..., k:] * column[..., k : k + 1]
        square = rest[..., :1]
        info = torch.where((info == 0) & ~(square[..., 0] > 0), k + 1, info)
        root = square.sqrt()
        below = torch.cat([root, rest[..., 1:] / root], -1)
        columns.append(torch.cat([below.new_zeros((*below.shape[:-1], k)), below], -1))
    return (torch.stack(columns, -1) if columns else a.clone()), info.to(torch.int32)


@DEFINITIONS.define("cholesky.default")
def cholesky(a: torch.Tensor, upper: bool = False) -> torch.Tensor:
    """The triangular factor of a positive matrix."""
    return cholesky_ex(a, upper=upper)[0]


def reflected(a: torch.Tensor) -> Pair:
    """R above the diagonal, the vectors of reflections below it, and how far each reflects."""
    rows, columns = a.shape[-2:]
    taus: list[torch.Tensor] = []
    for k in range(count_of(min(rows, columns))):
        head, tail = a[..., k, k], a[..., k + 1 :, k]
        rest = (tail * tail).sum(-1)
        length = (head * head + rest).sqrt()
        beta = torch.where(head < 0, length, -length)
        plain = rest == 0  # nothing to reflect
        tau = torch.where(plain, 0.0, (beta - head) / torch.where(plain, 1.0, beta))
        divisor = torch.where(plain, 1.0, head - beta).unsqueeze(-1)
        vector = torch.where(plain.unsqueeze(-1), 0.0, tail / divisor)
        whole = torch.cat(
            [torch.ones_like(vector[..., :1]) if rows > k + 1 else head.unsqueeze(-1) * 0 + 1, vector], -1
        )
        right = a[..., k:, k + 1 :]
        moved = right - whole.unsqueeze(-1) * (tau.unsqueeze(-1) * (whole.unsqueeze(-1) * right).sum(-2)).unsqueeze(-2)
        first = torch.where(plain, head, beta).unsqueeze(-1)
        column = torch.cat([first, vector], -1).unsqueeze(-1)
        lower = torch.cat([a[..., k:, :k], column, moved], -1)
        a = torch.cat([a[..., :k, :], lower], -2)
        taus.append(tau)
    return a, torch.stack(taus, -1) if taus else a.new_zeros((*a.shape[:-2], 0))


TRACED.define("geqrf.default")(reflected)


def _vector(v: torch.Tensor, k: int) -> torch.Tensor:
    below = v[..., k + 1 :, k]
    one, zeros = torch.ones_like(v[..., 0, :1]), torch.zeros_like(v[..., :k, 0])
    return torch.cat([zeros, one, below], -1)


def _mirror(c: torch.Tensor, vector: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """``(I - tau v v') C``."""
    shares = (vector.unsqueeze(-1) * c).sum(-2)
    return c - vector.unsqueeze(-1) * (tau.unsqueeze(-1) * shares).unsqueeze(-2)


@DEFINITIONS.define("linalg_householder_product.default")
def householder_product(v: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """The first columns of the product of reflections."""
    rows, columns = v.shape[-2:]
    q = torch.eye(rows, columns, dtype=v.dtype, device=v.device).expand(v.shape)
    for k in reversed(range(count_of(tau.shape[-1]))):
        q = _mirror(q, _vector(v, k), tau[..., k])
    return q


@DEFINITIONS.define("ormqr.default")
def ormqr(
    v: torch.Tensor, tau: torch.Tensor, c: torch.Tensor, left: bool = True, transpose: bool = False
) -> torch.Tensor:
    """A matrix times the product of reflections."""
    if not left:
        return ormqr(v, tau, c.mT, True, not transpose).mT
    count = count_of(tau.shape[-1])
    for k in range(count) if transpose else reversed(range(count)):
        c = _mirror(c, _vector(v, k), tau[..., k])
    return c


@DEFINITIONS.define("linalg_qr.default")
def qr(a: torch.Tensor, mode: str = "reduced") -> Pair:
    """An orthogonal and an upper triangular factor."""
    rows, columns = a.shape[-2:]
    packed, tau = reflected(a)
    size = rows if mode == "complete" else min(rows, columns)
    r = packed[..., :size, :].triu()
    if mode == "r":
        return a.new_zeros((0,)), r
    identity = torch.eye(rows, size, dtype=a.dtype, device=a.device).expand((*a.shape[:-2], rows, size))
    return ormqr(packed, tau, identity), r
