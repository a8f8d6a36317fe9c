"""Integers that a rule is about, written in size symbols.

A size symbol stands for an integer of at least one. An attribute that may be zero is a symbol minus one, and one that
may be negative is a difference of two symbols, so that all that is decided about sizes holds for attributes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from rewright.ir.dims import Dim, Rounded, SizeExpr, symbol
from rewright.ir.errors import RewrightError

Sort = Literal["size", "natural", "integer", "constant", "rounded"]
_ABOVE, _HIGH, _LOW, _CONSTANT = "__above", "__high", "__low", "__"
_SUFFIXES: dict[str, Sort] = {_ABOVE: "natural", _HIGH: "integer", _LOW: "integer"}


def size(name: str) -> SizeExpr:
    """An integer of at least one. Raises RewrightError for a name that is reserved."""
    return symbol(_check(name))


def natural(name: str) -> Dim:
    """An integer of at least zero."""
    return symbol(_check(name) + _ABOVE) - 1


def integer(name: str) -> Dim:
    """Any integer."""
    return symbol(_check(name) + _HIGH) - symbol(name + _LOW)


def constant(value: int) -> SizeExpr:
    """A number as a symbol, for attributes whose effect on a size is no polynomial."""
    return symbol(f"{_CONSTANT}{value}")


def sort_of(name: str) -> tuple[str, Sort]:
    """The name of the parameter that a size symbol belongs to, and what it may be."""
    if isinstance(name, Rounded):
        return name, "rounded"
    for suffix, sort in _SUFFIXES.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix), sort
    return (name.removeprefix(_CONSTANT), "constant") if name.startswith(_CONSTANT) else (name, "size")


def parameters(sizes: Iterable[Dim]) -> dict[str, Sort]:
    """The parameters that occur in size expressions, those inside rounded quotients included."""
    found: dict[str, Sort] = {}
    for expression in sizes:
        if not isinstance(expression, SizeExpr):
            continue
        for name in sorted(expression.symbols()):
            parameter, sort = sort_of(name)
            if isinstance(name, Rounded):
                found.update(parameters((name.numerator, name.denominator)))
            elif sort != "constant":
                found[parameter] = sort
    return found


def symbol_value(name: str, values: Mapping[str, int]) -> int:
    """The value of a size symbol; raises KeyError where its parameter has none."""
    parameter, sort = sort_of(name)
    if isinstance(name, Rounded):
        return 1 - (-value_of(name.numerator, values) // value_of(name.denominator, values))
    if sort == "constant":
        return int(parameter)
    value = values[parameter]
    if sort == "natural":
        return value + 1
    if sort == "integer":
        return max(value, 0) + 1 if name.endswith(_HIGH) else max(-value, 0) + 1
    return value


def value_of(expression: Dim, values: Mapping[str, int]) -> int:
    """The integer that a size expression is; raises KeyError where a parameter has no value."""
    if not isinstance(expression, SizeExpr):
        return expression
    total = 0
    for names, coefficient in expression.terms:
        product = coefficient
        for name in names:
            product *= symbol_value(name, values)
        total += product
    return total


def _check(name: str) -> str:
    if not name.isidentifier() or "__" in name:
        raise RewrightError(f"{name!r} is no name for a size; use a Python name without double underscores")
    return name
