"""Which normal forms terms are brought to, beside the usual one, and what a store asks of those who know their laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewright.claims.language import Addend
    from rewright.lifting.terms.store import Operand, Terms


@dataclass(frozen=True)
class Forms:
    """Normal forms that most programs do not need, and that would only be slower for them."""

    products: bool = False
    """Whether sums that ranks make in other steps are looked for as sums of products."""
    quotients: bool = False
    """Whether exponentials of differences are quotients (:mod:`rewright.lifting.recognition.shifts`)."""
    plain: bool = False
    """Whether an index of one value is never read, on either side: rows that stand alone are at known places."""
    data: bool = False
    """Whether a test is looked for in what is read at data, too: each rank has the experts that it owns, say."""


USUAL = Forms()


@dataclass(frozen=True)
class Rewrites:
    """What a store asks while it makes terms; without them it keeps what it is given."""

    instance: Callable[[Terms, Addend], Addend | None] = lambda terms, addend: None
    """Which term of the sequential program a new one of the ranks is an instance of, if any."""
    cancel: Callable[[Terms, list[Operand]], list[Operand]] = lambda terms, factors: factors
    """What is left of the factors of a product."""
    is_finite: Callable[[Terms, Operand], bool] = lambda terms, operand: False
    """Whether what may be infinite elsewhere is finite where it is read."""
