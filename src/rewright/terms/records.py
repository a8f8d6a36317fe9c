"""What is known of a scalar function of one real number besides its values: one record a function.

Proofs and exact evaluation read the same records. What no record says is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Sort = Literal["finite", "extended", "partial"]
"""What a value may be: a number; a number or one of the two infinities; or these or not a number."""


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """A function of one real: what it is at the infinities, its symmetry, and what it may be of finite arguments.

    ``at_plus`` and ``at_minus`` are its values at the two infinities: NaN where it has none there, and None where
    libraries do not agree, so that it is not known.
    """

    at_plus: float | None
    at_minus: float | None
    parity: Literal["even", "odd", "none"] = "none"
    at_zero: float | None = None
    """Its value at zero, where that is a number that proofs need; odd functions are zero there."""
    sort: Sort = "finite"
    """What it is of a finite argument inside of its domain, which proofs require to be met."""

    def at_infinity(self, sign: int) -> float | None:
        """The value at an infinity with a sign."""
        return self.at_plus if sign > 0 else self.at_minus


_INF, _NAN = math.inf, math.nan

RECORDS: Mapping[str, FunctionRecord] = {
    "abs": FunctionRecord(_INF, _INF, "even"),
    "bessel_i0e": FunctionRecord(0.0, 0.0, "even", 1.0),
    "bessel_i1e": FunctionRecord(0.0, 0.0, "odd"),
    "ceil": FunctionRecord(_INF, -_INF),
    "cosine": FunctionRecord(_NAN, _NAN, "even", 1.0),
    # Poles at zero and at the negative integers, where what it is depends on the side.
    "digamma": FunctionRecord(_INF, _NAN, sort="partial"),
    "erf": FunctionRecord(1.0, -1.0, "odd"),
    "erf_inverse": FunctionRecord(_NAN, _NAN, "odd", sort="partial"),
    "erfc": FunctionRecord(0.0, 2.0),
    "erfc_scaled": FunctionRecord(0.0, _INF),
    "exponential": FunctionRecord(_INF, 0.0),
    "exponential_minus_one": FunctionRecord(_INF, -1.0),
    "floor": FunctionRecord(_INF, -_INF),
    "log": FunctionRecord(_INF, _NAN),
    "log_gamma": FunctionRecord(_INF, None, sort="extended"),
    "log_plus_one": FunctionRecord(_INF, _NAN),
    "logistic": FunctionRecord(1.0, 0.0),
    "negate": FunctionRecord(-_INF, _INF, "odd"),
    "round_nearest_even": FunctionRecord(_INF, -_INF, "odd"),
    "rsqrt": FunctionRecord(0.0, _NAN),
    "sign": FunctionRecord(1.0, -1.0, "odd"),
    "sine": FunctionRecord(_NAN, _NAN, "odd"),
    "sqrt": FunctionRecord(_INF, _NAN),
    "tanh": FunctionRecord(1.0, -1.0, "odd"),
}
"""By the names that denotations use."""
