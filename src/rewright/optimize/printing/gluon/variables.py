"""The variables and calls of statements on tiles, and statements without those that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rewright.ir.errors import RewrightError
from rewright.optimize.printing.statements import (
    Assign,
    Call,
    Do,
    If,
    Let,
    Load,
    Loop,
    Name,
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
                raise RewrightError(f"no specialised warps for the statement {type(s).__name__}")


def calls(body: Iterable[Statement]) -> Iterator[Call]:
    """All calls in statements."""
    waiting = [*values(body)]
    while waiting:
        match e := waiting.pop():
            case Call():
                yield e
                waiting += e.arguments
            case Sum(terms):
                waiting += [term for term, _ in terms]
            case Load():
                waiting += [part for part in (e.place, e.guard) if part is not None]
            case _:
                pass


def names(e: Scalar | None) -> set[str]:
    """The variables that a scalar reads."""
    match e:
        case Name(text):
            return {text}
        case Sum(terms):
            return set[str]().union(*(names(term) for term, _ in terms))
        case Call(_, arguments):
            return set[str]().union(*map(names, arguments))
        case Load():
            return names(e.place) | names(e.guard)
        case _:
            return set()
