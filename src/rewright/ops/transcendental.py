"""Elementwise functions that are nothing more than a name to proofs: equal where their arguments are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rewright.ir.types import TensorType
from rewright.ops import special
from rewright.ops.base import Array, Real
from rewright.ops.binary import Binary
from rewright.ops.elementwise import Domain, Elementwise
from rewright.ops.facts import INF, REAL, UNKNOWN, Facts, between, bounded
from rewright.ops.unary import Unary


class Special(Elementwise):
    """A function that is a name to proofs, and that not every language has."""

    __slots__ = ()


class _OfOne(Special, Unary):
    __slots__ = ()
    domain: ClassVar[Domain] = "float"
    values: ClassVar[Callable[[Array], Array]]
    """What computes it."""

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return type(self).values(operands[0])


@dataclass(frozen=True, slots=True)
class Erfc(_OfOne):
    """One less the error function."""

    name: ClassVar[str] = "erfc"
    values = staticmethod(special.error_function_complement)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        x = operands[0]
        found = between(0.0, 2.0, zero=x.plus_infinity)
        return replace(found, nan=x.nan)


@dataclass(frozen=True, slots=True)
class ErfcScaled(_OfOne):
    """``exp(x^2) erfc(x)``."""

    name: ClassVar[str] = "erfc_scaled"
    values = staticmethod(special.scaled_error_function_complement)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        x = operands[0]
        found = between(0.0, INF, zero=x.plus_infinity)
        return replace(found, nan=x.nan, plus_infinity=x.minus_infinity)


@dataclass(frozen=True, slots=True)
class ErfInverse(_OfOne):
    """The number that x is the error function of; infinite at -1 and 1."""

    name: ClassVar[str] = "erf_inverse"
    needs: ClassVar[str] = "its argument lies between -1 and 1"
    values = staticmethod(special.inverse_error_function)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        x = operands[0]
        if x.low >= -1 and x.high <= 1 and x.is_finite:
            return replace(REAL, plus_infinity=x.contains(1), minus_infinity=x.contains(-1))
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class LogGamma(_OfOne):
    """The logarithm of the size of the gamma function."""

    name: ClassVar[str] = "log_gamma"
    needs: ClassVar[str] = "its argument is positive"
    values = staticmethod(special.log_gamma)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        x = operands[0]
        return REAL if x.is_positive and x.is_finite else UNKNOWN


@dataclass(frozen=True, slots=True)
class Digamma(_OfOne):
    """The derivative of the logarithm of the gamma function."""

    name: ClassVar[str] = "digamma"
    needs: ClassVar[str] = "its argument is positive"
    values = staticmethod(special.digamma)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        x = operands[0]
        return REAL if x.is_positive and x.is_finite else UNKNOWN


@dataclass(frozen=True, slots=True)
class BesselI0e(_OfOne):
    """``exp(-|x|)`` times the modified Bessel function of order 0."""

    name: ClassVar[str] = "bessel_i0e"
    values = staticmethod(special.bessel_i0e)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        (x,) = operands
        found = between(0.0, 1.0, zero=x.may_be_infinite)
        return replace(found, nan=x.nan or x.may_be_infinite)


@dataclass(frozen=True, slots=True)
class BesselI1e(_OfOne):
    """``exp(-|x|)`` times the modified Bessel function of order 1."""

    name: ClassVar[str] = "bessel_i1e"
    values = staticmethod(special.bessel_i1e)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return bounded(operands[0], -1.0, 1.0, nan_at_infinity=True)


@dataclass(frozen=True, slots=True)
class Atan2(Special, Binary):
    """The angle of the point (y, x); operands (x, y), the first one opposite of the angle."""

    name: ClassVar[str] = "atan2"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.arctan2

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        end = math.nextafter(math.pi, 4)
        return replace(between(-end, end), nan=any(x.nan for x in operands))


@dataclass(frozen=True, slots=True)
class Zeta(Special, Binary):
    """Hurwitz's zeta function: the sum of ``(y + k)^-x`` over k from 0 on."""

    name: ClassVar[str] = "zeta"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return special.hurwitz_zeta(operands[0], operands[1])
