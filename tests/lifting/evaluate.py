"""What terms and values mean, in numpy: written from the documentation of terms, independent of how they are built.

Terms are total functions of integer indices. An input is read as an array; outside of it stands an arbitrary number
that depends on name and index only, so that a wrong window never goes unnoticed. All arithmetic is float64.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rewright.claims.language import (
    Access,
    Add,
    Addend,
    Apply,
    Fold,
    Guard,
    Input,
    Number,
    Opaque,
    Position,
    Ranged,
    Table,
    Take,
    View,
)
from rewright.interp.collectives import simulate
from rewright.ir.graph import Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import Terms
from rewright.lifting.terms.value import Pieces, Value
from rewright.ops import Concatenate
from rewright.ops.base import TensorOperator

Array = NDArray[np.float64]
Places = tuple[NDArray[np.int64], ...]
"""One array of indices for every axis of a term, all of one shape."""

_UNARY: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
    "tanh": np.tanh,
    "sine": np.sin,
    "cosine": np.cos,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_nearest_even": np.round,
    "is_finite": np.isfinite,
    "not": lambda x: 1 - x,
    "bitwise_not": lambda x: -x - 1,
    "convert to i1": lambda x: x != 0,
    "convert to i32": np.trunc,
    "convert to i64": np.trunc,
}


def _integer_power(base: Array, exponent: Array) -> Array:
    return np.trunc(np.power(base, exponent))


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "divide_integer": lambda x, y: np.trunc(x / y),
    "remainder": np.fmod,
    "power": np.power,
    "integer_power": _integer_power,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_or_equal": np.greater_equal,
    "and": lambda x, y: x.astype(np.int64) & y.astype(np.int64),
    "or": lambda x, y: x.astype(np.int64) | y.astype(np.int64),
    "xor": lambda x, y: x.astype(np.int64) ^ y.astype(np.int64),
    "bitwise_and": lambda x, y: x.astype(np.int64) & y.astype(np.int64),
    "bitwise_or": lambda x, y: x.astype(np.int64) | y.astype(np.int64),
    "bitwise_xor": lambda x, y: x.astype(np.int64) ^ y.astype(np.int64),
    "where": lambda test, x: np.where(test != 0, x, 0.0),
    "where_not": lambda test, x: np.where(test == 0, x, 0.0),
}
_FOLDS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda x: x.sum(-1),
    "product": lambda x: x.prod(-1),
    "maximum": lambda x: x.max(-1),
    "minimum": lambda x: x.min(-1),
    "and": lambda x: np.bitwise_and.reduce(x.astype(np.int64), axis=-1).astype(np.float64),
    "or": lambda x: np.bitwise_or.reduce(x.astype(np.int64), axis=-1).astype(np.float64),
}


def joined(parts: Sequence[Array], value: Pieces) -> Array:
    """Parts along the rows of an axis."""
    outer, before = int(str(value.outer)), parts[0].shape[: value.axis]
    after = parts[0].shape[value.axis + 1 :]
    rows = [part.reshape((*before, outer, part.shape[value.axis] // outer, *after)) for part in parts]
    along = sum(part.shape[value.axis] for part in parts)
    return np.concatenate(rows, axis=value.axis + 1).reshape((*before, along, *after))


class Meaning:
    """The numbers that terms and values stand for, given the arrays of the program inputs."""

    def __init__(self, terms: Terms, inputs: Mapping[str, NDArray[np.generic]]) -> None:
        self.terms = terms
        self.inputs = {name: np.asarray(value, np.float64) for name, value in inputs.items()}
        self.whole = {name for name, value in inputs.items() if np.asarray(value).dtype.kind != "f"}
        self._memo: dict[tuple[object, ...], Array] = {}

    def value(self, value: Value) -> Array:
        """The tensor that a value describes."""
        with np.errstate(all="ignore"):
            if isinstance(value, Pieces):
                return joined([self.value(part) for part in value.parts], value)
            return self._view(value)

    def _view(self, view: View) -> Array:
        digits = [int(str(n)) for axis in view.dims for n in axis]
        grid = tuple(np.indices(digits, np.int64)) if digits else ()
        total = np.zeros(digits)
        for addend in view.addends:
            total = total + float(addend.coefficient) * self._addend(addend, grid, tuple(digits))
        return total.reshape([int(str(n)) for n in view.shape])

    def _addend(self, addend: Addend, grid: Places, shape: tuple[int, ...]) -> Array:
        places = _read(addend.access, grid, shape)
        return self.term(addend.term, places, shape, dict(addend.parts))

    def term(self, term: int, places: Places, shape: tuple[int, ...], parts: Mapping[int, Region]) -> Array:
        """The term at many indices; ``parts`` gives the regions of the folds and guards that are still open."""
        assert len(places) == self.terms.arity[term]
        held = tuple(sorted((h, r) for h, r in parts.items() if h in self.terms.open[term]))
        distinct, back = _distinct(places)
        key = (term, held, *(p.tobytes() for p in distinct))
        if key not in self._memo:
            few = distinct[0].shape if distinct else ()
            self._memo[key] = np.asarray(self._term(term, distinct, few, dict(held)), np.float64)
        found = self._memo[key]
        return found[back].reshape(shape) if distinct else np.broadcast_to(found, shape)

    def _term(self, term: int, places: Places, shape: tuple[int, ...], parts: Mapping[int, Region]) -> Array:
        label, children = self.terms.label(term), self.terms.children(term)
        if isinstance(label, Number):
            return np.full(shape, float(label.value))
        if isinstance(label, Position):
            return places[0].astype(np.float64)
        if isinstance(label, Input):
            return _lookup(self.inputs[label.name], places, shape, label.name, whole=label.name in self.whole)
        if isinstance(label, Table):
            values = np.array(label.values, np.float64).reshape(label.shape)
            return _lookup(values, places, shape, repr(label), whole=bool(np.all(values == np.round(values))))
        if isinstance(label, Ranged):
            return self._ranged(children[0], label.region, places, shape, parts)
        if isinstance(label, Fold | Guard):
            return self._ranged(term, parts[term], places, shape, parts)
        if isinstance(label, Opaque):
            return self._opaque(label, children, places, shape)
        assert isinstance(label, Take | Add | Apply), label
        return self._node(label, children, places, shape, parts)

    def _node(
        self,
        label: Take | Add | Apply,
        children: tuple[int, ...],
        places: Places,
        shape: tuple[int, ...],
        parts: Mapping[int, Region],
    ) -> Array:
        accesses = label.accesses
        if isinstance(label, Take):
            read = [
                self.term(child, _read(access, places, shape), shape, {})
                for child, access in zip(children[1:], accesses[1:], strict=True)
            ]
            indices = _read(accesses[0], places, shape, read)
            return self.term(children[0], indices, shape, parts)
        values = [
            self.term(child, _read(access, places, shape), shape, parts)
            for child, access in zip(children, accesses, strict=True)
        ]
        if isinstance(label, Add):
            pairs = zip(label.coefficients, values, strict=True)
            return sum((float(c) * v for c, v in pairs), start=np.zeros(shape))
        name = label.function
        if name == "multiply":
            product = np.ones(shape)
            for value in values:
                product = product * value
            return product
        if len(values) == 1:
            return np.asarray(_UNARY[name](values[0]), np.float64)
        return np.asarray(_BINARY[name](*values), np.float64)

    def _ranged(
        self, hole: int, region: Region, places: Places, shape: tuple[int, ...], parts: Mapping[int, Region]
    ) -> Array:
        label, children = self.terms.label(hole), self.terms.children(hole)
        rest = {h: r for h, r in parts.items() if h != hole}
        if isinstance(label, Guard):
            accesses = label.accesses
            value = self.term(children[0], _read(accesses[0], places, shape), shape, {})
            body = self.term(children[1], _read(accesses[1], places, shape), shape, rest)
            value = np.where(np.abs(value - np.round(value)) < 1e-6, np.round(value), value)
            count = np.zeros(shape)
            for ((low, high),), coefficient in region:
                inside = np.ones(shape, bool) if low is None else value >= float(str(low))
                inside = inside if high is None else inside & (value < float(str(high)))
                count += float(coefficient) * inside
            with np.errstate(invalid="ignore"):  # zero times an infinity that is not chosen
                return np.where(count != 0, count * body, 0.0)
        assert isinstance(label, Fold)
        kind, axes = label.kind, label.axes
        found: list[Array] = []
        for box, coefficient in region:
            assert kind == "sum" or coefficient == 1
            lengths = [int(str(high)) - int(str(low)) for low, high in box]
            assert all(n >= 0 for n in lengths)
            if 0 in lengths:
                continue
            inner = tuple(np.indices(lengths, np.int64).reshape(len(lengths), -1)) if lengths else ()
            count = int(np.prod(lengths))
            wide = (*shape, count)
            left = iter(places)
            full: list[NDArray[np.int64]] = []
            for axis in range(self.terms.arity[children[0]]):
                if axis in axes:
                    k = axes.index(axis)
                    full.append(np.broadcast_to(inner[k] + int(str(box[k][0])), wide).copy())
                else:
                    full.append(np.broadcast_to(next(left)[..., None], wide).copy())
            body = self.term(children[0], tuple(full), wide, rest)
            found.append(float(coefficient) * _FOLDS[kind](body))
        if not found:
            return np.zeros(shape) if kind == "sum" else np.full(shape, np.nan)
        if kind == "sum":
            return sum(found, start=np.zeros(shape))
        return _FOLDS[kind](np.stack(found, -1))

    def _opaque(self, label: Opaque, children: tuple[int, ...], places: Places, shape: tuple[int, ...]) -> Array:
        """An operator applied, at every index of its batch axes, to operands whose batch axes have size one."""
        layout, own, windows, accesses = label.layout, label.own, label.windows, label.accesses
        outer = len(places) - own
        flat = [p.reshape(-1) for p in places]
        out = np.zeros(flat[0].shape if flat else (1,))
        shared = {a for operand in layout for a in operand if isinstance(a, int)}
        results: dict[tuple[int, ...], Array] = {}
        for k in range(len(out)):
            here = tuple(int(p[k]) for p in flat)
            batch = here[:outer]
            if batch not in results:
                operands = self._operands(children, layout, windows, accesses, batch)
                results[batch] = _execute(label.op, label.kinds, operands)
            result = results[batch]
            rest = iter(here[outer:])
            place = tuple(0 if a in shared else next(rest) for a in range(result.ndim))
            inside = all(0 <= i < n for i, n in zip(place, result.shape, strict=True))
            out[k] = result[place] if inside else 7.0
        return out.reshape(shape) if flat else np.full(shape, out[0])

    def _operands(
        self,
        children: tuple[int, ...],
        layout: Sequence[Sequence[object]],
        windows: Sequence[tuple[int, int, int] | None],
        accesses: Sequence[Access],
        batch: tuple[int, ...],
    ) -> list[Array]:
        bound = iter(windows)
        taken = {w[0] for w in windows if w is not None}
        free = [p for p in range(len(taken) + len(batch)) if p not in taken]
        found: list[Array] = []
        for child, axes, access in zip(children, layout, accesses, strict=True):
            digits: list[int] = []
            sizes: list[int] = []
            held: list[tuple[int, int, int] | None] = []
            for axis in axes:
                if isinstance(axis, int):
                    sizes.append(1)
                    continue
                assert isinstance(axis, tuple)
                digits.extend(axis)
                held.extend(next(bound) for _ in axis)
                sizes.append(int(np.prod(axis)))
            grid = np.indices(digits, np.int64) if digits else np.zeros((0,), np.int64)
            where: dict[int, NDArray[np.int64]] = {}
            for position, value in zip(free, batch, strict=True):
                where[position] = np.full(digits, value, np.int64)
            for k, window in enumerate(held):
                if window is not None:
                    assert window[2] == digits[k]
                    where[window[0]] = grid[k] + window[1]
            places = tuple(where.get(p, np.zeros(digits, np.int64)) for p in range(len(taken) + len(batch)))
            value = self.term(child, _read(access, places, tuple(digits)), tuple(digits), {})
            found.append(value.reshape(sizes))
        return found


def _distinct(places: Places) -> tuple[Places, NDArray[np.int64]]:
    """Every index once, and where each of the given ones is among them: folds inside of folds read few elements."""
    code = np.zeros(places[0].size if places else 0, np.int64)
    for place in places:
        flat = place.reshape(-1)
        low, high = int(flat.min(initial=0)), int(flat.max(initial=0))
        code = code * (high - low + 1) + (flat - low)
    _, first, back = np.unique(code, return_index=True, return_inverse=True)
    return tuple(place.reshape(-1)[first] for place in places), back.reshape(-1)


def _read(access: Access, places: Places, shape: tuple[int, ...], operands: Sequence[Array] = ()) -> Places:
    """The indices of an access: variable ``v`` is ``places[v]``, variable ``-k`` the value of index operand ``k``."""
    found: list[NDArray[np.int64]] = []
    for constant, strides in access:
        index = np.full(shape, float(str(constant)))
        for var, stride in strides:
            index = index + float(str(stride)) * (places[var] if var >= 0 else operands[-var - 1])
        finite = np.where(np.isfinite(index), index, -1e6)
        assert np.all(np.abs(finite - np.round(finite)) < 1e-6), "an index that is no integer"
        found.append(np.round(finite).astype(np.int64))
    return tuple(found)


def _lookup(array: Array, places: Places, shape: tuple[int, ...], name: str, *, whole: bool) -> Array:
    if not places:
        return np.full(shape, float(array))
    inside = np.ones(shape, bool)
    for place, size in zip(places, array.shape, strict=True):
        inside &= (place >= 0) & (place < size)
    code = np.full(shape, zlib.crc32(name.encode()) % 9973, np.int64)
    for place in places:
        code = (code * 31 + place * 17 + 7) % 9973
    outside = code.astype(np.float64) + 100 if whole else 3.0 + code / 1000
    safe = tuple(np.where(inside, place, 0) for place in places)
    return np.where(inside, array[safe] if array.size else outside, outside)


def _execute(op: object, kinds: Sequence[str], operands: Sequence[Array]) -> Array:
    if isinstance(op, Concatenate) and not kinds:
        return np.concatenate(operands, axis=op.dimension)
    if isinstance(op, tuple):
        return _of_member(*op, operands)
    assert isinstance(op, TensorOperator)
    types = {"float": np.float64, "i1": np.bool_, "i32": np.int32, "i64": np.int64}
    return np.asarray(op.execute([a.astype(types[k]) for a, k in zip(operands, kinds, strict=True)]), np.float64)


def _of_member(collective: Sequence[Operator], member: int, operands: Sequence[Array]) -> Array:
    """What one member holds after a collective of all."""
    nodes = [Node(op, (0,), TensorType(a.shape, DType.F64)) for op, a in zip(collective, operands, strict=True)]
    return np.asarray(simulate(nodes, range(len(nodes)), operands)[member], np.float64)


__all__ = ["Meaning"]
