"""Values in Triton: expressions as tiles, with the names that they have where they are printed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.constants import closed_value, power_of_two
from rewright.optimize.printing.places import offset
from rewright.optimize.expressions import Expression
from rewright.optimize.kernel import Kernel
from rewright.optimize.planning import Plan
from rewright.optimize.ranges import span
from rewright.optimize.simplify import as_index
from rewright.optimize.triton_scalars import function, literal
from rewright.terms.index import Index, Quotient, Remainder, Variable, variable

_BYTES = {DType.F16: 2, DType.BF16: 2, DType.F32: 4}
"""Sizes of what is read through descriptors."""


@dataclass(frozen=True)
class Way:
    """Where a loop index runs in a tile: along which axis, from where on, and over how many elements."""

    axis: int
    start: str
    block: str


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
    ways: dict[str, Way] = field(default_factory=dict[str, Way])
    """For a loop that is an axis of the tile, which."""

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.indent + text)

    def inner(self, more: int = 0) -> Context:
        """A copy whose values are forgotten at its end."""
        return Context(
            self.lines, self.indent + more, dict(self.places), dict(self.guards), dict(self.names), dict(self.ways)
        )


class Values:
    """Prints values of one kernel."""

    def __init__(self, plan: Plan, kernel: Kernel) -> None:
        self.plan, self.graph, self.table, self.kernel = plan, plan.graph, plan.table, kernel
        self.rows = kernel.rows.size if kernel.rows else 1
        self.row_name = kernel.rows.name if kernel.rows else "row0"
        self.ranges = {loop.name: (0, loop.size - 1) for loop in kernel.grid}
        self.ranges[self.row_name] = (0, self.rows - 1)
        self.count = 0
        self.outside: list[str] | None = None
        """Lines that go before the loop over tiles, while it is printed."""
        self.descriptors: dict[tuple[int, str, tuple[str, ...]], str] = {}

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
        if (whole := self.described(c, e)) is not None:
            name = self.fresh("tile")
            c.lines += [f"{'    ' * c.indent}{line}" for line in ("if DESCRIPTORS:", f"    {name} = {whole}")]
            c.lines += [f"{'    ' * c.indent}{line}" for line in ("else:", f"    {name} = {text}")]
            text = name
        return f"{text}.to(tl.float32)" if e.dtype in (DType.F16, DType.BF16) else text

    def described(self, c: Context, e: Expression) -> str | None:
        """The same elements through a tensor descriptor: a tile of two axes of a tensor, the last of stride 1.

        The copy engine of a device reads such a tile by itself, and zeros beyond the tensor. It needs addresses that
        are multiples of 16 bytes (CUDA C++ Programming Guide, tensor memory accelerator).
        """
        shape, size = self.shape(e.tensor), _BYTES.get(e.dtype, 0)
        if self.outside is None or len(shape) < 2 or not size:
            return None
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        ways: dict[int, Way] = {}
        fixed = list(e.arguments)
        for axis, (argument, extent) in enumerate(zip(e.arguments, shape, strict=True)):
            names = argument.free & c.ways.keys()
            if not names and not self._is_fixed(argument, extent):
                return None
            if names:
                (name,) = names if len(names) == 1 else ("",)
                if as_index(argument) != variable(name) or self.ranges[name] != (0, extent - 1):
                    return None
                ways[axis], fixed[axis] = c.ways[name], self.table.constant(0, DType.I64)
        aligned = all(stride * size % 16 == 0 for stride in strides[:-1])
        if not aligned or len(ways) != 2 or len(shape) - 1 not in ways or {w.axis for w in ways.values()} != {0, 1}:
            return None
        (axis, first), (_, last) = sorted(ways.items())
        base = self.index(c, offset(self.table, tuple(fixed), shape))
        key = (e.tensor, base, (first.block, last.block))
        if key not in self.descriptors:
            name = self.descriptors[key] = self.fresh("tiles")
            self.outside += [
                "    if DESCRIPTORS:",
                f"        {name} = tl.make_tensor_descriptor(t{e.tensor} + {base}, shape=[{shape[axis]}, {shape[-1]}], "
                f"strides=[{strides[axis]}, 1], block_shape=[{first.block}, {last.block}])",
            ]
        return f"{self.descriptors[key]}.load([{first.start}, {last.start}])" + (".T" if first.axis else "")

    def _is_fixed(self, argument: Expression, extent: int) -> bool:
        """Whether an index is one for the whole block of rows, inside of the tensor, and nothing is read for it."""
        index = as_index(argument)
        found = span(index, self.ranges) if index is not None and not argument.arguments else None
        return found is not None and 0 <= found[0] <= found[1] < extent and self.row_name not in argument.free
