"""What ``bench.fingerprint`` writes claims with: terms that are operators by name, and an index of tensors by value.

``y = x @ w`` of the sequential program is the term ``dot(x, w)``, which the language calls opaque: the operator on
windows of other terms. A rank that holds columns 4 to 8 of ``y`` has the window ``y[i, j + 4]``, and the index finds
term and offset from the numbers alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from rewright import ops
from rewright.claims.language import (
    Access,
    Add,
    Addend,
    Definition,
    Input,
    Number,
    Opaque,
    Pieces,
    Position,
    Table,
    Tensor,
    View,
    terms_of,
)
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.moves import layout
from rewright.lifting.terms.value import NotAView, coalesce
from rewright.ops.base import Array

ONE = Fraction(1)
CLOSE = 1e-9
_MOST_HITS, _MOST_CANDIDATES, _MOST_PIECES, _PROBES = 24, 3, 8, 12


class NotWritten(Exception):
    """What these claims have no words for."""


class Terms:
    """Definitions in order, each stored once."""

    def __init__(self) -> None:
        self.definitions: list[Definition] = []
        self._numbers: dict[Definition, int] = {}

    def add(self, content: object, operands: Sequence[int], rank: int) -> int:
        """The number of a term."""
        one = Definition(content, tuple(operands), rank)
        found = self._numbers.get(one)
        if found is None:
            found = self._numbers[one] = len(self.definitions)
            self.definitions.append(one)
        return found

    def input(self, name: str, kind: TensorType) -> View:
        """A free tensor."""
        return self.whole(self.add(Input(name), (), kind.rank), kind.shape)

    def whole(self, term: int, shape: Sequence[int]) -> View:
        """All of a term."""
        return View(tuple((n,) for n in shape), (Addend(ONE, term, _plain(len(shape))),))

    def apply(self, op: Operator, operands: Sequence[Tensor], kinds: Sequence[TensorType], result: TensorType) -> View:
        """What an operator makes: a window of its operand where it only moves elements, else a term of its own."""
        if any(n == 0 for kind in (*kinds, result) for n in kind.shape):
            raise NotWritten("a tensor without elements")
        if isinstance(op, ops.Constant):
            return self._constant(op, result)
        if isinstance(op, ops.Iota):
            access = ((0, ((op.dimension, 1),)),)
            return View(tuple((n,) for n in result.shape), (Addend(ONE, self.add(Position(), (), 1), access),))
        views = [self.as_view(operand) for operand in operands]
        moved = _moved(op, views[0]) if isinstance(op, ops.View) else None
        if moved is not None:
            return moved
        if not views:
            raise NotWritten(f"{op.name} of nothing")
        return self.whole(self._opaque(op, views, kinds, result.rank), result.shape)

    def total(self, operands: Sequence[Tensor]) -> View:
        """The sum of tensors of one shape."""
        wholes = [self._as_term(self.as_view(operand)) for operand in operands]
        shape = self.as_view(operands[0]).shape
        content = Add((ONE,) * len(wholes), tuple(_plain(len(shape)) for _ in wholes))
        return self.whole(self.add(content, wholes, len(shape)), shape)

    def as_view(self, tensor: Tensor) -> View:
        """A concatenation as one term."""
        if isinstance(tensor, View):
            return tensor
        parts = [self.as_view(part) for part in tensor.parts]
        kinds = [TensorType(part.shape, DType.F32) for part in parts]
        rank, length = len(parts[0].dims), sum(tensor.lengths)
        shape = (*parts[0].shape[: tensor.axis], length, *parts[0].shape[tensor.axis + 1 :])
        return self.whole(self._opaque(ops.Concatenate(tensor.axis), parts, kinds, rank), shape)

    def below(self, terms: Sequence[int], stop: frozenset[int] = frozenset(), first: int = 0) -> frozenset[int]:
        """Terms and what they are made of, down to some of them and to those with a number below ``first``."""
        stack, found = [t for t in terms if t not in stop and t >= first], set[int]()
        while stack:
            term = stack.pop()
            if term not in found:
                found.add(term)
                stack += [t for t in self.definitions[term].operands if t not in stop and t >= first]
        return frozenset(found)

    def _as_term(self, view: View) -> int:
        """The term that has exactly the elements of a view."""
        shape = view.shape
        if len(view.addends) == 1 and view == self.whole(view.addends[0].term, shape):
            return view.addends[0].term
        return self._opaque(ops.Reshape(shape), [view], [TensorType(shape, DType.F32)], len(shape))

    def _operand(self, view: View) -> tuple[int, Access]:
        """A view as one term, read at the digits of the view."""
        if len(view.addends) == 1 and view.addends[0].coefficient == 1 and not view.addends[0].parts:
            return view.addends[0].term, view.addends[0].access
        variables = sum(map(len, view.dims))
        addends = view.addends or (Addend(Fraction(0), self.add(Number(1), (), 0), ()),)
        content = Add(tuple(a.coefficient for a in addends), tuple(a.access for a in addends))
        if all(not a.access for a in addends):
            return self.add(content, [a.term for a in addends], 0), ()
        return self.add(content, [a.term for a in addends], variables), _plain(variables)

    def _opaque(self, op: Operator, views: Sequence[View], kinds: Sequence[TensorType], rank: int) -> int:
        """The operator on whole operands; every digit of these is a variable inside of it."""
        accesses: list[Access] = []
        terms: list[int] = []
        windows: list[tuple[int, int, int]] = []
        for view in views:
            term, access = self._operand(view)
            first = len(windows)
            windows += [(first + k, 0, n) for k, n in enumerate(n for own in view.dims for n in own)]
            accesses.append(tuple((low, tuple((v + first, s) for v, s in strides)) for low, strides in access))
            terms.append(term)
        types = tuple("float" if kind.dtype.is_float else kind.dtype.value for kind in kinds)
        content = Opaque(op, types, tuple(view.dims for view in views), rank, tuple(windows), tuple(accesses))
        return self.add(content, terms, rank)

    def _constant(self, op: ops.Constant, result: TensorType) -> View:
        values = [v if isinstance(v, float) else int(v) for v in op.values]
        dims = tuple((n,) for n in result.shape)
        if len(values) > 1:
            return self.whole(self.add(Table(result.shape, tuple(values)), (), result.rank), result.shape)
        if not np.isfinite(values[0]):
            return View(dims, (Addend(ONE, self.add(Number(repr(values[0])), (), 0), ()),))
        one = Addend(Fraction(values[0]), self.add(Number(1), (), 0), ())
        return View(dims, (one,) if values[0] else ())


def _plain(rank: int) -> Access:
    return tuple((0, ((axis, 1),)) for axis in range(rank))


def _moved(op: Operator, view: View) -> View | None:
    """A view after an operator that moves elements, None where that is no single window."""
    found: object = view
    try:
        if isinstance(op, ops.Reshape):
            found = layout.reshape(view, op.shape)
        elif isinstance(op, ops.Transpose):
            found = layout.transpose(view, op.permutation)
        elif isinstance(op, ops.BroadcastInDim):
            found = layout.broadcast(view, op.shape, op.dimensions)
        elif isinstance(op, ops.Slice):
            for axis, (start, limit, stride) in enumerate(zip(op.start, op.limit, op.stride, strict=True)):
                found = layout.slice_axis(found, axis, start, limit, stride)
        elif isinstance(op, ops.Reverse):
            for axis in op.dimensions:
                found = layout.reverse_axis(found, axis)
        else:
            return None
    except NotAView:
        return None
    return coalesce(found) if isinstance(found, View) else None


def window(tensor: View, runs: Sequence[Sequence[tuple[int, int]]]) -> Tensor:
    """The runs of a whole tensor along every axis that a rank holds."""
    (addend,) = tensor.addends
    for axis, own in enumerate(runs):
        if len(own) != 1:
            if not own:
                raise NotWritten("a rank that holds nothing")
            parts = tuple(window(tensor, (*runs[:axis], (run,), *runs[axis + 1 :])) for run in own)
            return Pieces(axis, 1, tuple(length for _, length in own), parts)
    access = tuple((own[0][0], ((axis, 1),)) for axis, own in enumerate(runs))
    return View(tuple((own[0][1],) for own in runs), (replace(addend, access=access),))


class Index:
    """The tensors of the sequential program by their values."""

    def __init__(self, tensors: dict[int, Array]) -> None:
        self._tensors = tensors
        floats = [term for term, value in tensors.items() if value.dtype.kind == "f" and value.size]
        values = [tensors[term].reshape(-1) for term in floats]
        everything = np.concatenate([np.zeros(0), *values])
        order = np.argsort(everything, kind="stable")
        self._sorted = everything[order]
        self._term = np.repeat(floats, [len(v) for v in values])[order] if floats else order
        self._place = np.concatenate([np.zeros(0, int), *(np.arange(len(v)) for v in values)])[order]

    def find(self, value: Array) -> Iterator[Tensor]:
        """Claims under which a tensor of a rank is a window of a sequential one, or pieces that are."""
        flat = value.reshape(-1)
        if not value.size or (value.size > 1 and (flat == flat[0]).all()) or (value.size == 1 and flat[0] % 1 == 0):
            return
        found = dict.fromkeys(itertools.islice(self._windows(value), _MOST_CANDIDATES))
        yield from found
        if not found and value.dtype.kind == "f":
            for axis in range(value.ndim):
                pieces = self._pieces(value, axis)
                if pieces is not None:
                    yield pieces
                    return

    def _windows(self, value: Array) -> Iterator[View]:
        if value.dtype.kind != "f":
            yield from self._by_shape(value)
            return
        flat, low, high = self._rarest(value.reshape(-1))
        at = np.unravel_index(flat, value.shape)
        for k in range(low, min(high, low + _MOST_HITS)):
            term = int(self._term[k])
            there = np.unravel_index(int(self._place[k]), self._tensors[term].shape)
            yield from self._fits(value, term, [int(i) for i in at], [int(i) for i in there])

    def _rarest(self, flat: Array) -> tuple[int, int, int]:
        """Of some elements the one that fewest sequential elements are equal to, and the range of these."""
        chosen = np.unique(np.linspace(0, len(flat) - 1, _PROBES).astype(int))
        slack = CLOSE * np.maximum(np.abs(flat[chosen]), 1e-12)
        with np.errstate(invalid="ignore"):
            low = np.searchsorted(self._sorted, flat[chosen] - slack)
            high = np.searchsorted(self._sorted, flat[chosen] + slack)
        hits = np.where(np.isfinite(flat[chosen]) & (flat[chosen] != 0), high - low, len(self._sorted) + 1)
        best = int(np.argmin(hits))
        return int(chosen[best]), int(low[best]), int(high[best])

    def _fits(self, value: Array, term: int, at: Sequence[int], there: Sequence[int]) -> Iterator[View]:
        """Windows of a term with its axes in any order, some of them at one place."""
        whole = self._tensors[term]
        wide = [axis for axis, n in enumerate(value.shape) if n > 1]
        if len(wide) > whole.ndim or whole.ndim > 6:
            return
        for axes in itertools.permutations(range(whole.ndim), len(wide)):
            starts = list(there)
            for own, axis in zip(wide, axes, strict=True):
                starts[axis] -= at[own]
            fits = all(
                0 <= starts[axis] <= whole.shape[axis] - value.shape[own] for own, axis in zip(wide, axes, strict=True)
            )
            if not fits:
                continue
            cut = whole[tuple(slice(s, s + _length(axes, wide, a, value)) for a, s in enumerate(starts))]
            rest = [axis for axis in range(whole.ndim) if axis not in axes]
            cut = cut.transpose((*axes, *rest)).reshape(value.shape)
            if same(cut, value):
                reads = dict(zip(axes, wide, strict=True))
                access = tuple((s, ((reads[a], 1),) if a in reads else ()) for a, s in enumerate(starts))
                yield View(tuple((n,) for n in value.shape), (Addend(ONE, term, access),))

    def _by_shape(self, value: Array) -> Iterator[View]:
        """For integers, whose values are not rare: windows at multiples of their length."""
        for term, whole in self._tensors.items():
            if whole.dtype != value.dtype or whole.ndim != value.ndim:
                continue
            ranges = [range(0, n - own + 1, own) for n, own in zip(whole.shape, value.shape, strict=True)]
            for starts in itertools.islice(itertools.product(*ranges), _MOST_HITS):
                cut = whole[tuple(slice(s, s + n) for s, n in zip(starts, value.shape, strict=True))]
                if np.array_equal(cut, value):
                    access = tuple((s, ((axis, 1),)) for axis, s in enumerate(starts))
                    yield View(tuple((n,) for n in value.shape), (Addend(ONE, term, access),))

    def _pieces(self, value: Array, axis: int) -> Pieces | None:
        """Windows one after the other along an axis, each as long as it can be."""
        parts: list[View] = []
        start, length = 0, value.shape[axis]
        if next(self._windows(np.take(value, [0], axis)), None) is None:
            return None
        while start < length and len(parts) < _MOST_PIECES:
            best = None
            for stop in range(length if start else length - 1, start, -1):
                best = next(self._windows(np.take(value, range(start, stop), axis)), None)
                if best is not None:
                    break
            if best is None:
                return None
            parts.append(best)
            start = stop
        return Pieces(axis, 1, tuple(p.shape[axis] for p in parts), tuple(parts)) if start == length else None


def read(tensor: Tensor, tensors: dict[int, Array]) -> Array:
    """The values of a claim about one term, or of pieces of such, from those of the terms."""
    if isinstance(tensor, Pieces):
        return np.concatenate([read(part, tensors) for part in tensor.parts], tensor.axis)
    (addend,) = tensor.addends
    shape = tuple(n for own in tensor.dims for n in own)
    places = [low + sum(s * np.indices(shape)[v] for v, s in strides) for low, strides in addend.access]
    return np.broadcast_to(tensors[addend.term][tuple(places)], shape)


def _length(axes: Sequence[int], wide: Sequence[int], axis: int, value: Array) -> int:
    return value.shape[wide[axes.index(axis)]] if axis in axes else 1


def same(one: Array, other: Array) -> bool:
    """Whether two tensors differ by rounding alone."""
    scale = np.abs(one[np.isfinite(one)]).max(initial=1e-12)
    return bool(np.allclose(one, other, rtol=CLOSE, atol=CLOSE * min(scale, 1.0), equal_nan=True))


__all__ = ["Index", "NotWritten", "Terms", "read", "same", "terms_of", "window"]
