"""The second proof of a rule: everything written out at small sizes, with symbolic elements.

It shares the algebra of polynomials with the prover and nothing else: no sums, no case distinctions, no z3. At these
sizes it holds for all real elements. Integers and truth values are drawn, and where an order of floats decides what
is computed the instance is left out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rewright import ops
from rewright.interp.arithmetic import EXACT
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import Graph
from rewright.ops.functions import FUNCTIONS
from rewright.rules.concrete import both_sides
from rewright.rules.elements import Place, Program
from rewright.rules.instances import sample_inputs, sample_sizes
from rewright.rules.rule import Rule
from rewright.terms.evaluate import Evaluator
from rewright.terms.normal.decision.regrouping import clear_denominators
from rewright.terms.normal.polynomials.atoms import ZERO, Element, Function, Polynomial, polynomial
from rewright.terms.normal.polynomials.powers import exponential, logarithm, power


class NeedsOrder(RewrightError):
    """A comparison of symbolic elements."""


@dataclass(frozen=True)
class Symbolic:
    """Real elements as polynomials; minus and plus infinity are Python's floats and never cancel."""

    def literal(self, value: float | int | bool) -> Any:
        """A number as a polynomial where it is a finite float."""
        if isinstance(value, float) and value not in (float("inf"), float("-inf")):
            return polynomial(Fraction(value))
        return value

    def apply(self, function: str, arguments: Sequence[Any]) -> Any:
        """The value; raises NeedsOrder for comparisons of symbols and RewrightError for cancelling infinities."""
        if function.startswith("convert_"):
            return _convert(function.removeprefix("convert_"), arguments[0])
        if not any(isinstance(a, (Polynomial, float)) for a in arguments):
            found = EXACT.get(function)
            if found is None:
                raise RewrightError(f"{function} of integers is not decided here")
            return _of_integers(found, arguments)
        if function == "clamp":
            low, value, high = arguments
            return self.apply("minimum", (self.apply("maximum", (value, low)), high))
        if any(isinstance(a, float) for a in arguments):
            return _infinite(function, arguments)
        return _finite(function, list(arguments))


