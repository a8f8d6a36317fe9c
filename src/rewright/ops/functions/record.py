"""What a scalar function is: one record with every facet that some part of the package reads.

A record has no defaults. A facet that a function has not is an explicit None, whose meaning stands beside the facet:
it always means *not known* or *not offered*, and never that something is safe, finite or cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rewright.ir.types import DType
from rewright.ops.facts import UNKNOWN, Facts
from rewright.ops.functions.numerics import Array
from rewright.terms.scalar import Apply, Fixed, Read, Scalar

Dtypes = Literal["float", "number", "logical", "any"]
"""Which dtypes the operands may have; logical: booleans and integers."""
Direction = Literal["EQ", "NE", "LT", "LE", "GT", "GE"]
Sort = Literal["finite", "extended", "partial"]
"""What a value may be: a number; a number or one of the two infinities; or these or not a number."""
Transfer = Callable[[Sequence[Facts], DType], Facts]
"""From what the arguments may be, and the dtype of the result, to what the result may be."""
Trait = Literal["commutative", "exact", "opaque", "whole", "keeps whole", "nan"]
"""What proofs may use of a function; what is not claimed is not used.

- commutative: ``f(x, y) = f(y, x)``, in floats too;
- exact: it rounds nothing, so its laws hold of floats;
- opaque: it is a name, so that equal arguments give equal values, and nothing else is known;
- whole: its values are integers;
- keeps whole: an integer is its own value;
- nan: it is NaN where an argument is.
"""


@dataclass(frozen=True, slots=True)
class Operands:
    """How many arguments there are, and of which dtypes, which is the same for all."""

    count: int
    dtypes: Dtypes


@dataclass(frozen=True, slots=True)
class Values:
    """How values are computed."""

    numpy: Callable[..., Array]
    """On arrays, in their dtype."""
    exact: Callable[..., Any] | None
    """On Python's numbers, where fractions give fractions; None: values are irrational in general."""
    digits: Callable[..., Any] | None
    """On a ``decimal.Context`` and decimals, to the digits of the context; raises signals of ``decimal`` where there is
    no value. None: by the definition, or else exactly, or else not known to more than 16 digits."""
    definition: Scalar | None
    """The function by simpler ones, over the reals; None: proofs have laws for it, or know its name alone."""
    jumps: Literal["nowhere", "zero", "halves", "everywhere"]
    """Where it jumps, or its domain ends, so that rounding an argument matters: at zero, at halves and integers, or at
    numbers of all sizes."""


@dataclass(frozen=True, slots=True)
class Bound:
    """``argument DIRECTION value``: that argument 0 is ``GT`` zero, for example."""

    argument: int
    direction: Direction
    value: float


@dataclass(frozen=True, slots=True)
class Domain:
    """Where a function of finite arguments is a real number."""

    needs: str
    """A sentence about the arguments, which reports show."""
    bounds: tuple[Bound, ...]
    """Bounds that suffice."""


EVERYWHERE = Domain("its result is a real number", ())
"""Of numbers it is a number."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The graph of a function of one real number."""

    at_minus: float | None
    """The value at minus infinity: NaN where it has none, None where libraries do not agree, so that it is unknown."""
    at_plus: float | None
    """The value at plus infinity, in the same way."""
    slope: Literal["increasing", "nondecreasing", "decreasing", "no"]
    """The sign of the derivative over the whole domain, infinities included; increasing and decreasing are strict."""
    parity: Literal["even", "odd", "none"]
    """``f(-x)`` is ``f(x)``, or ``-f(x)``; none: nothing is claimed."""
    at_zero: float | None
    """The value at zero, where a float holds it; None: there is none, or none that proofs may use."""
    root: float | None
    """The one argument at which it is zero, where there is one and a float holds it, else None."""

    def at_infinity(self, sign: int) -> float | None:
        """The value at an infinity with a sign."""
        return self.at_plus if sign > 0 else self.at_minus


@dataclass(frozen=True, slots=True)
class Laws:
    """What proofs may use."""

    sort: Sort
    """What it is of finite arguments inside of its domain, which proofs require to be met."""
    traits: frozenset[Trait]


@dataclass(frozen=True, slots=True)
class Triton:
    """An expression of Triton, and the source of the function in it that Triton has not (else empty)."""

    text: str
    source: str
    error: str | None = None
    """What the source is off by over real numbers, or nothing; None where proofs read it as what it computes."""


@dataclass(frozen=True, slots=True)
class Code:
    """The function in other languages; expressions have ``{0}``, ``{1}``, ... in the place of arguments.

    None: the language has no such function; who asks for it gets an error, or leaves it to a library.
    """

    cpp: str | None
    triton: Triton | None
    torch: str | None
    """The name of the function of torch, on all dtypes that the operands may have."""
    hlo: str | None
    """The opcode of StableHLO and HLO."""
    cost: int
    """Operations for one value, where a sum is one; kernels keep the values of what costs more."""
    infix: str | None
    """How Python writes it, for torch; None: as a call of ``torch``."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """One function of numbers, by the name that denotations have for it, with every facet."""

    name: str
    operands: Operands
    values: Values
    facts: Transfer
    domain: Domain
    curve: Curve | None
    """None for a function of several arguments, or whose values are no numbers."""
    laws: Laws
    code: Code

    def has(self, trait: Trait) -> bool:
        """Whether proofs may use a trait of it."""
        return trait in self.laws.traits

    @property
    def is_increasing(self) -> bool:
        """Whether it increases strictly over all reals and both infinities, where it has values too."""
        curve = self.curve
        if curve is None or curve.slope != "increasing" or curve.at_minus is None or curve.at_plus is None:
            return False
        return curve.at_minus < curve.at_plus

    @property
    def is_nonnegative(self) -> bool:
        """Whether no number that it gives is below zero, whatever its one argument is."""
        return self.curve is not None and self.facts([UNKNOWN], DType.F64).is_nonnegative

    @property
    def in_torch(self) -> str | None:
        """An expression of Python that calls torch; None where torch has no such function."""
        places = ", ".join(f"{{{k}}}" for k in range(self.operands.count))
        name = self.code.torch
        return self.code.infix or (None if name is None else f"torch.{name}({places})")


def laws(sort: Sort, *traits: Trait) -> Laws:
    """Laws, with traits as they come."""
    return Laws(sort, frozenset(traits))


def transfer(function: Callable[..., Facts], *fixed: Any, **options: Any) -> Transfer:
    """A transfer function of the arguments' facts alone, which ``fixed`` and ``options`` follow."""
    return lambda operands, _: function(*operands, *fixed, **options)


def infix(symbol: str, torch: str | None, hlo: str | None, cost: int) -> Code:
    """What C++, Triton and Python write between two arguments."""
    text = f"({{0}} {symbol} {{1}})"
    return Code(text, Triton(text, ""), torch, hlo, cost, text)


X: Scalar = Read(0, ())
"""The argument, in definitions."""


def call(function: str, *arguments: Scalar | float) -> Scalar:
    """A function of scalars and numbers, in definitions."""
    return Apply(function, tuple(Fixed(float(a)) if isinstance(a, int | float) else a for a in arguments))
