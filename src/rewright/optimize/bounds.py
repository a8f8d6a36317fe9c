"""Bounds of values: intervals of the extended reals, from constants through functions and folds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Node
from rewright.terms.scalar import Apply, Fold, Read, Scalar

INF = math.inf


@dataclass(frozen=True, slots=True)
class Bounds:
    """At least ``low`` and at most ``high``; an infinite bound may be reached where ``infinite`` is set."""

    low: float
    high: float
    infinite: bool

    def __str__(self) -> str:
        left, right = (
            ("[", "]") if self.infinite else ("(" if self.low == -INF else "[", ")" if self.high == INF else "]")
        )
        return f"{left}{self.low:g}, {self.high:g}{right}"


UNKNOWN = Bounds(-INF, INF, False)
"""Any finite number: inputs are taken to be finite."""


def bounds_of(scalar: Scalar | None, node: Node, operands: Sequence[Bounds]) -> Bounds:
    """The bounds of a node's values."""
    if isinstance(node.op, ops.Constant):
        values = [float(v) for v in node.op.values]
        return Bounds(min(values), max(values), any(math.isinf(v) for v in values))
    if isinstance(node.op, ops.Iota):
        size = node.type.shape[node.op.dimension]
        return Bounds(0, size - 1 if isinstance(size, int) else INF, False)
    if scalar is None or not operands:
        return UNKNOWN
    return _bounds(scalar, operands)


def _bounds(value: Scalar, operands: Sequence[Bounds]) -> Bounds:
    if isinstance(value, Read):
        return operands[value.operand]
    if isinstance(value, Fold):
        return _fold(value, _bounds(value.body, operands))
    if isinstance(value, Apply):
        return apply(value.function, [_bounds(a, operands) for a in value.arguments])
    return UNKNOWN


def _fold(value: Fold, body: Bounds) -> Bounds:
    if value.kind in ("maximum", "minimum"):
        return body
    if value.kind == "sum" and isinstance(value.size, int) and not body.infinite:
        return Bounds(value.size * body.low if body.low else 0.0, value.size * body.high if body.high else 0.0, False)
    if value.kind == "sum" and body.low >= 0:
        return Bounds(0.0, INF, body.infinite)
    return UNKNOWN if not body.infinite else Bounds(-INF, INF, True)


def apply(function: str, a: Sequence[Bounds]) -> Bounds:
    """The bounds of a function of bounded values."""
    if function.startswith("convert_"):
        return a[0]
    if function in _RANGES:
        low, high = _RANGES[function]
        return Bounds(low, high, False)
    if function in _MONOTONE:
        change = _MONOTONE[function]
        return Bounds(change(a[0].low), change(a[0].high), a[0].infinite and change(a[0].high) == INF)
    infinite = any(x.infinite for x in a)
    if function == "add":
        return Bounds(a[0].low + a[1].low, a[0].high + a[1].high, infinite) if not _clash(a[0], a[1]) else UNKNOWN
    if function == "subtract":
        return apply("add", [a[0], apply("negate", [a[1]])])
    if function == "negate":
        return Bounds(-a[0].high, -a[0].low, a[0].infinite)
    if function in ("maximum", "minimum"):
        pick = max if function == "maximum" else min
        return Bounds(pick(a[0].low, a[1].low), pick(a[0].high, a[1].high), infinite)
    if function == "select":
        return Bounds(min(a[1].low, a[2].low), max(a[1].high, a[2].high), a[1].infinite or a[2].infinite)
    if function in ("multiply", "divide"):
        return _product(function, a[0], a[1])
    return Bounds(-INF, INF, infinite or function in _WITH_POLES)


def _clash(a: Bounds, b: Bounds) -> bool:
    return math.isnan(a.low + b.low) or math.isnan(a.high + b.high)


def _product(function: str, a: Bounds, b: Bounds) -> Bounds:
    if function == "divide":
        if b.low <= 0 <= b.high:
            return Bounds(0.0 if a.low >= 0 and b.low >= 0 else -INF, INF, True)
        b = Bounds(1 / b.high, 1 / b.low, b.infinite)
    corners = [x * y if x and y else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    return Bounds(min(corners), max(corners), a.infinite or b.infinite)


def _exp(x: float) -> float:
    return INF if x > 700 else math.exp(x)


_RANGES = {
    "tanh": (-1.0, 1.0),
    "logistic": (0.0, 1.0),
    "sine": (-1.0, 1.0),
    "cosine": (-1.0, 1.0),
    "erf": (-1.0, 1.0),
    "erfc": (0.0, 2.0),
    "bessel_i0e": (0.0, 1.0),
    "bessel_i1e": (-1.0, 1.0),
    "sign": (-1.0, 1.0),
}
_WITH_POLES = ("log_gamma", "digamma", "zeta", "erf_inverse", "erfc_scaled")
_MONOTONE: dict[str, Callable[[float], float]] = {
    "exponential": _exp,
    "log": lambda x: -INF if x <= 0 else math.log(x) if x < INF else INF,
    "sqrt": lambda x: math.sqrt(x) if 0 < x < INF else max(x, 0.0),
}