def _of_integers(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    try:
        return function(*arguments)
    except ZeroDivisionError:
        raise RewrightError("a division by zero is not defined") from None


def _convert(dtype: str, value: Any) -> Any:
    if dtype == "i1":
        if isinstance(value, Polynomial) and value.constant() is None:
            raise NeedsOrder("whether an element is zero")
        return value != ZERO if isinstance(value, Polynomial) else value != 0
    if dtype.startswith(("i", "ui")):
        if isinstance(value, float):
            raise RewrightError("an infinity as an integer is not defined")
        if not isinstance(value, Polynomial):
            return int(value)
        constant = value.constant()
        if constant is None:
            raise NeedsOrder("an element as an integer")
        return int(constant)
    return value if isinstance(value, (Polynomial, float)) else polynomial(int(value))


def _finite(function: str, arguments: list[Polynomial]) -> Any:
    first = arguments[0]
    if function in ("add", "subtract", "multiply", "negate"):
        return EXACT[function](*arguments)
    if function.startswith("compare_"):
        return _truth_of(function, first - arguments[1])
    if function in ("maximum", "minimum"):
        sign = 1 if function == "maximum" else -1
        return _largest([argument * sign for argument in arguments]) * sign
    return _real(function, arguments)


def _real(function: str, arguments: list[Polynomial]) -> Polynomial:
    first = arguments[0]
    try:
        if function == "divide":
            return first * power(arguments[1], -1)
        if function == "exponential":
            return exponential(first)
        if function == "log":
            return logarithm(first)
        if function in ("sqrt", "rsqrt"):
            return _root(first, function == "rsqrt")
        definition = FUNCTIONS[function].values.definition if function in FUNCTIONS else None
        if definition is not None:
            return Evaluator(Symbolic(), lambda operand, _: arguments[operand]).scalar(definition, {})
    except ZeroDivisionError:
        raise RewrightError(f"{function} of zero is not defined") from None
    return polynomial(Function(function, tuple(arguments)))


def _root(value: Polynomial, inverse: bool) -> Polynomial:
    """A root of what is not negative; the root of an even power would need a sign."""
    single = value.single()
    if single is not None and single[0] and any(isinstance(e, int) and e % 2 == 0 for _, e in single[0]):
        raise NeedsOrder("the sign of a root")
    return power(value, Fraction(-1 if inverse else 1, 2))


def _truth_of(function: str, difference: Polynomial) -> bool:
    constant = difference.constant()
    if constant is None:
        raise NeedsOrder("which of two elements is larger")
    return bool(EXACT[function](constant, 0))


def _largest(values: list[Polynomial]) -> Polynomial:
    """A maximum as an uninterpreted function of a set, flattened."""
    items: dict[bytes, Polynomial] = {}
    for value in values:
        atom = value.atom()
        inner = atom.arguments if isinstance(atom, Function) and atom.name == "largest" else (value,)
        items.update({item.key: item for item in inner})
    constants = [c for item in items.values() if (c := item.constant()) is not None]
    kept = [items[key] for key in sorted(items) if items[key].constant() is None]
    if constants:
        kept.append(polynomial(max(constants)))
    return kept[0] if len(kept) == 1 else polynomial(Function("largest", tuple(kept)))


def _infinite(function: str, arguments: Sequence[Any]) -> Any:
    """Functions of infinities, as far as they are defined and need no sign of a symbol."""
    infinities = [a for a in arguments if isinstance(a, float)]
    others = [a for a in arguments if not isinstance(a, float)]
    value = infinities[0]
    curve = FUNCTIONS[function].curve if function in FUNCTIONS else None
    limit = None if curve is None else curve.at_infinity(1 if value > 0 else -1)
    if limit is not None and not math.isnan(limit):
        return limit if math.isinf(limit) else polynomial(Fraction(limit))
    if function in ("maximum", "minimum"):
        wins = (value > 0) == (function == "maximum")
        return value if wins or not others else others[0] if len(infinities) == 1 else value
    if function in ("add", "subtract") and len(infinities) == 1:
        return -value if function == "subtract" and isinstance(arguments[1], float) else value
    if function == "is_finite":
        return False
    raise RewrightError(f"{function} of an infinity is not decided here")


@dataclass
class BoundedResult:
    """What the second checker found: sizes at which both sides are identical, and where not."""

    identical: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    skipped: int = 0
    """Instances at which an order of symbolic elements decides."""
    difference: str | None = None


def check(rule: Rule, wanted: int = 4, seed: int = 1, most: int = 3) -> BoundedResult:
    """Both sides written out at several sizes, compared as polynomials."""
    source = random.Random(seed)
    result = BoundedResult()
    for attempt in range(wanted * 3):
        sizes = sample_sizes(rule, source, most=2 + attempt % most, tries=500)
        inputs = sample_inputs(rule, sizes, source) if sizes is not None else None
        if sizes is None or inputs is None:
            continue
        left, right = both_sides(rule, sizes)
        if isinstance(right, TypeMismatch):
            result.difference = f"the right side is not valid at {sizes}"
            return result
        found = _compare(left, right, inputs, result)
        if found is not None:
            result.difference = f"{found} at {sizes}"
            return result
        if result.identical[-1:] == [{}]:
            result.identical[-1] = sizes
        if len(result.identical) >= wanted:
            break
    return result


def _compare(left: Graph, right: Graph, inputs: Mapping[str, Mapping[Place, Any]], result: BoundedResult) -> str | None:
    programs = [Program(graph, _symbols(graph, inputs), Symbolic()) for graph in (left, right)]
    compared = 0
    for name, index in programs[0].outputs():
        values: list[Any] = []
        try:
            values = [program.output(name, index) for program in programs]
        except NeedsOrder:
            result.skipped += 1
            return None
        except (RewrightError, RecursionError):
            continue
        if not _identical(*values):
            if _has_maximum(values):
                result.skipped += 1
                return None
            return f"element {list(index)} is {values[0]} on the left and {values[1]} on the right"
        compared += 1
    if compared:
        result.identical.append({})
    return None


def _symbols(graph: Graph, inputs: Mapping[str, Mapping[Place, Any]]) -> dict[str, dict[Place, Any]]:
    """Floats as symbols, other elements as they were drawn."""
    found: dict[str, dict[Place, Any]] = {}
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            label, is_float = node.op.label, node.op.tensor.dtype.is_float
            found[label] = {
                place: polynomial(Element(label, tuple(polynomial(i) for i in place), False)) if is_float else value
                for place, value in inputs[label].items()
            }
    return found


def _identical(left: Any, right: Any) -> bool:
    if isinstance(left, Polynomial) and isinstance(right, Polynomial):
        rest = left - right
        return not rest.terms or not clear_denominators(rest).terms
    return bool(left == right)


def _has_maximum(values: list[Any]) -> bool:
    """Whether a maximum occurs, whose algebra is not known here."""
    stack = [value for value in values if isinstance(value, Polynomial)]
    while stack:
        for atom in stack.pop().atoms():
            if isinstance(atom, Function):
                if atom.name in ("largest", "abs", "sign"):
                    return True
                stack.extend(atom.arguments)
            elif (inner := getattr(atom, "exponent", None) or getattr(atom, "value", None)) is not None:
                stack.append(inner)
    return False
