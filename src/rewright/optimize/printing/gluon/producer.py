"""The producer partition: loops over tiles with their copies, and what their limits and places are computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rewright.ir.types import DType
from rewright.optimize.printing.gluon.rings import Ring, require, tile_load
from rewright.optimize.printing.statements import (
    Assign,
    Call,
    Do,
    If,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    Statement,
    Sum,
    call,
    total,
    whole,
)
from rewright.optimize.printing.variables import names

_EXTREMA = {"least", "most", "at_least_one"}
_DIGITS = {"quotient", "modulo", "rounded_down", "rounded_up", "add", "subtract", "multiply", "negate"}
_TRUTHS = {
    "is_zero",
    "at_least_zero",
    "or",
    "and",
    "not_bool",
    *(f"compare_{w}" for w in ["LT", "LE", "GT", "GE", "EQ", "NE"]),
}
_PLACES = _EXTREMA | _DIGITS | _TRUTHS
"""Functions of places: what the producer, which has one warp, may compute."""


def producer_of(body: Sequence[Statement], rings: Mapping[str, Ring], known: set[str]) -> Iterator[Statement]:
    """Loops over tiles with their copies, and what their limits and places are computed from."""
    made = {s.name: s.value for s in body if isinstance(s, Let)}
    changed = {name for name, count in Counter(_written(body)).items() if count > 1}
    kept = tuple(_kept(body, rings))
    needed, waiting = dict[str, None](), [*_read(kept, known)]
    while waiting:
        name = waiting.pop()
        require(name in made and name not in changed, f"the places of tiles depend on {name}")
        needed.setdefault(name)
        waiting += [n for n in names(made[name]) if n not in known and n not in needed]
    for name, value in made.items():
        if name in needed:
            require(_is_place(value), f"the places of tiles depend on {name}")
            yield Let(name, value, DType.I32)
    yield from (Let(ring.count.text, whole(0), DType.I32) for ring in rings.values())
    yield from kept


def _written(body: Sequence[Statement]) -> Iterator[str]:
    """The variables that statements write, as often as they do."""
    for s in body:
        match s:
            case Let(name) | Assign(Name(name)):
                yield name
            case Loop():
                yield from _written(s.body)
            case If():
                yield from _written((*s.then, *s.otherwise))
            case _:
                pass


def _kept(body: Sequence[Statement], rings: Mapping[str, Ring]) -> Iterator[Statement]:
    """The copies of statements, in their loops and choices."""
    for s in body:
        if (found := tile_load(s)) is not None:
            ring = rings[found.descriptor]
            yield Do(call("copy_tile", Name(ring.name), *found.start, ring.places, ring.count))
            yield Assign(ring.count, total(ring.count, 1))
        elif isinstance(s, Loop) and (inner := tuple(_kept(s.body, rings))):
            yield replace(s, body=inner, is_piped=False)
        elif isinstance(s, If):
            then, otherwise = tuple(_kept(s.then, rings)), tuple(_kept(s.otherwise, rings))
            if then or otherwise:
                require(bool(then), "tiles are copied where a condition does not hold")
                yield replace(s, then=then, otherwise=otherwise)


def _read(body: Sequence[Statement], known: set[str]) -> Iterator[str]:
    """The names that copies read and that they do not have themselves."""
    for s in body:
        match s:
            case Loop():
                require(all(map(_is_place, (s.start, s.stop, s.step))), "the limits of a loop depend on values")
                yield from (n for e in (s.start, s.stop, s.step) for n in names(e) if n not in known)
                yield from _read(s.body, known | {s.index})
            case If():
                require(_is_place(s.condition), "values decide which tiles are read")
                yield from (n for n in names(s.condition) if n not in known)
                yield from _read((*s.then, *s.otherwise), known)
            case Do(Call(_, (_, *places, _, _))):
                yield from (n for e in places for n in names(e) if n not in known)
            case _:
                pass


def _is_place(e: Scalar) -> bool:
    match e:
        case Name() | Number():
            return True
        case Sum(terms):
            return all(_is_place(term) for term, _ in terms)
        case Call(function, arguments):
            return function in _PLACES and all(map(_is_place, arguments))
        case _:
            return False
