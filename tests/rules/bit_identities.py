"""Random identities of integers with bitwise functions, true and false ones, and what they are at numbers.

Integers are those of a dtype in two's complement. What does not fit is not asked: integers of proofs do not wrap.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType, TensorType
from rewright.rules import Rule, Tensor, rule, size
from rewright.rules.pattern import apply

n = size("n")
DTYPES = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8)


class Wraps(Exception):
    """A number that the dtype does not have."""


@dataclass(frozen=True)
class Term:
    """A variable, a number, or an operation on terms."""

    name: str
    operands: tuple[Term, ...] = ()
    number: int = 0

    def __str__(self) -> str:
        if not self.operands:
            return self.name if self.name in "xyz" else str(self.number)
        return f"{self.name}({', '.join(map(str, self.operands))})"


_OPERATORS = {
    "and": ops.And(),
    "or": ops.Or(),
    "xor": ops.Xor(),
    "not": ops.Not(),
    "add": ops.Add(),
    "subtract": ops.Subtract(),
    "multiply": ops.Multiply(),
    "maximum": ops.Maximum(),
    "divide": ops.Divide(),
    "remainder": ops.Remainder(),
}


def pattern(term: Term, dtype: DType) -> Tensor:
    """The term as an expression of rules."""
    kind = TensorType((n,), dtype)
    if term.name in "xyz":
        return Tensor(ops.Input(term.name, kind))
    if term.name == "number":
        return Tensor(ops.Constant(TensorType((), dtype), (term.number,))).broadcast((n,))
    return apply(_OPERATORS[term.name], *(pattern(operand, dtype) for operand in term.operands))


def _quotient(left: int, right: int) -> int:
    if not right:
        raise Wraps
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "maximum": max,
    "divide": _quotient,
    "remainder": _remainder,
}


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    bits = int(dtype.value.lstrip("ui"))
    return (0, 2**bits - 1) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def value(term: Term, values: dict[str, int], dtype: DType) -> int:
    """The term at numbers; raises Wraps where something does not fit."""
    low, high = limits(dtype)
    if term.name in "xyz":
        return values[term.name]
    if term.name == "number":
        found = term.number
    else:
        inside = [value(operand, values, dtype) for operand in term.operands]
        if term.name == "not":
            found = high - inside[0] if dtype.is_unsigned else ~inside[0]
        else:
            found = _FUNCTIONS[term.name](inside[0], inside[1])
    if not low <= found <= high:
        raise Wraps
    return found


def difference(left: Term, right: Term, dtype: DType, source: random.Random, points: int = 300) -> str | None:
    """Integers at which two terms differ, in words; None where none were found."""
    low, high = limits(dtype)
    chosen = (0, 1, 2, 3, 5, 7, 8, 12, 15, 16, 100, -1, -2, -3, -8, -9, low, low + 1, high, high - 1)
    special = [k for k in chosen if low <= k <= high]
    for _ in range(points):
        values = {name: source.choice((source.choice(special), source.randint(low, high))) for name in "xyz"}
        try:
            first, second = value(left, values, dtype), value(right, values, dtype)
        except Wraps:
            continue
        if first != second:
            return f"{values}: {first} and {second}"
    return None


# --- random identities


class Identities:
    """A source of pairs of terms; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pair(self, name: str) -> tuple[Rule, Term, Term, DType]:
        """A term, and what laws of bits make of it: some of them do not hold."""
        while True:
            left, right, dtype = self.terms()
            with suppress(RewrightError):
                statement = f"{left} = {right} in {dtype.value}"
                return rule(name, statement, pattern(left, dtype), pattern(right, dtype)), left, right, dtype

    def terms(self) -> tuple[Term, Term, DType]:
        """Two terms over integers of a dtype; the second may have a variable that the first lacks."""
        dtype = self.random.choice(DTYPES)
        left = self.term(self.random.randint(1, 3), dtype)
        right = left
        for _ in range(self.random.randint(1, 3)):
            right = self.rewritten(right)
        if self.random.random() < 0.4:
            right = self.edited(right)
        return left, right, dtype

    def term(self, depth: int, dtype: DType) -> Term:
        draw = self.random
        if depth == 0:
            if draw.random() < 0.75:
                return Term(draw.choice("xyz"))
            return _number(draw.choice((0, 1, 3, 4, 7, 12, 15, 64) if dtype.is_unsigned else _NUMBERS))
        if draw.random() < 0.15:
            return Term("not", (self.term(depth - 1, dtype),))
        name = draw.choice(("and", "or", "xor", "and", "or", "xor", "add", "subtract"))
        return Term(name, (self.term(depth - 1, dtype), self.term(draw.randint(0, depth - 1), dtype)))

    def rewritten(self, term: Term) -> Term:
        """The term with a law used somewhere, left to right."""
        places = [place for place in _places(term) if any(law(place) is not None for law in LAWS)]
        if not places:
            return term
        place = self.random.choice(places)
        found = [changed for law in LAWS if (changed := law(place)) is not None]
        return _replaced(term, place, self.random.choice(found))

    def edited(self, term: Term) -> Term:
        """The term with one operation, variable or number changed."""
        place = self.random.choice(list(_places(term)))
        if place.name == "number":
            changed = _number(place.number + 1)
        elif not place.operands:
            changed = Term(self.random.choice("xyz"))
        elif len(place.operands) == 1:
            changed = place.operands[0]
        else:
            changed = replace(place, name=self.random.choice(("and", "or", "xor", "add", "subtract")))
        return _replaced(term, place, changed)


