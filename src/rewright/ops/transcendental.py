"""Elementwise functions that are nothing more than a name to proofs: equal where their arguments are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ops import special
from rewright.ops.base import Array, Real
from rewright.ops.binary import Binary
from rewright.ops.elementwise import Domain
from rewright.ops.unary import Unary


class Special(Unary):
    """A special function of one operand."""

    __slots__ = ()
    domain: ClassVar[Domain] = "float"
    values: ClassVar[Callable[[Array], Array]]
    """What computes it."""

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return type(self).values(operands[0])


@dataclass(frozen=True, slots=True)
class Erfc(Special):
    """One less the error function."""

    name: ClassVar[str] = "erfc"
    values = staticmethod(special.error_function_complement)


@dataclass(frozen=True, slots=True)
class ErfcScaled(Special):
    """``exp(x^2) erfc(x)``."""

    name: ClassVar[str] = "erfc_scaled"
    values = staticmethod(special.scaled_error_function_complement)


@dataclass(frozen=True, slots=True)
class ErfInverse(Special):
    """The number that x is the error function of; infinite at -1 and 1."""

    name: ClassVar[str] = "erf_inverse"
    values = staticmethod(special.inverse_error_function)


@dataclass(frozen=True, slots=True)
class LogGamma(Special):
    """The logarithm of the size of the gamma function."""

    name: ClassVar[str] = "log_gamma"
    values = staticmethod(special.log_gamma)


@dataclass(frozen=True, slots=True)
class Digamma(Special):
    """The derivative of the logarithm of the gamma function."""

    name: ClassVar[str] = "digamma"
    values = staticmethod(special.digamma)


@dataclass(frozen=True, slots=True)
class BesselI0e(Special):
    """``exp(-|x|)`` times the modified Bessel function of order 0."""

    name: ClassVar[str] = "bessel_i0e"
    values = staticmethod(special.bessel_i0e)


@dataclass(frozen=True, slots=True)
class BesselI1e(Special):
    """``exp(-|x|)`` times the modified Bessel function of order 1."""

    name: ClassVar[str] = "bessel_i1e"
    values = staticmethod(special.bessel_i1e)


@dataclass(frozen=True, slots=True)
class Atan2(Binary):
    """The angle of the point (y, x); operands (x, y), the first one opposite of the angle."""

    name: ClassVar[str] = "atan2"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.arctan2


@dataclass(frozen=True, slots=True)
class Zeta(Binary):
    """Hurwitz's zeta function: the sum of ``(y + k)^-x`` over k from 0 on."""

    name: ClassVar[str] = "zeta"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return special.hurwitz_zeta(operands[0], operands[1])
