"""How the state of a running reduction follows others: what kernels hold, and ``derive`` finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright.optimize.scalars.expressions import Expression, contains


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value ``leaf`` made of a sum of the pass: ``sum * count / seen``, or ``sum / weight``."""

    leaf: Expression
    renewed: Expression
    """A placeholder for the next estimate."""
    sum: Expression
    count: float = 1.0
    weight: Expression | None = None
    left: Expression | None = None
    """Of a mean, what is left of an element: ``x - leaf``."""

    @property
    def sums(self) -> tuple[Expression, ...]:
        """The running sums that it is made of."""
        return (self.sum,) if self.weight is None else (self.sum, self.weight)


@dataclass(frozen=True, slots=True)
class Growth:
    """What is added to a state before its factor: ``each`` for all that was seen, and multiples of other states.

    Coefficients are over the old and new values of what is followed, as the factor is.
    """

    each: Expression | None
    others: tuple[tuple[Expression, Expression], ...]
    """Coefficients, each with the sum of the same pass that it multiplies."""
    estimates: tuple[Estimate, ...] = ()
    """What is followed besides extrema."""

    @property
    def counts(self) -> bool:
        """Whether it counts the elements that were seen."""
        return self.each is not None or any(e.weight is None for e in self.estimates)

    @property
    def coefficients(self) -> tuple[Expression, ...]:
        """What other states, and the number of elements, are multiplied by."""
        return (*(() if self.each is None else (self.each,)), *(coefficient for coefficient, _ in self.others))

    @staticmethod
    def following(depends: Sequence[Expression]) -> list[Expression]:
        """Of what the state depends on, the extrema; the others are sums."""
        return [e for e in depends if e.bound is not None and e.bound.kind != "sum"]


@dataclass(frozen=True, slots=True)
class Reset:
    """What every element that was seen adds after the extremum has moved: a constant."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Update:
    """How a state follows the states that it depends on.

    The state is the reduction of ``body``. ``factor`` is an expression over the old values ``depends`` and the new ones
    ``renewed`` (placeholders): the state is multiplied by it, after it has grown by ``growth``. With ``reset``, it
    starts again when an extremum moves; with none of them it depends on no running value. At the end the state is
    multiplied by ``finish``, which does not depend on the lane.
    """

    body: Expression
    depends: tuple[Expression, ...] = ()
    renewed: tuple[Expression, ...] = ()
    factor: Expression | None = None
    finish: Expression | None = None
    reset: Reset | None = None
    growth: Growth | None = None
    undefined: tuple[Expression, ...] = ()
    """The extrema of which the sum is no number while they have seen nothing but infinity: ``exp(s - m)`` is none."""

    @property
    def moves(self) -> tuple[tuple[Expression, Expression], ...]:
        """What the state follows, estimates included, each with its placeholder."""
        followed = () if self.growth is None else self.growth.estimates
        return (*((e.leaf, e.renewed) for e in followed), *zip(self.depends, self.renewed, strict=True))

    @property
    def weights(self) -> tuple[Expression, ...]:
        """The sums of the weights of means that the state follows: there is no such mean, and no state, at zero."""
        followed = () if self.growth is None else self.growth.estimates
        return tuple(dict.fromkeys(e.weight for e in followed if e.weight is not None))

    @property
    def estimated(self) -> bool:
        """Whether the state follows what is known only at the end of the pass, by an estimate."""
        return self.growth is not None and bool(self.growth.estimates)

    @property
    def extrema(self) -> tuple[Expression, ...]:
        """What the state follows by its factor."""
        return () if self.factor is None else tuple(e for e in self.depends if contains(self.factor, e))
