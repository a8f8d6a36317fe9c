"""Scalars with loops: what every element of a tensor is, stored once, with the loop indices that it depends on.

An expression is read off the denotations of operators. Equal expressions are one object, so "the same value" is
identity, and the free loop indices of an expression are its axes: an index that does not occur is an axis along which
the value is broadcast, and an index that is bound by a reduction is a reduce dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.terms.index import Index, Quotient, Remainder, Variable, collect, quotient, remainder

Number = float | int | bool


def number_of(size: Dim) -> int:
    """A size that is a number; raises RewrightError for a symbol."""
    if not isinstance(size, int):
        raise RewrightError(f"the size {size} is a symbol; give it a number")
    return size


@dataclass(frozen=True, slots=True)
class Bound:
    """The reduction that an expression is: its kind and the index that it binds, with its size."""

    kind: str
    index: str
    size: Dim

    @property
    def count(self) -> int:
        """The size as a number; raises RewrightError for a symbol."""
        return number_of(self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A value; ``free`` are the loop indices that it depends on.

    ``op`` is ``load`` (the arguments are integer indices, ``tensor`` the position of the tensor), ``constant``,
    ``index`` (an affine index; its arguments are the computed integers that it names), ``reduce``, or the name of a
    scalar
    function as in denotations.
    """

    op: str
    arguments: tuple[Expression, ...]
    dtype: DType
    free: frozenset[str]
    number: int
    value: Number = 0
    index: Index | None = None
    tensor: int = -1
    bound: Bound | None = None

    def __repr__(self) -> str:
        return f"{self.op}#{self.number}"


