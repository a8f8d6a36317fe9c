"""What is taken for granted where numbers are compared, and the sentences that say so.

    >>> taken_sentences([Taken("folded"), Taken("scalars", (9.999999974752427e-07, 1e-06))])

Rounding, the most negative numbers of types, and numbers that are cut off make one number stand for another: each time
that is a :class:`Taken`, and a verdict states all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rewright.ir.types import DType
from rewright.ops.facts import LARGEST, whole_limit

HIGHEST = -1e4
"""What is above this may be a score, and stands for no infinity."""
ROUNDING = 2.5e-7
"""Numbers this close, relative to their size, are one number that was rounded to single precision."""
ROOTED = 4e-15
"""What a rounded root makes of the number that it is the root of is as close to it, relative to its size."""
MOST = 2e-3
"""Held tables are no farther from computed ones, relative to the largest element."""
FOLDED = "numbers that are computed from numbers alone are what double precision makes of them"
INVERSES = "a quotient by a number is the product with its inverse in double precision, and a rounded 1/n is 1/n"
MASKS = (
    "the most negative numbers of float types, which masks are filled with, stand for -infinity, and every row of a "
    "softmax has an element that is not masked"
)
MOVED = "rounding moved"
"""What assumptions say of tables that one program holds and the other one computes."""
CUT_OFF = "numbers that are cut off to whole ones are exact: {:.17g} stands for {:.17g}"
_SCALARS = "constants that differ by the rounding of single precision are equal: "
_ROOTS = "constants that are rounded roots stand for the roots: "
_HELD = f"tables that one program holds are those that the other computes, which {MOVED} by up to "
_SHOWN = 4

_HALF, _BRAIN, _SINGLE, _DOUBLE = (-LARGEST[kind] for kind in (DType.F16, DType.BF16, DType.F32, DType.F64))
_LOWEST: Mapping[DType, Sequence[float]] = {
    DType.F16: (_HALF,),
    DType.BF16: (_BRAIN,),
    DType.F32: (_SINGLE, _BRAIN),
    DType.F64: (_DOUBLE, _SINGLE, _BRAIN),
}
"""By type its most negative number, and those of types that a mask in this type may be cast to later."""
EVERY_LOWEST = frozenset({_HALF, _BRAIN, _SINGLE, _DOUBLE})

Kind = Literal["cut", "mask", "filling", "folded", "inverse", "scalars", "tables", "root", "moved"]
_KINDS: Sequence[Kind] = get_args(Kind)
"""In the order in which sentences are said."""


@dataclass(frozen=True)
class Taken:
    """One thing that is taken for granted, and the numbers that it is about.

    cut: a number and the whole one that it stands for. filling: the number that stands for minus infinity. scalars: two
    numbers that are one, as it was and as it is put in. root: the rounded root. moved: how far tables are apart.
    """

    kind: Kind
    numbers: tuple[float, ...] = ()


def taken_sentences(taken: Iterable[Taken]) -> tuple[str, ...]:
    """The sentences about all that was taken for granted, in an order that does not depend on theirs."""
    by_kind: dict[Kind, set[tuple[float, ...]]] = {}
    for one in taken:
        by_kind.setdefault(one.kind, set()).add(one.numbers)
    found: list[str] = []
    for kind in _KINDS:
        found += _SENTENCES[kind](sorted(by_kind[kind])) if kind in by_kind else []
    return tuple(found)


def in_order(taken: Iterable[Taken]) -> tuple[Taken, ...]:
    """What was taken for granted, each thing once, in the order in which it is said."""
    return tuple(sorted(set(taken), key=lambda one: (_KINDS.index(one.kind), one.numbers)))


def filling_assumption(value: float) -> str:
    """What is assumed of a number that stands for minus infinity. Certificates hold this very sentence."""
    return (
        f"{value:g}, which masks are filled with before a softmax, stands for -infinity: no score is as far from nought"
    )


def as_infinity(value: float | int | bool, dtype: DType) -> float | int | bool:
    """Minus infinity for the most negative number of a float type, and else the value."""
    lowest = _LOWEST.get(dtype, ())
    is_lowest = isinstance(value, float) and any(abs(value / low - 1) < 1e-6 for low in lowest)
    return -math.inf if is_lowest else value


def are_close(a: float, b: float) -> bool:
    """Whether two numbers are one that was rounded to single precision."""
    return math.isfinite(b) and abs(a - b) <= ROUNDING * max(abs(a), abs(b))


def half_step(dtype: DType) -> float:
    """Half a step of a float type, relative to the number."""
    return 1.0 / whole_limit(dtype)


def scalars_sentence(pairs: Sequence[tuple[float, ...]]) -> str:
    """What is said of pairs of numbers that are one."""
    shown = ", ".join(f"{a:.9g} and {b:.9g}" for a, b in pairs[:_SHOWN])
    return _SCALARS + shown + (" and more" if len(pairs) > _SHOWN else "")


def roots_sentence(values: Iterable[float]) -> str:
    """What is said of rounded roots."""
    return _ROOTS + ", ".join(f"{value:.9g}" for value in sorted(values)[:_SHOWN])


def moved_sentence(farthest: float) -> str:
    """What is said of tables that are no farther apart."""
    return f"{_HELD}{farthest:.1e}"


TABLES = "tables of constants that differ by the rounding of single precision are equal"
"""What is said of tables that are one but for rounding."""


def _always(*sentences: str) -> Callable[[Sequence[tuple[float, ...]]], list[str]]:
    return lambda numbers: list(sentences)


_SENTENCES: Mapping[Kind, Callable[[Sequence[tuple[float, ...]]], list[str]]] = {
    "cut": lambda pairs: [CUT_OFF.format(*pair) for pair in pairs],
    "mask": _always(MASKS),
    "filling": lambda values: [filling_assumption(value) for (value,) in values],
    "folded": _always(FOLDED),
    "inverse": _always(INVERSES),
    "scalars": lambda pairs: [scalars_sentence(pairs)],
    "tables": _always(TABLES),
    "root": lambda values: [roots_sentence(value for (value,) in values)],
    "moved": lambda values: [moved_sentence(max(value for (value,) in values))],
}
