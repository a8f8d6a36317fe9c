"""Operators that choose among equal elements as they like: their values count, and that the indices lead to them."""

from __future__ import annotations

import numpy as np

from bench.conformance.samples import Case

CHOOSING = frozenset(
    {
        "argsort",
        "kthvalue",
        "masked_argmax",
        "masked_argmin",
        "max_reduction_with_dim",
        "median",
        "min_reduction_with_dim",
        "mode",
        "msort",
        "nanmedian",
        "sort",
        "topk",
    }
)
Pairs = dict[str, tuple[np.ndarray, np.ndarray]]


def valid_choice(case: Case, apart: Pairs) -> bool:
    """Whether outputs that are not alike come of another choice among equal elements of the first operand.

    Indices read the same elements as PyTorch's do. Gradients of equal elements of a row have the same sum.
    """
    if case.variant not in CHOOSING:
        return False
    source = case.given[0].detach()
    numbers = (source.double() if source.is_floating_point() else source).numpy()
    return all(
        _leads_to_the_same(numbers, *pair) if pair[0].dtype == np.int64 else _shares_alike(numbers, *pair)
        for pair in apart.values()
    )


def _shares_alike(source: np.ndarray, left: np.ndarray, right: np.ndarray) -> bool:
    """Along some axis the sums over the equal elements of every row agree."""
    if not left.shape == right.shape == source.shape or not source.ndim:
        return False
    for axis in range(source.ndim):
        rows = [np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) for x in (source, left, right)]
        if all(np.allclose(_sums(a, b), _sums(a, c), rtol=1e-2) for a, b, c in zip(*rows, strict=True)):
            return True
    return False


def _sums(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    _, place = np.unique(values, return_inverse=True)
    return np.bincount(place.reshape(-1), weights=shares)


def _leads_to_the_same(source: np.ndarray, left: np.ndarray, right: np.ndarray) -> bool:
    """Along some axis the indices, each in range, read equal elements, and none is read more often than it is there."""
    if left.shape != right.shape or not source.ndim:
        return left.shape == right.shape and bool((right == 0).all())
    for axis in range(source.ndim):
        rows = [np.expand_dims(x, axis) if x.ndim < source.ndim else x for x in (left, right)]
        if not all(_fits(source, x, axis) for x in rows):
            continue
        read = [np.take_along_axis(source, x, axis) for x in rows]
        ordered = np.sort(rows[1], axis)
        distinct = bool((np.diff(ordered, axis=axis) != 0).all())
        if distinct and np.array_equal(read[0], read[1], equal_nan=source.dtype.kind == "f"):
            return True
    return False


def _fits(source: np.ndarray, index: np.ndarray, axis: int) -> bool:
    """Whether indices along an axis are in range and alike otherwise."""
    others = [i for i in range(source.ndim) if i != axis]
    alike = index.ndim == source.ndim and all(index.shape[i] == source.shape[i] for i in others)
    return alike and bool(((index >= 0) & (index < source.shape[axis])).all())
