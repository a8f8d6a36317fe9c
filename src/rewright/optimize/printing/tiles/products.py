"""Products on the matrix units: those of scores, and sums over features."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.types import DType
from rewright.optimize.kernel import Product, Running, Sweep
from rewright.optimize.printing.statements import (
    Assign,
    If,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    Sum,
    call,
    fold_left,
    select,
    total,
    whole,
)
from rewright.optimize.printing.tiles.context import (
    BEGIN,
    BLOCK_LANES,
    BLOCK_ROWS,
    LANES,
    UPCAST,
    Block,
    Context,
    Way,
    padded_size,
)
from rewright.optimize.printing.tiles.states import factor, grow_state, state
from rewright.optimize.printing.tiles.values import value
from rewright.optimize.scalars.expressions import Expression, number_of

DEPTH = 256
"""Products over more elements than this go in steps."""
STEP = 64
"""Elements of a step."""


def pack_left(k: Context, c: Block, product: Product) -> Name:
    """The left operand of a product for a block of rows."""
    inner, depth = c.inner(), product.depth
    add_axis(inner, depth.name, depth.count, Way(1, whole(0), whole(padded_size(depth.count))))
    return operand(k, inner, product.left, DType.F64)


def add_axis(c: Block, name: str, size: int, way: Way) -> None:
    """Put an index in scope along one axis of a tile; each axis has a variable of its own."""
    variable = Name(f"{name}_{'across' if way.axis else 'down'}")
    is_lane = way.start == BEGIN
    elements = LANES if is_lane else call("arange", way.block)
    elements = elements if is_lane or way.start == whole(0) else total(way.start, elements)
    c.add(Let(variable.text, call("as_columns" if way.axis else "as_rows", elements)))
    c.places[name], c.ways[name] = variable, way
    is_ragged = (
        name in c.guards if is_lane else not isinstance(way.block, Sum) or size % number_of(way.block.constant) != 0
    )
    if is_ragged:
        inside: Scalar = call("compare_LT", variable, whole(size))
        if way.block == BLOCK_LANES:
            inside = call("or", inside, call("is_zero", call("modulo", whole(size), BLOCK_LANES)))
        c.add(Let(f"{variable.text}_in", inside))
        c.guards[name] = Name(f"{variable.text}_in")


def operand(k: Context, c: Block, e: Expression, upcast: DType = DType.F32) -> Name:
    """An operand of a product in the dtype that the matrix units take; the interpreter has none of 16 bits."""
    text = value(k, c, e)
    name = Name(k.fresh("operand"))
    guards = [g for n, g in c.guards.items() if n in e.free and n != k.kernel.row.name]
    if guards and e.op != "load":
        text = select(fold_left("and", guards), text, Number(0.0, DType.F32))
    is_narrow = e.dtype in (DType.F16, DType.BF16)
    c.add(Let(name.text, call("cast", text, dtype=e.dtype if is_narrow else DType.F32)))
    if is_narrow or upcast is not DType.F32:
        c.add(If(UPCAST, (Assign(name, call("cast", name, dtype=upcast)),)))
    return name


def product(k: Context, c: Block, found: Product, lefts: Mapping[int, Name]) -> Name:
    """A product of tiles, in steps where it is deep.

    What is computed again in another kernel has to be equal in every bit, with operands that changed sides too. On
    a device it is, as its sums have one order; in the interpreter sums are those of float64, rounded once.
    """
    name, depth = Name(k.fresh("product")), found.depth
    if found.value.number in lefts:
        inner = c.inner()
        add_axis(inner, depth.name, depth.count, Way(0, whole(0), whole(padded_size(depth.count))))
        right = operand(k, inner, found.right, DType.F64)
        c.add(Let(name.text, call("cast", call("dot", lefts[found.value.number], right), dtype=DType.F32)))
        return name
    c.add(Let(name.text, call("accurate_zeros", BLOCK_ROWS, BLOCK_LANES)))
    loop = c.nested()
    first, second = loop.inner(), loop.inner()
    add_axis(first, depth.name, depth.count, Way(1, Name("deep"), whole(STEP)))
    left = operand(k, first, found.left, DType.F64)
    add_axis(second, depth.name, depth.count, Way(0, Name("deep"), whole(STEP)))
    right = operand(k, second, found.right, DType.F64)
    loop.add(Assign(name, call("add_dot", left, right, name)))
    c.add(Loop("deep", whole(depth.size), loop.body, step=whole(STEP)))
    c.add(Assign(name, call("cast", name, dtype=DType.F32)))
    return name


def accumulate(k: Context, c: Block, sweep: Sweep, running: Running) -> None:
    """A sum over features as a product on the matrix units."""
    assert running.factors is not None and k.kernel.features is not None
    weight, item = running.factors
    scale, memory, feature = factor(k, c, running), state(k, running.value), k.kernel.features
    inner = c.inner()
    add_axis(inner, feature.name, feature.count, Way(1, whole(0), whole(padded_size(feature.count))))
    inner.names.clear()
    inner.names.update({n: c.names[n] for r in k.done if (n := r.value.number) in c.names})
    add_axis(inner, sweep.lane.name, sweep.lane.count, Way(0, BEGIN, BLOCK_LANES))
    items = operand(k, inner, item)
    growing = [r.update.growth for r in sweep.running if r.update.growth is not None]
    if any(other is running.value for growth in growing for _, other in growth.others):
        c.add(Let(f"old{running.value.number}", memory))
    if running.is_shared:
        c.add(Assign(memory, call("add", memory, call("column_sum", call("cast", items, dtype=DType.F32)))))
        return
    weights = _weights(k, c, sweep, weight)
    is_bounded = weight.op == "exponential" and bool(running.update.depends)
    if item.dtype is DType.BF16 or (is_bounded and item.dtype is DType.F16):
        c.add(Assign(weights, call("cast_like", weights, items)))
    else:
        c.add(Assign(items, call("cast", items, dtype=DType.F32)))
    if running.update.growth is not None:
        c.add(Assign(memory, grow_state(k, c, running)))
    if scale is not None:
        c.add(Assign(memory, call("multiply", memory, scale)))
    c.add(Assign(memory, call("add_dot", weights, items, memory)))


def _weights(k: Context, c: Block, sweep: Sweep, weight: Expression) -> Name:
    """The weights of a sum over features, zero for what the lane does not have."""
    text, name = value(k, c, weight), Name(k.fresh("weight"))
    if not {k.kernel.row.name, sweep.lane.name} <= weight.free:
        text = call("add", text, call("zeros", BLOCK_ROWS, BLOCK_LANES))
    inside = c.guards.get(sweep.lane.name)
    c.add(Let(name.text, text if inside is None else select(inside, text, Number(0.0, DType.F32))))
    return name
