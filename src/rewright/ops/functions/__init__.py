"""Scalar functions: one record each, with everything that any part of the package knows of it.

Read ``record.py`` first: it says what a record holds. The records are in files by theme, and ``FUNCTIONS`` has them
all by the name that denotations use. ``numerics``, ``digits`` and ``intervals`` compute the longer facets: values on
arrays, values to fifty digits, and what results may be. Conversions (``convert_f32``) have no record: each has a dtype
in its name, and is read from that.
"""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ops.functions import arithmetic, logic, order, powers, random, rounding, special, transcendental
from rewright.ops.functions.record import ScalarFunction

_THEMES = (arithmetic, logic, order, powers, random, rounding, special, transcendental)
_RECORDS = [value for theme in _THEMES for value in vars(theme).values() if isinstance(value, ScalarFunction)]
FUNCTIONS: Mapping[str, ScalarFunction] = {f.name: f for f in (*_RECORDS, *order.COMPARISONS.values())}
"""Every scalar function by its name."""

__all__ = ["FUNCTIONS", "ScalarFunction"]
