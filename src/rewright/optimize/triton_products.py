"""Products of tiles in Triton, on the matrix units: those of scores, and sums over features."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.types import DType
from rewright.optimize.expressions import Expression
from rewright.optimize.kernel import Product, Running, Sweep
from rewright.optimize.triton_scalars import TYPES, padded
from rewright.optimize.triton_states import States
from rewright.optimize.triton_values import Context, Way

DEPTH = 256
"""Products over more elements than this go in steps."""


class Products(States):
    """Prints products of one kernel."""

    def left(self, c: Context, product: Product) -> str:
        """The left operand of a product for a block of rows."""
        inner = c.inner()
        depth = product.depth
        self.add_axis(inner, depth.name, depth.size, Way(1, "0", str(padded(depth.size))))
        return self.operand(inner, product.left, "tl.float64")

    def add_axis(self, c: Context, name: str, size: int, way: Way) -> None:
        """Put an index in scope along one axis of a tile; each axis has a variable of its own."""
        text = f"{name}_{'across' if way.axis else 'down'}"
        places = {"begin": "lane", "0": f"tl.arange(0, {way.block})"}.get(
            way.start, f"({way.start} + tl.arange(0, 64))"
        )
        c.line(f"{text} = {places}{'[None, :]' if way.axis else '[:, None]'}")
        c.places[name], c.ways[name] = text, way
        ragged = name in c.guards if way.start == "begin" else size % int(way.block) != 0
        if ragged:
            even = f" | ({size} % BN == 0)" if way.block == "BN" else ""
            c.line(f"{text}_in = ({text} < {size}){even}")
            c.guards[name] = f"{text}_in"

    def operand(self, c: Context, e: Expression, upcast: str = "tl.float32") -> str:
        """An operand of a product in the dtype that the matrix units take; the interpreter has none of 16 bits."""
        text = self.value(c, e)
        kind = e.dtype
        name = self.fresh("operand")
        guards = [g for n, g in c.guards.items() if n in e.free and n not in (self.row_name,)]
        if guards and e.op != "load":
            text = f"tl.where({' & '.join(guards)}, {text}, 0.0)"
        narrow = kind in (DType.F16, DType.BF16)
        c.line(f"{name} = ({text}).to({TYPES[kind] if narrow else 'tl.float32'})")
        if narrow or upcast != "tl.float32":
            c.line(f"if UPCAST:\n{'    ' * (c.indent + 1)}{name} = {name}.to({upcast})")
        return name

    def product(self, c: Context, sweep: Sweep, product: Product, lefts: Mapping[int, str]) -> str:
        """A product of tiles, in steps where it is deep.

        What is computed again in another kernel has to be equal in every bit, with operands that changed sides too. On
        a device it is, as its sums have one order; in the interpreter sums are those of float64, rounded once.
        """
        name, depth = self.fresh("product"), product.depth
        inner = c.inner()
        if product.value.number in lefts:
            self.add_axis(inner, depth.name, depth.size, Way(0, "0", str(padded(depth.size))))
            right = self.operand(inner, product.right, "tl.float64")
            c.line(f'{name} = tl.dot({lefts[product.value.number]}, {right}, input_precision="ieee").to(tl.float32)')
            return name
        c.line(f"{name} = tl.zeros([BM, BN], tl.float64 if UPCAST else tl.float32)")
        c.line(f"for deep in range(0, {depth.size}, 64):")
        loop = c.inner(1)
        first, second = loop.inner(), loop.inner()
        self.add_axis(first, depth.name, depth.size, Way(1, "deep", "64"))
        left = self.operand(first, product.left, "tl.float64")
        self.add_axis(second, depth.name, depth.size, Way(0, "deep", "64"))
        right = self.operand(second, product.right, "tl.float64")
        loop.line(f'{name} = tl.dot({left}, {right}, {name}, input_precision="ieee")')
        c.line(f"{name} = {name}.to(tl.float32)")
        return name

    def accumulate(self, c: Context, sweep: Sweep, running: Running, factor: str | None) -> None:
        """A sum over features as a product on the matrix units."""
        assert running.factors is not None and self.kernel.features is not None
        weight, item = running.factors
        state = self.state[running.value.number]
        feature = self.kernel.features
        inner = c.inner()
        self.add_axis(inner, feature.name, feature.size, Way(1, "0", str(padded(feature.size))))
        inner.names = {r.value.number: c.names[r.value.number] for r in self.done if r.value.number in c.names}
        self.add_axis(inner, sweep.lane.name, sweep.lane.size, Way(0, "begin", "BN"))
        items = self.operand(inner, item)
        grown = [r.update.growth for r in sweep.running if r.update.growth is not None]
        if any(other is running.value for growth in grown for _, other in growth.others):
            c.line(f"old{running.value.number} = {state}")
        if running.is_shared:
            c.line(f"{state} = {state} + tl.sum({items}.to(tl.float32), 0)[None, :]")
            return
        bounded = weight.op == "exponential" and bool(running.update.depends)
        narrow = item.dtype if item.dtype is DType.BF16 or (bounded and item.dtype is DType.F16) else DType.F32
        value = self.value(c, weight)
        if not {self.row_name, sweep.lane.name} <= weight.free:
            value = f"({value} + tl.zeros([BM, BN], tl.float32))"
        name = self.fresh("weight")
        inside = c.guards.get(sweep.lane.name)
        c.line(f"{name} = " + (f"tl.where({inside}, {value}, 0.0)" if inside else value))
        if narrow is not DType.F32:
            c.line(f"{name} = {name}.to({items}.dtype)")
        else:
            c.line(f"{items} = {items}.to(tl.float32)")
        if running.update.growth is not None:
            c.line(f"{state} = {state} + {self.growth(c, running, running.update.growth)}")
        if factor is not None:
            c.line(f"{state} = {state} * {factor}")
        c.line(f'{state} = tl.dot({name}, {items}, {state}, input_precision="ieee")')
