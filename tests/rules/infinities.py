"""Random rules that look right over numbers, of values that may be infinite, not numbers, or of nothing.

A program is a tree of names and operands, so that it is built once as a pattern and evaluated here on its own, over
extended reals: floats that are kept from rounding and from overflow, so that an infinity is one that was meant.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.rules import Rule, Tensor, constant, floats, iota, rule, size
from rewright.rules.pattern import absolute, apply, clamp, exp, log, maximum, minimum, select, sigmoid, sqrt, tanh

n = size("n")
INF, NAN = math.inf, math.nan
Values = list[float]


class Skip(Exception):
    """A point at which rounding or an ambiguous sign of zero would decide."""


@dataclass(frozen=True)
class Program:
    """An operation applied to programs; ``number`` is a constant or where a mask ends."""

    name: str
    operands: tuple[Program, ...] = ()
    number: float = 0.0
    wide: bool = True
    """Whether it is a vector of n elements, else it is a scalar."""

    def __str__(self) -> str:
        inside = [str(operand) for operand in self.operands]
        inside += [f"{self.number:g}"] if self.name in ("constant", "masked", "power") else []
        return f"{self.name}({', '.join(inside)})"


# --- as a pattern

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "negate": lambda x: -x,
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "abs": absolute,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "floor": lambda x: apply(ops.Floor(), x),
    "sign": lambda x: apply(ops.Sign(), x),
    "sine": lambda x: apply(ops.Sine(), x),
    "erf": lambda x: apply(ops.Erf(), x),
    "expm1": lambda x: apply(ops.ExponentialMinusOne(), x),
    "log1p": lambda x: apply(ops.LogPlusOne(), x),
}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": maximum,
    "minimum": minimum,
}
_KINDS = {"sum": "sum", "max": "maximum", "min": "minimum", "product": "product"}


def pattern(program: Program) -> Tensor:
    """The program as an expression of rules."""
    shape = (n,) if program.wide else ()
    inside = [pattern(operand) for operand in program.operands]
    name = program.name
    if name in ("x", "y"):
        return floats(name, n)
    if name == "constant":
        return constant(program.number, shape)
    if name == "masked":
        return select(iota((n,)) < int(program.number), *inside)
    if name == "where":
        return select(inside[0] < inside[1], inside[2], inside[3])
    if name == "where finite":
        return select(apply(ops.IsFinite(), inside[0]), inside[1], inside[2])
    if name == "power":
        return apply(ops.Power(), inside[0], constant(program.number, shape))
    if name == "clamp":
        return clamp(*inside)
    if name == "wide":
        return inside[0].broadcast((n,))
    if name in _KINDS:
        return inside[0].reduce(_KINDS[name], 0)
    if name.startswith("empty "):
        return inside[0].slice(0, 0).reduce(_KINDS[name.removeprefix("empty ")], 0)
    return _UNARY[name](*inside) if name in _UNARY else _BINARY[name](*inside)


# --- as numbers

_LARGE, _SMALL = 1e6, 1e-6


def values_of(program: Program, inputs: dict[str, Values], length: int) -> Values:
    """The elements of a program; raises Skip where rounding would decide."""
    found = _values_of(program, inputs, length)
    for value in found:
        if math.isfinite(value) and value and not _SMALL < abs(value) < _LARGE:
            raise Skip
    return found


def _values_of(program: Program, inputs: dict[str, Values], length: int) -> Values:
    name = program.name
    count = length if program.wide else 1
    if name in inputs:
        return inputs[name]
    if name == "constant":
        return [program.number] * count
    if name == "masked":
        chosen, other = (values_of(operand, inputs, length) for operand in program.operands)
        return [chosen[i] if i < program.number else other[i] for i in range(count)]
    if name in ("where", "where finite"):
        return _chosen(program, inputs, length)
    inside = [values_of(operand, inputs, length) for operand in program.operands]
    if name == "wide":
        return inside[0] * length
    if name in _KINDS:
        return [_reduced(name, inside[0])]
    if name.startswith("empty "):
        return [_reduced(name.removeprefix("empty "), [])]
    if name == "power":
        return [_power(value, program.number) for value in inside[0]]
    if name == "clamp":
        low, middle, high = inside
        return [_extreme(min, _extreme(max, a, b), c) for a, b, c in zip(middle, low, high, strict=True)]
    if name in _OF_ONE:
        return [_OF_ONE[name](value) for value in inside[0]]
    return [_OF_TWO[name](left, right) for left, right in zip(*inside, strict=True)]


def _chosen(program: Program, inputs: dict[str, Values], length: int) -> Values:
    tested = program.operands[:2] if program.name == "where" else program.operands[:1]
    first = [values_of(operand, inputs, length) for operand in tested]
    found: Values = []
    for place in range(length if program.wide else 1):
        if program.name == "where":
            holds = _less(first[0][place], first[1][place])
        elif math.isnan(first[0][place]) and _is_ambiguous(program.operands[0]):
            raise Skip
        else:
            holds = math.isfinite(first[0][place])
        # Only the one chosen needs a value.
        found.append(values_of(program.operands[-2 if holds else -1], inputs, length)[place])
    return found


def _is_ambiguous(program: Program) -> bool:
    return program.name == "divide" or any(_is_ambiguous(operand) for operand in program.operands)


def _less(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        raise Skip
    if left != right and abs(left - right) < _SMALL:
        raise Skip
    return left < right


def _extreme(function: Callable[[float, float], float], left: float, right: float) -> float:
    return NAN if math.isnan(left) or math.isnan(right) else function(left, right)


def _reduced(name: str, values: Sequence[float]) -> float:
    total = {"sum": 0.0, "product": 1.0, "max": -INF, "min": INF}[name]
    step = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum"}[name]
    for value in values:
        total = _OF_TWO[step](total, value)
    return total


def _power(base: float, exponent: float) -> float:
    if exponent == 0:
        return 1.0
    if math.isnan(base) or (not base and exponent < 0):
        return NAN
    if base < 0 and exponent != int(exponent):
        if math.isinf(base):
            raise Skip
        return NAN
    return math.pow(base, exponent)


def _multiplied(left: float, right: float) -> float:
    return left * right if not (math.isinf(left) or math.isinf(right)) or (left and right) else NAN


def _divided(left: float, right: float) -> float:
    return NAN if not right else left / right


def _limited(function: Callable[[float], float], low: float = -INF) -> Callable[[float], float]:
    """A function below whose domain is no number; close to its end rounding would decide."""

    def limited(value: float) -> float:
        if value < low or math.isnan(value):
            return NAN
        return function(value)

    return limited


def _exp(value: float) -> float:
    if math.isfinite(value) and abs(value) > 20:
        raise Skip
    return math.exp(value)


def _log(value: float) -> float:
    return -INF if not value else math.log(value)


def _floor(value: float) -> float:
    if math.isfinite(value) and value != round(value) and abs(value - round(value)) < _SMALL:
        raise Skip
    return math.floor(value) if math.isfinite(value) else value


def _sign(value: float) -> float:
    return NAN if math.isnan(value) else float((value > 0) - (value < 0))


_OF_ONE: dict[str, Callable[[float], float]] = {
    "negate": operator.neg,
    "exp": _exp,
    "expm1": lambda x: _exp(x) - 1,
    "log": _limited(_log, 0.0),
    "log1p": _limited(lambda x: _log(x + 1), -1.0),
    "sqrt": _limited(math.sqrt, 0.0),
    "abs": abs,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + _exp(-x)),
    "floor": _floor,
    "sign": _sign,
    "sine": lambda x: math.sin(x) if math.isfinite(x) else NAN,
    "erf": math.erf,
}
_OF_TWO: dict[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": _multiplied,
    "divide": _divided,
    "maximum": lambda x, y: _extreme(max, x, y),
    "minimum": lambda x, y: _extreme(min, x, y),
}


# --- random rules

_POINTS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 2.0, 2.5)


class Rules:
    """A source of rules; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def rule(self, name: str) -> tuple[Rule, Program, Program]:
        """A law of numbers about random terms."""
        while True:
            wide = self.random.random() < 0.7
            t, s = self.term(self.random.randint(1, 3), wide), self.term(self.random.randint(0, 1), wide)
            left, right = self.random.choice(LAWS)(t, s)
            if self.random.random() < 0.25:
                left, right = (self.wrapped(side) for side in (left, right))
            found = rule(name, f"{left} = {right}", pattern(left), pattern(right))
            return found, left, right

    def wrapped(self, program: Program) -> Program:
        """The same reduction of both sides: the choice is the same for the second call."""
        return Program("sum", (program,), wide=False) if program.wide else Program("wide", (program,))

    def term(self, depth: int, wide: bool) -> Program:
        draw = self.random
        if depth == 0:
            choice = draw.random()
            if not wide:
                return Program(draw.choice(tuple(_KINDS)), (self.term(0, True),), wide=False)
            if choice < 0.6:
                return Program(draw.choice("xy"))
            return _constant(draw.choice((INF, -INF, -INF, 0.0, 1.0, 2.0, -1.0)), True)
        kind = draw.random()
        if kind < 0.3:
            return Program(draw.choice(tuple(_UNARY)), (self.term(depth - 1, wide),), wide=wide)
        if kind < 0.5:
            inside = self.term(depth - 1, wide), self.term(draw.randint(0, depth - 1), wide)
            return Program(draw.choice(tuple(_BINARY)), inside, wide=wide)
        if kind < 0.6:
            return Program("power", (self.term(depth - 1, wide),), draw.choice((0.0, 2.0, 3.0, -1.0, 0.5)), wide)
        if kind < 0.68:
            tested, arms = self.term(0, wide), (self.term(depth - 1, wide), _constant(draw.choice((0.0, INF)), wide))
            name = draw.choice(("where", "where finite"))
            return Program(name, (tested, *([_constant(0.0, wide)] if name == "where" else []), *arms), wide=wide)
        if not wide:
            name = draw.choice(tuple(_KINDS))
            empty = "empty " if draw.random() < 0.2 else ""
            return Program(empty + name, (self.term(depth - 1, True),), wide=False)
        if kind < 0.85:
            other = _constant(draw.choice((-INF, -INF, INF, 0.0)), True)
            return Program("masked", (self.term(depth - 1, True), other), float(draw.choice((0, 1, 2))))
        return Program("wide", (self.term(depth, False),))