_NUMBERS = (0, 1, 3, 4, 7, 12, 15, 64, -1, -2, -8, -9)


def _number(value: int) -> Term:
    return Term("number", (), value)


def _places(term: Term) -> Iterator[Term]:
    yield term
    for operand in term.operands:
        yield from _places(operand)


def _replaced(term: Term, place: Term, changed: Term) -> Term:
    if term is place:
        return changed
    return replace(term, operands=tuple(_replaced(operand, place, changed) for operand in term.operands))


Law = Callable[[Term], Term | None]


def _of(name: str, law: Callable[[Term, Term], Term | None]) -> Law:
    return lambda term: law(term.operands[0], term.operands[1]) if term.name == name else None


def _of_not(law: Callable[[Term], Term]) -> Law:
    return lambda term: law(term.operands[0]) if term.name == "not" else None


def _not(term: Term) -> Term:
    return Term("not", (term,))


def _two(name: str, left: Term, right: Term) -> Term:
    return Term(name, (left, right))


def _commuted(name: str) -> Law:
    return _of(name, lambda a, b: _two(name, b, a))


def _regrouped(name: str) -> Law:
    def law(a: Term, b: Term) -> Term | None:
        return _two(name, a.operands[0], _two(name, a.operands[1], b)) if a.name == name else None

    return _of(name, law)


def _distributed(outer: str, inner: str) -> Law:
    def law(a: Term, b: Term) -> Term | None:
        return _two(inner, _two(outer, a, b.operands[0]), _two(outer, a, b.operands[1])) if b.name == inner else None

    return _of(outer, law)


def _each(law: Callable[[Term], Term]) -> Law:
    """A law of every term that is not a number."""
    return lambda term: law(term) if term.name != "number" else None


LAWS: tuple[Law, ...] = (
    *(_commuted(name) for name in ("and", "or", "xor", "add")),
    *(_regrouped(name) for name in ("and", "or", "xor", "add")),
    _distributed("and", "or"),
    _distributed("or", "and"),
    _distributed("and", "xor"),
    _of("and", lambda a, b: _not(_two("or", _not(a), _not(b)))),
    _of("or", lambda a, b: _not(_two("and", _not(a), _not(b)))),
    _of("xor", lambda a, b: _two("and", _two("or", a, b), _not(_two("and", a, b)))),
    _of("xor", lambda a, b: _two("subtract", _two("or", a, b), _two("and", a, b))),
    _of("or", lambda a, b: _two("subtract", _two("add", a, b), _two("and", a, b))),
    _of("or", lambda a, b: _two("xor", _two("xor", a, b), _two("and", a, b))),
    _of("add", lambda a, b: _two("add", _two("or", a, b), _two("and", a, b))),
    _of_not(lambda a: _two("xor", a, _number(-1))),
    _of_not(lambda a: _two("subtract", _number(-1), a)),
    _each(lambda a: _two("or", a, _two("and", a, Term("y")))),
    _each(lambda a: _two("and", a, _two("or", a, Term("z")))),
    _each(lambda a: _two("xor", _two("xor", a, Term("x")), Term("x"))),
    _each(lambda a: _two("or", _two("and", a, _number(7)), _two("and", a, _not(_number(7))))),
    _each(lambda a: _two("add", _two("and", a, _number(12)), _two("and", a, _not(_number(12))))),
    _each(lambda a: _not(_not(a))),
    _each(lambda a: _two("and", a, a)),
    _each(lambda a: _two("or", a, _number(0))),
)
"""Some of these are laws of signed integers only, or where nothing wraps: what is true is asked of numbers."""
