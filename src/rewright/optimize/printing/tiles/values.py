"""Values as tiles, with the names that they have where they are computed."""

from __future__ import annotations

from collections.abc import Iterator

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.printing.places import offset
from rewright.optimize.printing.statements import (
    Assign,
    If,
    Let,
    Load,
    Name,
    Number,
    Scalar,
    Sum,
    Value,
    call,
    fold_left,
    operation,
    whole,
)
from rewright.optimize.printing.states import Writer
from rewright.optimize.printing.tiles.context import DESCRIPTORS, Block, Context, has_16_bits
from rewright.optimize.printing.tiles.descriptors import load_by_descriptor
from rewright.optimize.scalars.constants import closed_value, power_of_two
from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.ranges import number_span
from rewright.terms.index import Index, Quotient, Remainder, Variable


def writer(k: Context, c: Block) -> Writer:
    """How values are lowered here."""
    return Writer(lambda e: value(k, c, e), operated, DType.F32)


def value(k: Context, c: Block, e: Expression) -> Scalar:
    """An expression as a tile."""
    number = e.value if e.op == "constant" else closed_value(e)
    if number is not None:
        return Number(number, e.dtype)
    if e.number in c.names:
        return c.names[e.number]
    lowered = exponential_by_product(k, c, e) or _lower(k, c, e)
    name = k.fresh("v")
    c.add(Let(name, lowered))
    c.names[e.number] = Name(name)
    return Name(name)


def _lower(k: Context, c: Block, e: Expression) -> Scalar:
    if e.op == "index" and e.index is not None:
        return index(k, c, e.index)
    if e.op == "load":
        return load(k, c, e)
    return operated(e, lambda a: value(k, c, a))


def exponential_by_product(k: Context, c: Block, e: Expression) -> Scalar | None:
    """Two to the power of ``a * tile + row``, which a device computes by one operation and a power of two.

    ``(s - m) * a`` is written ``s * a - m * a``, with the second product once for a row. Where ``s`` is ``m`` that is
    not zero but the rounding error of ``m * a``, so only programs in 16 bits have it, and no factors above one, by
    which either might overflow.
    """
    exponent = power_of_two(e) if has_16_bits(k.graph) else None
    if exponent is None:
        return None
    parts = list(_parts(c, exponent, 1.0))
    tiles = [(x, a) for x, a in parts if x.free == exponent.free]
    rows = [(x, a) for x, a in parts if x.free != exponent.free]
    if len(tiles) != 1 or not rows or not all(x.free for x, _ in rows) or any(not 0 < abs(a) <= 1 for _, a in parts):
        return None
    name = Name(k.fresh("shift"))
    c.add(Let(name.text, fold_left("add", [_times(value(k, c, x), a) for x, a in rows])))
    return call("exp2", call("add", _times(value(k, c, tiles[0][0]), tiles[0][1]), name))


def _times(x: Scalar, factor: float) -> Scalar:
    return call("multiply", x, Number(factor, DType.F32))


def _parts(c: Block, e: Expression, factor: float) -> Iterator[tuple[Expression, float]]:
    """The terms of a sum of multiples, and their factors."""
    constants = [closed_value(a) for a in e.arguments]
    if e.number in c.names or not e.dtype.is_float:
        yield e, factor
    elif e.op in ("add", "subtract"):
        yield from _parts(c, e.arguments[0], factor)
        yield from _parts(c, e.arguments[1], factor if e.op == "add" else -factor)
    elif e.op == "negate":
        yield from _parts(c, e.arguments[0], -factor)
    elif e.op == "multiply" and (number := next((n for n in constants if n), None)) is not None:
        yield from _parts(c, e.arguments[1 - constants.index(number)], factor * float(number))
    elif e.op == "divide" and (number := constants[1]):
        yield from _parts(c, e.arguments[0], factor / float(number))
    else:
        yield e, factor


def operated(e: Expression, of: Value) -> Scalar:
    """One operation of operands that were lowered by ``of``."""
    exponent = power_of_two(e)
    return call("exp2", of(exponent)) if exponent is not None else operation(e, [of(a) for a in e.arguments])


def index(k: Context, c: Block, place: Index) -> Sum:
    """An index as a tile."""
    terms: list[tuple[Scalar, int]] = []
    for atom, factor in place.terms:
        if isinstance(atom, Variable):
            text = value(k, c, k.table.named_integer(atom.name)) if atom.name.startswith("@") else c.places[atom.name]
        elif isinstance(atom, (Quotient, Remainder)) and isinstance(atom.divisor, int):
            known = number_span(atom.numerator, k.ranges)
            if known is None or known[0] < 0:
                raise RewrightError(
                    f"no Triton for the digit {atom} of an index that may be negative; use target='cpu'"
                )
            function = "quotient" if isinstance(atom, Quotient) else "modulo"
            text = call(function, index(k, c, atom.numerator), whole(atom.divisor))
        else:
            raise RewrightError("no Triton for an index that is computed so; use target='cpu'")
        assert isinstance(factor, int)
        terms.append((text, factor))
    assert isinstance(place.constant, int)
    return Sum(tuple(terms), place.constant)


def load(k: Context, c: Block, e: Expression) -> Scalar:
    """Elements of a tensor; what is out of range is not read."""
    shape = k.shape(e.tensor)
    place = index(k, c, offset(k.table, e.arguments, shape))
    guards = [g for n, g in c.guards.items() if n in e.free]
    for argument, size in zip(e.arguments, shape, strict=True):
        if argument.op == "constant":
            continue
        found = number_span(argument.index, k.ranges) if argument.index is not None else None
        if found is None or found[0] < 0 or found[1] >= size:
            text = value(k, c, argument)
            guards += [call("at_least_zero", text), call("compare_LT", text, whole(size))]
    loaded: Scalar = Load(e.tensor, place, fold_left("and", guards) if guards else None, e.dtype)
    if (tile := load_by_descriptor(k, c, e, lambda i: index(k, c, i))) is not None:
        name = Name(k.fresh("tile"))
        c.add(If(DESCRIPTORS, (Assign(name, tile),), (Assign(name, loaded),)))
        loaded = name
    return call("cast", loaded, dtype=DType.F32) if e.dtype in (DType.F16, DType.BF16) else loaded
