"""Values in Triton: expressions as tiles, with the names that they have where they are printed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.constants import closed_value, power_of_two
from rewright.optimize.cpp_scalars import offset
from rewright.optimize.expressions import Expression
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning import Plan
from rewright.optimize.ranges import span
from rewright.optimize.triton_scalars import function, literal
from rewright.terms.index import Index, Quotient, Remainder, Variable


@dataclass
class Context:
    """Where code is printed: indices as tiles, values that have names, and the guard of loads."""

    lines: list[str]
    indent: int
    places: dict[str, str]
    """Loop indices as broadcastable tiles."""
    guards: dict[str, str]
    """For a loop that may run over its end, the condition that it does not."""
    names: dict[int, str] = field(default_factory=dict[int, str])

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.indent + text)

    def inner(self, more: int = 0) -> Context:
        """A copy whose values are forgotten at its end."""
        return Context(self.lines, self.indent + more, dict(self.places), dict(self.guards), dict(self.names))


class Values:
    """Prints values of one kernel."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        self.plan, self.graph, self.table, self.kernel = plan, plan.graph, plan.table, kernel
        self.rows = kernel.rows.size if kernel.rows else 1
        self.row_name = kernel.rows.name if kernel.rows else "row0"
        self.ranges = {loop.name: (0, loop.size - 1) for loop in kernel.grid}
        self.ranges[self.row_name] = (0, self.rows - 1)
        self.count = 0

    def fresh(self, stem: str) -> str:
        """A new name."""
        self.count += 1
        return f"{stem}{self.count}"

    def shape(self, tensor: int) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return tuple(s for s in self.graph.nodes[tensor].type.shape if isinstance(s, int))

    def value(self, c: Context, e: Expression) -> str:
        """An expression as a tile."""
        if e.op == "constant":
            return literal(e.value, e.dtype)
        if (number := closed_value(e)) is not None:
            return literal(number, e.dtype)
        if e.number in c.names:
            return c.names[e.number]
        if e.op == "index" and e.index is not None:
            text = self.index(c, e.index)
        elif e.op == "load":
            text = self.load(c, e)
        elif (exponent := power_of_two(e)) is not None:
            text = f"tl.exp2({self.value(c, exponent)})"
        elif e.op == "divide" and e.dtype.is_float and (number := closed_value(e.arguments[1])):
            text = f"({self.value(c, e.arguments[0])} * {1 / number!r})"
        elif e.op == "divide" and e.dtype.is_float and e.arguments[1].free < e.free:
            one = self.table.constant(1.0, e.dtype)  # a division for every row, and not for every element
            inverse = self.value(c, self.table.plain("divide", (one, e.arguments[1])))
            text = f"({self.value(c, e.arguments[0])} * {inverse})"
        else:
            text = function(e, [self.value(c, a) for a in e.arguments])
        name = self.fresh("v")
        c.line(f"{name} = {text}")
        c.names[e.number] = name
        return name

    def index(self, c: Context, index: Index) -> str:
        """An index as a tile."""
        parts: list[str] = []
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                text = self.value(c, self.table.named(atom.name)) if atom.name.startswith("@") else c.places[atom.name]
            elif isinstance(atom, (Quotient, Remainder)):
                sign = "//" if isinstance(atom, Quotient) else "%"
                inner = atom.numerator
                known = span(inner, self.ranges)
                if known is None or known[0] < 0:
                    raise RewrightError(
                        f"no Triton for the digit {atom} of an index that may be negative; use target='cpu'"
                    )
                text = f"(({self.index(c, inner)}) {sign} {atom.divisor})"
            else:
                raise RewrightError("no Triton for an index that is computed so; use target='cpu'")
            parts.append(text if factor == 1 else f"{factor} * {text}")
        if index.constant != 0 or not parts:
            parts.append(str(index.constant))
        return f"({' + '.join(parts)})"

    def load(self, c: Context, e: Expression) -> str:
        """Elements of a tensor; what is out of range is not read."""
        shape = self.shape(e.tensor)
        place = self.index(c, offset(self.table, e.arguments, shape))
        guards = [g for n, g in c.guards.items() if n in e.free]
        for argument, size in zip(e.arguments, shape, strict=True):
            if argument.op == "constant":
                continue
            found = span(argument.index, self.ranges) if argument.index is not None else None
            if found is None or found[0] < 0 or found[1] >= size:
                text = self.value(c, argument)
                guards.append(f"({text} >= 0) & ({text} < {size})")
        text = f"tl.load(t{e.tensor} + {place}" + (f", mask={' & '.join(guards)}, other=0)" if guards else ")")
        return f"{text}.to(tl.float32)" if e.dtype in (DType.F16, DType.BF16) else text
