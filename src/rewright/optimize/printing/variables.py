"""The variables and calls of statements, and statements without those that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rewright.ir.errors import RewrightError
from rewright.optimize.printing.statements import (
    Assign,
    Call,
    Do,
    Element,
    If,
    Let,
    Load,
    Loop,
    Name,
    Number,
    Scalar,
    Statement,
    Store,
    Sum,
)


def live(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Statements without those whose variables nothing reads."""
    while True:
        read = set[str]().union(*(names(e) for e in values(body)))
        rest = tuple(_reading(body, read))
        if rest == tuple(body):
            return rest
        body = rest


def _reading(body: Sequence[Statement], read: set[str]) -> Iterator[Statement]:
    for s in body:
        match s:
            case Let(name) | Assign(Name(name)) if name not in read:
                pass
            case Loop():
                yield replace(s, body=tuple(_reading(s.body, read)))
            case If():
                yield replace(s, then=tuple(_reading(s.then, read)), otherwise=tuple(_reading(s.otherwise, read)))
            case _:
                yield s


def values(body: Iterable[Statement]) -> Iterator[Scalar]:
    """The scalars that statements read."""
    for s in body:
        match s:
            case Let() | Assign() | Do():
                yield s.value
            case Store():
                yield from (e for e in (s.place, s.value, s.guard) if e is not None)
            case Loop():
                yield from (s.start, s.stop, s.step)
                yield from values(s.body)
            case If():
                yield s.condition
                yield from values((*s.then, *s.otherwise))
            case _:
                raise RewrightError(f"nobody says what the statement {type(s).__name__} reads; use target='cpu'")


def calls(body: Iterable[Statement]) -> Iterator[Call]:
    """All calls in statements."""
    return (e for value in values(body) for e in parts(value) if isinstance(e, Call))


def names(scalar: Scalar | None) -> set[str]:
    """The variables that a scalar reads."""
    return set() if scalar is None else {e.text for e in parts(scalar) if isinstance(e, Name)}


def parts(scalar: Scalar) -> Iterator[Scalar]:
    """A scalar, and all that it is made of."""
    yield scalar
    match scalar:
        case Call(_, arguments):
            inner: Iterable[Scalar | None] = arguments
        case Sum(terms):
            inner = [term for term, _ in terms]
        case Element():
            inner = [scalar.place]
        case Load():
            inner = [scalar.place, scalar.guard]
        case Name() | Number():
            inner = []
    for e in inner:
        if e is not None:
            yield from parts(e)
