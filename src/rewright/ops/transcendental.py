"""Elementwise functions that few languages have, and that are little more than a name to proofs."""

from __future__ import annotations

from dataclasses import dataclass

from rewright.ops.binary import Binary
from rewright.ops.functions import special, trigonometric
from rewright.ops.unary import Unary


@dataclass(frozen=True, slots=True)
class Erfc(Unary):
    """One less the error function."""

    scalar = special.ERFC


@dataclass(frozen=True, slots=True)
class ErfcScaled(Unary):
    """``exp(x^2) erfc(x)``."""

    scalar = special.ERFC_SCALED


@dataclass(frozen=True, slots=True)
class ErfInverse(Unary):
    """The number that x is the error function of; infinite at -1 and 1."""

    scalar = special.ERF_INVERSE


@dataclass(frozen=True, slots=True)
class LogGamma(Unary):
    """The logarithm of the size of the gamma function."""

    scalar = special.LOG_GAMMA


@dataclass(frozen=True, slots=True)
class Digamma(Unary):
    """The derivative of the logarithm of the gamma function."""

    scalar = special.DIGAMMA


@dataclass(frozen=True, slots=True)
class BesselI0e(Unary):
    """``exp(-|x|)`` times the modified Bessel function of order 0."""

    scalar = special.BESSEL_I0E


@dataclass(frozen=True, slots=True)
class BesselI1e(Unary):
    """``exp(-|x|)`` times the modified Bessel function of order 1."""

    scalar = special.BESSEL_I1E


@dataclass(frozen=True, slots=True)
class Atan2(Binary):
    """The angle of the point (y, x); operands (x, y), the first one opposite of the angle."""

    scalar = trigonometric.ATAN2


@dataclass(frozen=True, slots=True)
class Zeta(Binary):
    """Hurwitz's zeta function: the sum of ``(y + k)^-x`` over k from 0 on."""

    scalar = special.ZETA
