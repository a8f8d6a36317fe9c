"""Error, gamma, Bessel and zeta functions, most of which proofs know by name alone and few languages have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rewright.ir.types import DType
from rewright.ops.facts import INF, REAL, UNKNOWN, Facts, bounded_facts, facts_between, increasing, of_dtype
from rewright.ops.functions import digits, numerics
from rewright.ops.functions.record import (
    EVERYWHERE,
    Bound,
    Code,
    Curve,
    Domain,
    Operands,
    ScalarFunction,
    Triton,
    Values,
    X,
    call,
    laws,
    transfer,
)

_NAN = math.nan

ERF = ScalarFunction(
    name="erf",
    operands=Operands(1, "float"),
    values=Values(numerics.error_function, exact=None, digits=digits.error_function, definition=None, jumps="nowhere"),
    facts=transfer(increasing, math.erf, at_minus=-1.0, at_plus=1.0),
    domain=EVERYWHERE,
    curve=Curve(-1.0, 1.0, "increasing", "odd", at_zero=0.0, root=0.0),
    laws=laws("finite", "opaque", "nan"),
    code=Code("erf_({0})", Triton("tl.erf({0})", ""), "erf", "erf", cost=20, infix=None),
)


def _complement(x: Facts) -> Facts:
    return replace(facts_between(0.0, 2.0, zero=x.plus_infinity), nan=x.nan)


_REST = call("subtract", 1, call("erf", X))
ERFC = ScalarFunction(
    name="erfc",
    operands=Operands(1, "float"),
    values=Values(
        numerics.error_function_complement,
        exact=None,
        digits=None,
        definition=_REST,
        jumps="nowhere",
    ),
    facts=transfer(_complement),
    domain=EVERYWHERE,
    curve=Curve(2.0, 0.0, "decreasing", "none", at_zero=1.0, root=None),
    laws=laws("finite", "nan"),
    code=Code(None, None, torch="erfc", hlo=None, cost=30, infix=None),
)


def _scaled_complement(x: Facts) -> Facts:
    return replace(facts_between(0.0, INF, zero=x.plus_infinity), nan=x.nan, plus_infinity=x.minus_infinity)


ERFC_SCALED = ScalarFunction(
    name="erfc_scaled",
    operands=Operands(1, "float"),
    values=Values(numerics.scaled_error_function_complement, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_scaled_complement),
    domain=EVERYWHERE,
    curve=Curve(INF, 0.0, "decreasing", "none", at_zero=1.0, root=None),
    laws=laws("finite", "opaque", "nan"),
    code=Code(None, None, torch="special.erfcx", hlo=None, cost=60, infix=None),
)


def _inverse(x: Facts) -> Facts:
    if x.low >= -1 and x.high <= 1 and x.is_finite:
        return replace(REAL, plus_infinity=x.contains(1), minus_infinity=x.contains(-1))
    return UNKNOWN


ERF_INVERSE = ScalarFunction(
    name="erf_inverse",
    operands=Operands(1, "float"),
    values=Values(numerics.inverse_error_function, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_inverse),
    domain=Domain("its argument lies between -1 and 1", (Bound(0, "GT", -1.0), Bound(0, "LT", 1.0))),
    curve=Curve(_NAN, _NAN, "increasing", "odd", at_zero=0.0, root=0.0),
    laws=laws("partial", "opaque", "nan"),
    code=Code(None, None, torch="erfinv", hlo=None, cost=80, infix=None),
)
_POSITIVE = Domain("its argument is positive", (Bound(0, "GT", 0.0),))


def _real_of_positive(x: Facts) -> Facts:
    return REAL if x.is_positive and x.is_finite else UNKNOWN


LOG_GAMMA = ScalarFunction(
    name="log_gamma",
    operands=Operands(1, "float"),
    values=Values(numerics.log_gamma, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_real_of_positive),
    domain=_POSITIVE,
    curve=Curve(None, INF, "no", "none", at_zero=INF, root=None),
    laws=laws("extended", "opaque", "nan"),
    code=Code(None, None, torch="lgamma", hlo=None, cost=60, infix=None),
)
DIGAMMA = ScalarFunction(
    name="digamma",
    operands=Operands(1, "float"),
    values=Values(numerics.digamma, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_real_of_positive),
    domain=_POSITIVE,
    # Poles at zero and at the negative integers, where what it is depends on the side.
    curve=Curve(_NAN, INF, "no", "none", at_zero=None, root=None),
    laws=laws("partial", "opaque", "nan"),
    code=Code(None, None, torch="digamma", hlo=None, cost=60, infix=None),
)


def _bessel(x: Facts) -> Facts:
    return replace(facts_between(0.0, 1.0, zero=x.may_be_infinite), nan=x.nan or x.may_be_infinite)


BESSEL_I0E = ScalarFunction(
    name="bessel_i0e",
    operands=Operands(1, "float"),
    values=Values(numerics.bessel_i0e, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_bessel),
    domain=EVERYWHERE,
    curve=Curve(0.0, 0.0, "no", "even", at_zero=1.0, root=None),
    laws=laws("finite", "opaque", "nan"),
    code=Code(None, None, torch="special.i0e", hlo=None, cost=60, infix=None),
)
BESSEL_I1E = ScalarFunction(
    name="bessel_i1e",
    operands=Operands(1, "float"),
    values=Values(numerics.bessel_i1e, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(bounded_facts, -1.0, 1.0, nan_at_infinity=True),
    domain=EVERYWHERE,
    curve=Curve(0.0, 0.0, "no", "odd", at_zero=0.0, root=0.0),
    laws=laws("finite", "opaque", "nan"),
    code=Code(None, None, torch="special.i1e", hlo=None, cost=60, infix=None),
)


def _unknown(_: Sequence[Facts], dtype: DType) -> Facts:
    return of_dtype(dtype)


ZETA = ScalarFunction(
    name="zeta",
    operands=Operands(2, "float"),
    values=Values(numerics.hurwitz_zeta, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=_unknown,
    domain=Domain("its result is a real number", (Bound(0, "GT", 1.0), Bound(1, "GT", 0.0))),
    curve=None,
    laws=laws("partial", "opaque"),
    code=Code(None, None, torch="special.zeta", hlo=None, cost=200, infix=None),
)
