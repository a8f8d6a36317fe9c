"""Reductions of tiles in Triton, and products on the matrix units: those of scores, and sums over features."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.expressions import Expression
from rewright.optimize.kernel import Product, Running, Sweep
from rewright.optimize.triton_scalars import TYPES, literal, padded
from rewright.optimize.triton_states import States
from rewright.optimize.triton_values import Context, Way
from rewright.optimize.values import identity

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

    def renew(self, c: Context, sweep: Sweep, running: Running, source: Expression) -> None:
        """The new state after a tile."""
        number = running.value.number
        assert running.value.bound is not None
        state, kind = self.state[number], running.value.bound.kind
        factor = self.factor(c, running)
        if running.factors is not None:
            self.accumulate(c, sweep, running, factor)
            return
        body = self.value(c, source)
        flag, is_float = running.value.dtype is DType.BOOL, running.value.dtype.is_float
        first = literal(identity(kind), running.value.dtype)
        if flag:
            body, first = f"({body}).to(tl.int32)", str(int(first == "True"))
        if not is_float or not {self.row_name, sweep.lane.name} <= source.free:
            kind_name = "tl.int32" if flag else TYPES[running.value.dtype] if not is_float else "tl.float32"
            body = f"({body} + tl.zeros([BM, BN], {kind_name}))"  # indices are narrower than their states
        inside = c.guards.get(sweep.lane.name)
        c.line(f"whole{number} = " + (f"tl.where({inside}, {body}, {first})" if inside else body))
        call = {"sum": "sum", "maximum": "max", "minimum": "min", "or": "max", "and": "min"}.get(kind)
        if call is None:
            raise RewrightError(f"no Triton for a reduction of kind {kind}; use target='cpu'")
        c.line(f"part{number} = tl.{call}(whole{number}, 1)[:, None]")
        c.line(f"old{number} = {state}")
        old = state if factor is None else f"{state} * {factor}"
        if running.update.growth is not None:
            old = f"({state} + {self.growth(c, running, running.update.growth)})" + (f" * {factor}" if factor else "")
        if running.update.reset is not None:
            old = self.reset(c, running, old)
        exact = number in sweep.exact
        if exact:
            found = f"tl.max((whole{number} != whole{number}).to(tl.int32), 1)[:, None]"
            c.line(f'part{number} = tl.where({found} > 0, float("nan"), part{number})')
        joined = {
            "sum": f"{old} + part{number}",
            "max": f"tl.maximum({old}, part{number})",
            "min": f"tl.minimum({old}, part{number})",
        }
        joint = joined[call]
        if exact:  # no maximum or minimum of the device keeps NaN
            either = f"(old{number} != old{number}) | (part{number} != part{number})"
            joint = f'tl.where({either}, float("nan"), {joint})'
        c.line(f"{state} = {joint}")
        name = state
        if kind in ("maximum", "minimum") and running.value.dtype.is_float:
            name = f"safe{number}"
            c.line(f"{name} = tl.where({state} == {first}, 0.0, {state})  # nothing yet: any number will do")
            if number in sweep.grown:
                c.line(f"from{number} = tl.where(old{number} == {first}, 0.0, old{number})")
        c.names[number] = name
        c.names[self.table.renewed(running.value).number] = state
