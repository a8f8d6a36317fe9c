"""Expressions of kernels as C++ in the scopes where they belong."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.graph import Graph
from rewright.optimize.constants import closed_value, power_of_two
from rewright.optimize.cpp_scalars import ctype, function, index_text, literal, offset, power
from rewright.optimize.expressions import Expression, Table
from rewright.optimize.kernel import Store
from rewright.optimize.ranges import span
from rewright.optimize.scopes import Scope, Scopes


class Values:
    """Prints values: each in the outermost loop that it does not depend on."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self.graph, self.table = graph, table
        self.scopes = Scopes()
        self.real = "float"
        """The type that floats are computed in."""
        self.ranges: dict[str, tuple[int, int]] = {}
        """First and last value of every loop index."""

    def put(self, scope: Scope, store: Store, e: Expression) -> None:
        """Write an element of a tensor."""
        shape = self.shape(store.tensor)
        stride = 1
        parts: list[str] = []
        for axis, size in zip(reversed(store.axes), reversed(shape), strict=True):
            parts.append(f"{stride} * {axis}" if size > 1 else "0")
            stride *= size
        scope.line(f"put(t{store.tensor}[{' + '.join(reversed(parts)) or '0'}], {self.text(e)});")

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The sizes of a tensor, which are numbers here."""
        return tuple(size for size in self.graph.nodes[tensor].type.shape if isinstance(size, int))

    # --- expressions

    def costly(self, e: Expression, products: Mapping[int, str]) -> bool:
        """Whether a value is worth keeping."""
        return e.number not in products and e.op not in ("load", "index", "constant")

    def text(self, e: Expression) -> str:
        """An expression as C++; parts get names in the loops where they belong."""
        if e.op == "constant":
            return literal(e.value, e.dtype, self.real)
        if (number := closed_value(e)) is not None:
            return literal(number, e.dtype, self.real)
        found = self.scopes.lookup(e)
        if found is not None:
            return found
        if e.op == "reduce":
            raise AssertionError(f"{e} has no value here")
        place = self.scopes.depth(e, {})
        scope = self.scopes.stack[place]
        kind = ctype(e.dtype, self.real)
        below = self.scopes.stack[place + 1 :]
        self.scopes.stack = self.scopes.stack[: place + 1]
        text = self.printed(e)
        name = self.scopes.fresh("v")
        scope.line(f"const {kind} {name} = {text};")
        self.scopes.stack += below
        scope.names[e.number] = name
        return name

    def printed(self, e: Expression) -> str:
        """The text of one operation."""
        if e.op == "index" and e.index is not None:
            return index_text(e.index, self.variable)
        if e.op == "load":
            return self.load(e)
        if e.op == "divide" and e.dtype.is_float:
            top, bottom = e.arguments
            if number := closed_value(bottom):
                return f"({self.text(top)} * {literal(1 / number, e.dtype, self.real)})"
            if self.scopes.depth(bottom, {}) < self.scopes.depth(top, {}):
                one = self.table.plain("divide", (self.table.constant(1.0, e.dtype), bottom))
                return f"({self.text(top)} * {self.text(one)})"
        if (exponent := power_of_two(e)) is not None:
            return power(exponent, self.text, self.real)
        return function(e, [self.text(a) for a in e.arguments], self.real)

    def variable(self, name: str) -> str:
        """A variable of an index."""
        return self.text(self.table.named(name)) if name.startswith("@") else name

    def load(self, e: Expression) -> str:
        """An element of a tensor; an index that may be out of range is brought into it, as its value is not used."""
        shape = self.shape(e.tensor)
        if all(self.within(p, s) for p, s in zip(e.arguments, shape, strict=True)):
            return f"value(t{e.tensor}[{index_text(offset(self.table, e.arguments, shape), self.variable)}])"
        parts: list[str] = []
        stride = 1
        for place, size in zip(reversed(e.arguments), reversed(shape), strict=True):
            text = self.text(place)
            if not self.within(place, size):
                text = f"std::min<long>(std::max<long>({text}, 0), {size - 1})"
            parts.append(f"{stride} * {text}")
            stride *= size
        return f"value(t{e.tensor}[{' + '.join(parts)}])"

    def within(self, place: Expression, size: int) -> bool:
        """Whether an index is in range for certain."""
        if place.op == "constant":
            return 0 <= place.value < size
        found = span(place.index, self.ranges) if place.index is not None else None
        return found is not None and found[0] >= 0 and found[1] < size
