"""An oracle beside the prover, in whose numbers exponentials are exact: residues modulo the primes p, 2p+1, 4p+3, ...

A value is its residue on every level. The multiplicative group modulo 2p+1 has a subgroup of prime order p, so
``exp(x) = g^x`` takes a residue modulo p to one modulo 2p+1, and ``exp(x + y) = exp(x) exp(y)`` holds exactly; every
nested exponential uses up one level. What has no level left, logarithms, and orders of what was computed raise
RewrightError: the chain then decides nothing.

Two programs whose outputs differ as rational functions of degree d agree on a random element with probability at most
d / p (Schwartz 1980, Zippel 1979). With exponentials the difference is a sum of k terms a(x) g^b(y): exponents collide
with probability at most k^2 deg / 2p, and a difference that does not collide vanishes with about the same probability.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rewright import ops
from rewright.interp.arithmetic import EXACT, Value, convert
from rewright.interp.exact import run_exactly
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ops.base import Array
from rewright.rules.instances import Given

CHAIN = tuple(66517439 * 2**level + 2**level - 1 for level in range(6))
"""Six primes, each twice the one before plus one, all below 2^31 and three modulo four."""
_GENERATOR = 4
"""A square other than one: its order modulo 2p+1 is p."""


@dataclass(frozen=True, slots=True)
class Residues:
    """A value on the levels of a chain; None where it is not known any more."""

    levels: tuple[int | None, ...]

    def lowest(self, other: Residues) -> int:
        """The lowest level that both have; raises RewrightError where there is none."""
        for level, (a, b) in enumerate(zip(self.levels, other.levels, strict=True)):
            if a is not None and b is not None:
                return level
        raise RewrightError("two values have no level of the prime chain in common; use fewer nested exponentials")


@dataclass(frozen=True)
class PrimeChain:
    """Arithmetic modulo the primes of a chain."""

    primes: tuple[int, ...] = CHAIN

    def literal(self, value: float | int | bool) -> Value:
        """The residues of the fraction that a float is exactly; infinities stay what they are."""
        if not isinstance(value, float) or math.isinf(value):
            return value
        return self.residues(Fraction(value))

    def residues(self, value: Fraction | int) -> Residues:
        """The residues of a fraction."""
        over, under = Fraction(value).as_integer_ratio()
        return Residues(tuple(over * pow(under, -1, p) % p for p in self.primes))

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The exact value; raises RewrightError where the chain has none."""
        if function.startswith("convert_"):
            return convert(function.removeprefix("convert_"), arguments[0], self.residues)
        if function in ("select", "and", "or", "xor", "not"):
            return EXACT[function](*arguments)
        if not any(isinstance(a, (Residues, float)) for a in arguments):
            return EXACT[function](*arguments)
        if any(isinstance(a, float) for a in arguments):
            return self._infinite(function, arguments)
        found = _FUNCTIONS.get(function)
        if found is None:
            raise RewrightError(f"{function} has no value in the prime chain; evaluate in decimals")
        return found(self, *arguments)

    def _infinite(self, function: str, arguments: Sequence[Value]) -> Value:
        """Minus infinity under exp and max; everything else is rejected."""
        infinite = next(a for a in arguments if isinstance(a, float))
        others = [a for a in arguments if not isinstance(a, float)]
        if function == "exponential" and infinite < 0:
            return self.residues(0)
        if function == "maximum" and infinite < 0:
            return others[0] if others else infinite
        if function in ("add", "subtract") and others and arguments[0] is infinite:
            return infinite
        raise RewrightError(f"{function} of an infinity has no value in the prime chain; evaluate in decimals")

    def on_levels(self, function: Callable[..., int], *values: Residues) -> Residues:
        """A function of residues, on every level that all values have."""
        found: list[int | None] = []
        for prime, parts in zip(self.primes, zip(*(v.levels for v in values), strict=True), strict=True):
            found.append(None if any(part is None for part in parts) else function(prime, *parts))
        if all(level is None for level in found):
            raise RewrightError("no level of the prime chain is left; use fewer nested exponentials")
        return Residues(tuple(found))

    def exponential(self, value: Residues) -> Residues:
        """``g^x``, one level up."""
        found: list[int | None] = [None]
        for prime, part in zip(self.primes[1:], value.levels[:-1], strict=True):
            found.append(None if part is None else pow(_GENERATOR, part, prime))
        if all(level is None for level in found):
            raise RewrightError("no level of the prime chain is left; use fewer nested exponentials")
        return Residues(tuple(found))

    def larger(self, left: Residues, right: Residues) -> Residues:
        """The larger signed residue on the lowest common level: an order, though not that of the reals."""
        level = left.lowest(right)
        half = self.primes[level] // 2

        def signed(value: Residues) -> int:
            part = value.levels[level]
            assert part is not None, "the level is common"
            return part - self.primes[level] if part > half else part

        return left if signed(left) >= signed(right) else right