def _constant(value: float, wide: bool) -> Program:
    return Program("constant", (), value, wide)


def _apply(name: str, *operands: Program) -> Program:
    return Program(name, operands, wide=operands[0].wide)


def _to(name: str, value: float) -> Callable[[Program, Program], tuple[Program, Program]]:
    """The law that an operation of a term with itself is a number."""
    return lambda t, s: (_apply(name, t, t), _constant(value, t.wide))


def _with(name: str, value: float, result: float | None) -> Callable[[Program, Program], tuple[Program, Program]]:
    """The law that an operation of a term with a number is that term, or a number."""

    def law(t: Program, s: Program) -> tuple[Program, Program]:
        return _apply(name, t, _constant(value, t.wide)), t if result is None else _constant(result, t.wide)

    return law


LAWS: tuple[Callable[[Program, Program], tuple[Program, Program]], ...] = (
    _to("subtract", 0.0),
    _to("divide", 1.0),
    _with("multiply", 0.0, 0.0),
    _with("multiply", 1.0, None),
    _with("add", 0.0, None),
    _with("add", INF, INF),
    _with("maximum", -INF, None),
    _with("minimum", INF, None),
    _with("maximum", INF, INF),
    lambda t, s: (_apply("subtract", _apply("add", t, s), s), t),
    lambda t, s: (_apply("divide", _apply("multiply", t, s), s), t),
    lambda t, s: (_apply("multiply", _apply("divide", t, s), s), t),
    lambda t, s: (_apply("add", _apply("maximum", t, s), _apply("minimum", t, s)), _apply("add", t, s)),
    lambda t, s: (_apply("add", t, s), _apply("add", s, t)),
    lambda t, s: (_apply("multiply", _apply("exp", t), _apply("exp", _apply("negate", t))), _constant(1.0, t.wide)),
    lambda t, s: (_apply("log", _apply("exp", t)), t),
    lambda t, s: (_apply("exp", _apply("log", t)), t),
    lambda t, s: (_apply("exp", _apply("subtract", t, s)), _apply("divide", _apply("exp", t), _apply("exp", s))),
    lambda t, s: (_apply("exp", _apply("add", t, s)), _apply("multiply", _apply("exp", t), _apply("exp", s))),
    lambda t, s: (_apply("log", _apply("multiply", t, s)), _apply("add", _apply("log", t), _apply("log", s))),
    lambda t, s: (_apply("multiply", _apply("sqrt", t), _apply("sqrt", t)), t),
    lambda t, s: (_apply("sqrt", _apply("multiply", t, t)), _apply("abs", t)),
    lambda t, s: (Program("power", (t,), 0.0, t.wide), _constant(1.0, t.wide)),
    lambda t, s: (Program("power", (t,), 2.0, t.wide), _apply("multiply", t, t)),
    lambda t, s: (Program("power", (t,), 0.5, t.wide), _apply("sqrt", t)),
    lambda t, s: (Program("power", (t,), -1.0, t.wide), _apply("divide", _constant(1.0, t.wide), t)),
    lambda t, s: (_apply("subtract", _apply("floor", t), _apply("floor", t)), _constant(0.0, t.wide)),
    lambda t, s: (_apply("tanh", _apply("negate", t)), _apply("negate", _apply("tanh", t))),
    lambda t, s: (_apply("sine", _apply("negate", t)), _apply("negate", _apply("sine", t))),
    lambda t, s: (_apply("erf", _apply("negate", t)), _apply("negate", _apply("erf", t))),
    lambda t, s: (_apply("sigmoid", t), _apply("divide", _apply("exp", t), _apply("add", _one(t), _apply("exp", t)))),
    lambda t, s: (_apply("multiply", _apply("sign", t), _apply("abs", t)), t),
    lambda t, s: (_apply("multiply", t, _apply("add", s, _one(t))), _apply("add", _apply("multiply", t, s), t)),
    lambda t, s: (_apply("where finite", t, _apply("subtract", t, t), t), t),
    lambda t, s: (_apply("where finite", t, t, s), t),
    lambda t, s: (_reduced_of("sum", _apply("add", t, s)), _apply("add", _reduced_of("sum", t), _reduced_of("sum", s))),
    lambda t, s: (_reduced_of("sum", _apply("subtract", t, t)), _constant(0.0, False)),
    lambda t, s: (_apply("exp", _reduced_of("sum", t)), _reduced_of("product", _apply("exp", t))),
    lambda t, s: (_apply("negate", _reduced_of("max", t)), _reduced_of("min", _apply("negate", t))),
    lambda t, s: (_reduced_of("max", _apply("exp", t)), _apply("exp", _reduced_of("max", t))),
    lambda t, s: (_apply("subtract", _reduced_of("max", t), _reduced_of("max", t)), _constant(0.0, False)),
    lambda t, s: (_apply("divide", _reduced_of("product", t), _reduced_of("product", t)), _one(_reduced_of("sum", t))),
    lambda t, s: (_softmax(t, t), _softmax(t, _constant(0.0, True) if t.wide else _constant(0.0, False))),
)


def _one(t: Program) -> Program:
    return _constant(1.0, t.wide)


def _reduced_of(name: str, t: Program) -> Program:
    return Program(name, (t if t.wide else Program("wide", (t,)),), wide=False)


def _softmax(t: Program, shift: Program) -> Program:
    """The softmax of a vector, shifted by the maximum of another."""
    t = t if t.wide else Program("wide", (t,))
    lowered = _apply("exp", _apply("subtract", t, Program("wide", (_reduced_of("max", shift),))))
    return _apply("divide", lowered, Program("wide", (_reduced_of("sum", lowered),)))


# --- truth


def difference(left: Program, right: Program, source: random.Random, points: int = 40) -> str | None:
    """A point at which two programs differ, in words; None where none was found."""
    for number in range(points):
        length = 1 + number % 3
        inputs = {name: [source.choice(_POINTS) for _ in range(length)] for name in "xy"}
        try:
            first, second = values_of(left, inputs, length), values_of(right, inputs, length)
        except Skip:
            continue
        if not all(_alike(a, b) for a, b in zip(first, second, strict=True)):
            return f"{inputs}: {first} and {second}"
    return None


def _alike(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or (math.isfinite(left) and math.isfinite(right) and abs(left - right) < 1e-7)