class Table:
    """Expressions that are stored once, and the constructors that simplify them."""

    def __init__(self) -> None:
        self._known: dict[object, Expression] = {}
        self._numbered: list[Expression] = []
        self._opaque: dict[str, Expression] = {}
        self.updates: dict[tuple[object, ...], Any] = {}
        """How reductions follow others, once it was worked out (``derive``)."""

    def _make(
        self,
        op: str,
        arguments: tuple[Expression, ...],
        dtype: DType,
        free: frozenset[str],
        value: Number = 0,
        index: Index | None = None,
        tensor: int = -1,
        bound: Bound | None = None,
    ) -> Expression:
        # repr tells 0.0 from -0.0 and 1 from True, and finds NaN again.
        key = (op, tuple(a.number for a in arguments), dtype, repr(value), index, tensor, bound)
        found = self._known.get(key)
        if found is None:
            found = Expression(op, arguments, dtype, free, len(self._known), value, index, tensor, bound)
            self._known[key] = found
            self._numbered.append(found)
        return found

    def constant(self, value: Number, dtype: DType) -> Expression:
        """A fixed number."""
        return self._make("constant", (), dtype, frozenset(), value=value)

    def index(self, index: Index, dtype: DType = DType.I64) -> Expression:
        """An index as an integer."""
        size = index.as_size()
        if isinstance(size, int):
            return self.constant(size, dtype)
        computed = tuple(self._opaque[n] for n in dict.fromkeys(names(index)) if n.startswith("@"))
        return self._make("index", computed, dtype, self.free_of(index), index=index)

    def load(self, tensor: int, places: tuple[Expression, ...], dtype: DType) -> Expression:
        """An element of a tensor in memory."""
        free = frozenset[str]().union(*(p.free for p in places))
        return self._make("load", places, dtype, free, tensor=tensor)

    def renewed(self, value: Expression) -> Expression:
        """A placeholder for a running value after the tile that is gone through."""
        return self._make("load", (), value.dtype, value.free, tensor=-2 - value.number)

    def reduce(self, bound: Bound, body: Expression) -> Expression:
        """A reduction of the body over an index."""
        return self._make("reduce", (body,), body.dtype, body.free - {bound.index}, bound=bound)

    def apply(self, op: str, *arguments: Expression) -> Expression:
        """A scalar function of expressions, simplified where that is exact for every number."""
        from rewright.optimize.scalars.simplify import simplify

        found = simplify(self, op, arguments)
        return found if found is not None else self.plain(op, arguments)

    def plain(self, op: str, arguments: tuple[Expression, ...]) -> Expression:
        """A scalar function of expressions as it stands."""
        free = frozenset[str]().union(*(a.free for a in arguments))
        return self._make(op, arguments, result_dtype(op, arguments), free)

    def opaque(self, value: Expression) -> Index:
        """A computed integer as an index, under a name that stands for it."""
        if value.op == "constant":
            return Index(int(value.value))
        if value.op == "index" and value.index is not None:
            return value.index
        name = f"@{value.number}"
        self._opaque[name] = value
        return Index(0, ((Variable(name), 1),))

    def named_integer(self, name: str) -> Expression:
        """The computed integer that a name of an index stands for."""
        return self._opaque[name]

    def numbered(self, number: int) -> Expression:
        """The expression with a number."""
        return self._numbered[number]

    def free_of(self, index: Index) -> frozenset[str]:
        """The loop indices that an index depends on."""
        found: set[str] = set()
        for name in names(index):
            found |= self._opaque[name].free if name.startswith("@") else {name}
        return frozenset(found)

    def substitute(self, value: Expression, places: Mapping[str, Index]) -> Expression:
        """The expression with loop indices replaced."""
        known: dict[int, Expression] = {}
        keys = frozenset(places)

        def visit(e: Expression) -> Expression:
            if not (e.free & keys):
                return e
            if e.number not in known:
                known[e.number] = self.rebuilt(e, visit, lambda i: self.relabel(i, places, visit))
            return known[e.number]

        return visit(value)

    def replace(self, value: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
        """The expression with parts replaced, from the outside in: what ``change`` gives is not entered."""
        known: dict[int, Expression] = {}

        def visit(e: Expression) -> Expression:
            if e.number not in known:
                found = change(e)
                known[e.number] = found if found is not None else self.rebuilt(e, visit, lambda i: i)
            return known[e.number]

        return visit(value)

    def rebuilt(
        self, e: Expression, visit: Callable[[Expression], Expression], place: Callable[[Index], Index]
    ) -> Expression:
        """The expression with new arguments."""
        if e.index is not None:
            return self.index(place(e.index), e.dtype)
        if not e.arguments:
            return e
        arguments = tuple(visit(a) for a in e.arguments)
        if e.op == "load":
            return self.load(e.tensor, arguments, e.dtype)
        if e.bound is not None:
            return self.reduce(e.bound, arguments[0])
        return self.apply(e.op, *arguments)

    def relabel(self, index: Index, places: Mapping[str, Index], visit: Callable[[Expression], Expression]) -> Index:
        """An index with loop indices replaced, also inside of the computed integers that it names."""
        total = Index(index.constant)
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                if atom.name.startswith("@"):
                    part = self.opaque(visit(self._opaque[atom.name]))
                else:
                    part = places.get(atom.name, Index(0, ((atom, 1),)))
            elif isinstance(atom, (Quotient, Remainder)):
                inner = self.relabel(atom.numerator, places, visit)
                make = quotient if isinstance(atom, Quotient) else remainder
                part = make(inner, atom.divisor)
            else:
                part = collect(0, [(atom, 1)])
            total = total + part * factor
        return total


def names(index: Index) -> Iterator[str]:
    """The variables of an index."""
    for atom, _ in index.terms:
        if isinstance(atom, Variable):
            yield atom.name
        elif isinstance(atom, (Quotient, Remainder)):
            yield from names(atom.numerator)


def result_dtype(op: str, arguments: tuple[Expression, ...]) -> DType:
    """The dtype of a scalar function of expressions."""
    if op.startswith("convert_"):
        return DType(op.removeprefix("convert_"))
    if op.startswith("compare_") or op in ("is_finite", "at_least_zero", "is_zero"):
        return DType.BOOL
    return arguments[1].dtype if op in ("select", "clamp") else arguments[0].dtype


def walk(*roots: Expression) -> Iterator[Expression]:
    """Every expression once, arguments first."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        e, ready = stack.pop()
        if ready:
            yield e
        elif e.number not in seen:
            seen.add(e.number)
            stack.append((e, True))
            stack.extend((a, False) for a in reversed(e.arguments))


_DIGITS = {DType.BF16: 8, DType.F16: 11, DType.F32: 24, DType.F64: 53}


def is_rounded(e: Expression) -> bool:
    """Whether an expression is a cast of a float to fewer digits."""
    if not e.op.startswith("convert_") or not e.dtype.is_float or not e.arguments[0].dtype.is_float:
        return False
    return _DIGITS[e.dtype] < _DIGITS[e.arguments[0].dtype]


def is_plain_cast(e: Expression) -> bool:
    """Whether a cast between floats is taken to change nothing.

    One that rounds is so where a reduction is inside, such as the weights of attention in 16 bits: no sum could follow
    its running values else.
    """
    if not e.op.startswith("convert_") or not e.dtype.is_float or not e.arguments[0].dtype.is_float:
        return False
    return not is_rounded(e) or any(x.bound is not None for x in walk(e))


def contains(value: Expression, part: Expression) -> bool:
    """Whether an expression occurs in another one."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        e = stack.pop()
        if e is part:
            return True
        if e.number not in seen and e.number > part.number:
            seen.add(e.number)
            stack.extend(e.arguments)
    return False


def unreduced_parts(value: Expression) -> Iterator[Expression]:
    """The parts of a value that are inside of no reduction in it."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        e = stack.pop()
        if e.number not in seen:
            seen.add(e.number)
            yield e
            stack += () if e.bound is not None else e.arguments