def _inverse(prime: int, value: int) -> int:
    if not value:
        raise RewrightError("division by zero in the prime chain; evaluate at other values")
    return pow(value, -1, prime)


def _root(prime: int, value: int) -> int:
    """A square root up to sign, which is multiplicative because primes are three modulo four."""
    return pow(value, (prime + 1) // 4, prime)


def _quotient(prime: int, left: int, right: int) -> int:
    return left * _inverse(prime, right) % prime


def _one_over_one_more(prime: int, value: int) -> int:
    return _inverse(prime, (1 + value) % prime)


def _less_over_more(prime: int, value: int) -> int:
    return (value - 1) * _inverse(prime, (value + 1) % prime) % prime


def _doubled(prime: int, value: int) -> int:
    return 2 * value % prime


def _one_less(prime: int, value: int) -> int:
    return (value - 1) % prime


def _logistic(chain: PrimeChain, value: Residues) -> Residues:
    return chain.on_levels(_one_over_one_more, chain.exponential(chain.on_levels(_negate, value)))


def _tanh(chain: PrimeChain, value: Residues) -> Residues:
    return chain.on_levels(_less_over_more, chain.exponential(chain.on_levels(_doubled, value)))


def _negated_larger(chain: PrimeChain, left: Residues, right: Residues) -> Residues:
    return right if chain.larger(left, right) is left else left


def _levelwise(function: Callable[..., int]) -> Callable[..., Residues]:
    """A function of residues as a function of values."""

    def of(chain: PrimeChain, *values: Residues) -> Residues:
        return chain.on_levels(function, *values)

    return of


def _add(prime: int, left: int, right: int) -> int:
    return (left + right) % prime


def _subtract(prime: int, left: int, right: int) -> int:
    return (left - right) % prime


def _multiply(prime: int, left: int, right: int) -> int:
    return left * right % prime


def _negate(prime: int, value: int) -> int:
    return -value % prime


def _inverse_root(prime: int, value: int) -> int:
    return _inverse(prime, _root(prime, value))


def _exponential_minus_one(chain: PrimeChain, value: Residues) -> Residues:
    return chain.on_levels(_one_less, chain.exponential(value))


_FUNCTIONS: dict[str, Callable[..., Residues]] = {
    "add": _levelwise(_add),
    "subtract": _levelwise(_subtract),
    "multiply": _levelwise(_multiply),
    "negate": _levelwise(_negate),
    "divide": _levelwise(_quotient),
    "exponential": PrimeChain.exponential,
    "exponential_minus_one": _exponential_minus_one,
    "sqrt": _levelwise(_root),
    "rsqrt": _levelwise(_inverse_root),
    "logistic": _logistic,
    "tanh": _tanh,
    "maximum": PrimeChain.larger,
    "minimum": _negated_larger,
}


@dataclass(frozen=True)
class ChainResult:
    """Whether two programs agree in the chain, on how many elements, and how likely that is by chance."""

    equal: bool
    elements: int
    bound: float
    """Probability that different rational functions of the stated degree agree on one element; heuristic with exp."""


def compare_in_chain(left: Graph, right: Graph, given: Given | None = None, degree: int = 64) -> ChainResult:
    """Two programs at random residues; raises RewrightError where the chain has no value for one of them.

    Elements of integers and booleans are those that are given, if any are.
    """
    source = random.Random(0)
    inputs = {name: _random(left, position, source, given) for name, position in left.inputs.items()}
    chain = PrimeChain()
    outputs = [run_exactly(graph, {name: inputs[name] for name in graph.inputs}, chain) for graph in (left, right)]
    count, equal = 0, True
    for name, first in outputs[0].items():
        second = outputs[1][name]
        equal = equal and first.shape == second.shape
        for index in itertools.product(*map(range, first.shape)) if first.shape == second.shape else ():
            count += 1
            equal = equal and _same(first[index], second[index])
    return ChainResult(equal, count, degree / chain.primes[0])


def _random(graph: Graph, position: int, source: random.Random, given: Given | None) -> Array:
    op = graph.nodes[position].op
    assert isinstance(op, ops.Input), "inputs are input nodes"
    shape = tuple(int(str(size)) for size in op.tensor.shape)
    values = np.empty(shape, object)
    for index in np.ndindex(*shape):
        if op.tensor.dtype.is_float:
            values[index] = source.randrange(2, CHAIN[0] - 1)
        elif given is not None:
            values[index] = given[op.label][index]
        else:
            values[index] = source.randrange(2) if op.tensor.dtype.is_integer else source.random() < 0.5
    return values


def _same(left: Any, right: Any) -> bool:
    """Equality on every common level."""
    if not isinstance(left, Residues) or not isinstance(right, Residues):
        return bool(left == right)
    left.lowest(right)
    pairs = zip(left.levels, right.levels, strict=True)
    return all(a == b for a, b in pairs if a is not None and b is not None)
