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
        "nanmedian",
        "sort",
        "topk",
    }
)
Pairs = dict[str, tuple[np.ndarray, np.ndarray]]


def valid_choice(case: Case, pairs: Pairs) -> bool:
    """Whether the chosen elements, read at the graph's indices, are those that PyTorch read at its own."""
    if case.variant not in CHOOSING:
        return False
    chosen = [pair for pair in pairs.values() if pair[0].dtype == np.int64]
    source = case.given[0].detach()
    numbers = (source.double() if source.is_floating_point() else source).numpy()
    return bool(chosen) and all(_leads_to_the_same(numbers, *pair) for pair in chosen)


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
