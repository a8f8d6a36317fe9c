"""What targets differ in where scalars are written: one record per target, and the one function that writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.ops.functions import FUNCTIONS
from rewright.ops.functions.record import ScalarFunction
from rewright.optimize.printing.statements import Call, Element, Load, Name, Number, Scalar, Sum


@dataclass(frozen=True, slots=True)
class Language:
    """How scalars are written for a target.

    ``functions`` are templates by the names of functions: ``{0}``, ``{1}``, ... are the arguments and ``{type}`` is
    the type of the result. ``load`` gets a load and the texts of its place and of its guard.
    """

    name: str
    functions: Mapping[str, str]
    types: Mapping[DType, str]
    literal: Callable[[Number], str]
    load: Callable[[Load, str, str], str]
    element: Callable[[str, str], str] = "{}[{}]".format
    """An element of a buffer at a place."""
    wrapped: Mapping[DType, str] = field(default_factory=dict[DType, str])
    """For dtypes whose results have to be brought into range, how: integers are computed in wider ones."""
    advice: str = ""
    """What to do where the target cannot express a kernel."""

    def missing(self, what: str) -> RewrightError:
        """The error that the target has no such thing."""
        return RewrightError(f"no {self.name} for {what}{self.advice}")

    def text(self, scalar: Scalar) -> str:
        """A scalar as text; raises RewrightError where the target has no such function."""
        match scalar:
            case Name(text):
                return text
            case Number():
                return self.literal(scalar)
            case Call():
                return self._call(scalar)
            case Sum(terms, constant):
                parts = [self.text(s) if f == 1 else f"{size_text(f)} * {self.text(s)}" for s, f in terms]
                parts += [size_text(constant)] if constant != 0 or not parts else []
                return f"({' + '.join(parts)})" if len(parts) > 1 or (terms and terms[0][1] != 1) else parts[0]
            case Element(buffer, place):
                return self.element(buffer, bare(self.text(place)))
            case Load(_, place, guard, _):
                return self.load(scalar, self.text(place), "" if guard is None else self.text(guard))

    def _call(self, scalar: Call) -> str:
        template = self.functions.get(scalar.function)
        if template is None:
            raise self.missing(f"the function {scalar.function}")
        text = template.format(*map(self.text, scalar.arguments), type=self.types.get(scalar.dtype, ""))
        return self.wrapped.get(scalar.dtype, "{0}").format(text)


def size_text(size: Dim) -> str:
    """A size as text: a number, or a polynomial of the variables ``size_`` with the names of symbols.

    Raises RewrightError for a symbol that is no name, as that of a quotient that is rounded.
    """
    if isinstance(size, int):
        return str(size)
    if other := [name for name in size.symbols() if not name.isidentifier()]:
        raise RewrightError(f"the size {other[0]} is no polynomial")
    products = [_product(count, [f"size_{name}" for name in names]) for names, count in size.terms]
    return products[0] if products == [products[0]] and "*" not in products[0] else f"({' + '.join(products)})"


def _product(count: int, factors: list[str]) -> str:
    """A number of times a product."""
    return " * ".join([*([] if count == 1 and factors else [str(count)]), *factors])


def bare(text: str) -> str:
    """The text without the pair of parentheses around all of it, if there is one."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]


PLACES = {
    "at_least_zero": "({0} >= 0)",
    "is_zero": "({0} == 0)",
    "float_to_float": "{0}",
    "counted": "{0}",
}
"""What all of them write alike about places, and what changes nothing."""


def templates(text: Callable[[ScalarFunction], str | None]) -> dict[str, str]:
    """The scalar functions that a target has, by name, as their records write them."""
    return {name: found for name, record in FUNCTIONS.items() if (found := text(record)) is not None}
