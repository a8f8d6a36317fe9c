"""Rewrite rules as data, how they are proved, and what is known about each."""

from rewright.rules.pattern import (
    Tensor,
    boolean,
    constant,
    floats,
    integers,
    iota,
    operator,
    scalar,
)
from rewright.rules.rule import Rule, rule
from rewright.terms.conditions import AnyOf, AtMost, Different, IsFloor, IsMaximum, IsMinimum, Same
from rewright.terms.parameters import integer, natural, size

__all__ = [
    "AnyOf",
    "AtMost",
    "Different",
    "IsFloor",
    "IsMaximum",
    "IsMinimum",
    "Rule",
    "Same",
    "Tensor",
    "boolean",
    "constant",
    "floats",
    "integer",
    "integers",
    "iota",
    "natural",
    "operator",
    "rule",
    "scalar",
    "size",
]
