"""Values as scalars of loops: each is computed once, in the outermost loop that it does not depend on."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.kernel import Store
from rewright.optimize.printing import statements
from rewright.optimize.printing.loops.context import Context
from rewright.optimize.printing.places import offset
from rewright.optimize.printing.statements import Let, Load, Name, Number, Scalar, Sum, Value, call, operation, whole
from rewright.optimize.printing.states import Writer
from rewright.optimize.scalars.constants import closed_value, power_of_two
from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.ranges import is_below, joined_digits, span
from rewright.terms.index import Index, Quotient, Remainder, Variable


def writer(k: Context) -> Writer:
    """How values are lowered here."""
    return Writer(lambda e: value(k, e), lambda e, of: operated(k, e, of), k.real)


def put(k: Context, store: Store, e: Expression) -> statements.Store:
    """Write an element of a tensor."""
    terms: list[tuple[Scalar, Dim]] = []
    stride: Dim = 1
    for axis, size in zip(reversed(store.axes), reversed(k.shape(store.tensor)), strict=True):
        terms += [(Name(axis), stride)] if size != 1 else []
        stride = stride * size
    dtype = k.graph.nodes[store.tensor].type.dtype
    return statements.Store(store.tensor, Sum(tuple(reversed(terms))), value(k, e), dtype)


def value(k: Context, e: Expression) -> Scalar:
    """An expression; its parts get names in the blocks where they belong."""
    number = e.value if e.op == "constant" else closed_value(e)
    if number is not None:
        return Number(number, k.computed(e.dtype))
    found = k.scopes.lookup(e)
    if found is not None:
        return found
    if e.op == "reduce":
        raise AssertionError(f"{e} has no value here")
    with k.scopes.outer(k.scopes.depth(e)) as scope:
        lowered = _lower(k, e)
        name = k.scopes.fresh("v")
        scope.add(Let(name, lowered, k.computed(e.dtype)))
    scope.names[e.number] = Name(name)
    return Name(name)


def _lower(k: Context, e: Expression) -> Scalar:
    if e.op == "index" and e.index is not None:
        return index(k, e.index)
    if e.op == "load":
        return load(k, e)
    return operated(k, e, lambda a: value(k, a))


def operated(k: Context, e: Expression, of: Value) -> Scalar:
    """One operation of operands that were lowered by ``of``.

    Two to a power: a number that the exponent is multiplied by is given as a sum of two, the second one small.
    """
    exponent = power_of_two(e)
    if exponent is None:
        return operation(e, [of(a) for a in e.arguments])
    if exponent.op in ("multiply", "divide") and (number := closed_value(exponent.arguments[1])):
        number = number if exponent.op == "multiply" else 1 / number
        high = float(np.float32(number)) if k.real is DType.F32 else number
        if math.isfinite(high):
            return call("exp2_product", of(exponent.arguments[0]), Number(high, k.real), Number(number - high, k.real))
    return call("exp2", of(exponent))


def index(k: Context, place: Index) -> Sum:
    """An index."""
    joined = joined_digits(place)
    terms: list[tuple[Scalar, Dim]] = []
    for atom, factor in joined.terms:
        if isinstance(atom, Variable):
            text = value(k, k.table.named_integer(atom.name)) if atom.name.startswith("@") else Name(atom.name)
        elif isinstance(atom, (Quotient, Remainder)):
            function = "floor_quotient" if isinstance(atom, Quotient) else "floor_remainder"
            text = call(function, index(k, atom.numerator), whole(atom.divisor))
        else:
            raise RewrightError("an index that is computed from data has no name")
        terms.append((text, factor))
    return Sum(tuple(terms), joined.constant)


def load(k: Context, e: Expression) -> Load:
    """An element of a tensor; an index that may be out of range is brought into it, as its value is not used."""
    shape, dtype = k.shape(e.tensor), k.computed(e.dtype)
    if all(is_within(k, p, s) for p, s in zip(e.arguments, shape, strict=True)):
        return Load(e.tensor, index(k, offset(k.table, e.arguments, shape)), None, dtype)
    terms: list[tuple[Scalar, Dim]] = []
    stride: Dim = 1
    for place, size in zip(reversed(e.arguments), reversed(shape), strict=True):
        text = value(k, place)
        if not is_within(k, place, size):
            text = call("least", call("most", text, whole(0)), whole(size - 1))
        terms.append((text, stride))
        stride = stride * size
    return Load(e.tensor, Sum(tuple(terms)), None, dtype)


def is_within(k: Context, place: Expression, size: Dim) -> bool:
    """Whether an index is in range for certain."""
    if place.op == "constant":
        return is_below((int(place.value), int(place.value)), size)
    return place.index is not None and is_below(span(place.index, k.ranges), size)


def is_costly(e: Expression, products: Mapping[int, str]) -> bool:
    """Whether a value is worth keeping."""
    return e.number not in products and e.op not in ("load", "index", "constant")
