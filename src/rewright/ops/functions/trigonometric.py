"""Sines and angles."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rewright.ops.facts import Facts, between, bounded
from rewright.ops.functions import digits
from rewright.ops.functions.record import (
    EVERYWHERE,
    Code,
    Curve,
    Domain,
    Operands,
    ScalarFunction,
    Triton,
    Values,
    laws,
    transfer,
)

_NAN = math.nan
_FINITE = Domain("its argument is not infinite", ())

SINE = ScalarFunction(
    name="sine",
    operands=Operands(1, "float"),
    values=Values(np.sin, exact=None, digits=digits.sine, definition=None, jumps="nowhere"),
    facts=transfer(bounded, -1.0, 1.0, nan_at_infinity=True),
    domain=_FINITE,
    curve=Curve(_NAN, _NAN, "no", "odd", at_zero=0.0, root=None),
    laws=laws("finite", "opaque", "nan"),
    code=Code("std::sin({0})", Triton("tl.sin({0})", ""), "sin", "sine", cost=20, infix=None),
)
COSINE = ScalarFunction(
    name="cosine",
    operands=Operands(1, "float"),
    values=Values(np.cos, exact=None, digits=digits.cosine, definition=None, jumps="nowhere"),
    facts=transfer(bounded, -1.0, 1.0, nan_at_infinity=True),
    domain=_FINITE,
    curve=Curve(_NAN, _NAN, "no", "even", at_zero=1.0, root=None),
    laws=laws("finite", "opaque", "nan"),
    code=Code("std::cos({0})", Triton("tl.cos({0})", ""), "cos", "cosine", cost=20, infix=None),
)


def _angle(y: Facts, x: Facts) -> Facts:
    end = math.nextafter(math.pi, 4)
    return replace(between(-end, end), nan=y.nan or x.nan)


ATAN2 = ScalarFunction(
    name="atan2",
    operands=Operands(2, "float"),
    values=Values(np.arctan2, exact=None, digits=None, definition=None, jumps="nowhere"),
    facts=transfer(_angle),
    domain=EVERYWHERE,
    curve=None,
    laws=laws("finite", "opaque", "nan"),
    code=Code(None, None, torch="atan2", hlo="atan2", cost=40, infix=None),
)
FUNCTIONS = (SINE, COSINE, ATAN2)
