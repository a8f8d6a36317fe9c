"""Operands of products in memory: what is computed once for a block, or for a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright.ir.dims import Dim, divide
from rewright.ir.types import DType
from rewright.optimize.kernel import Loop as Axis
from rewright.optimize.kernel import Product, Sweep
from rewright.optimize.printing.loops.context import BEGIN, COLUMN, COLUMNS, FIRST, ROW, ROWS, Context, padded_size
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.states import is_state
from rewright.optimize.printing.loops.values import index, is_within, value
from rewright.optimize.printing.places import offset
from rewright.optimize.printing.statements import (
    Assign,
    BlockProduct,
    Clear,
    Element,
    If,
    Let,
    Loop,
    Name,
    ReadProduct,
    Scalar,
    Statement,
    Sum,
    TurnRows,
    View,
    call,
    element_at,
    total,
    whole,
)
from rewright.optimize.scalars.expressions import Expression
from rewright.terms.index import Index

PACKED_LIMIT = 16 << 20
"""Bytes that a thread may keep of packed tiles, so that all row blocks of one grid index share them."""
PLAIN = ("index", "constant")
"""Places that are not computed from data."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A loop over a loop index of the kernel: its counter, how many steps, and the index at the first one."""

    index: str
    counter: str
    count: Scalar
    start: Scalar


DEEP = Name("d")
"""The counter of the depth of a product."""


def row_counter(k: Context) -> Counter:
    """The rows of a block."""
    return Counter(k.kernel.row.name, "r", ROWS, FIRST)


def lane_counter(sweep: Sweep) -> Counter:
    """The elements of a tile."""
    return Counter(sweep.lane.name, "c", COLUMNS, BEGIN)


def fill(k: Context, loops: Sequence[Counter], e: Expression, target: Element) -> Statement:
    """Loops that write an expression to memory."""
    head, rest = loops[0], loops[1:]
    with k.scopes.block(head.index) as scope:
        terms = [t for t in (head.start, Name(head.counter)) if t != Sum(())]
        scope.add(Let(head.index, total(*terms), DType.I64))
        scope.add(fill(k, rest, e, target) if rest else Assign(target, value(k, e)))
    return Loop(head.counter, head.count, scope.body)


def pack_left(k: Context, block: Scope, product: Product) -> str:
    """The left operand of a product for a block of rows."""
    depth = product.depth
    name = k.buffer("left", k.block * depth.size)
    deep = Counter(depth.name, "d", whole(depth.size), Sum(()))
    block.add(fill(k, [row_counter(k), deep], product.left, element_at(name, (ROW, depth.size), DEEP)))
    return name


def pack_tile(k: Context, tile: Scope, e: Expression, sweep: Sweep, inner: Axis, lanes: int, is_across: bool) -> str:
    """An operand that depends on the lane, packed once for all row blocks where there is room for it.

    Across, there is one row for each depth, in which the lane is contiguous; otherwise one for each element of it.
    """
    width = inner.size if is_across else padded_size(inner.count)
    size, whole_tile = sweep.lane.size, width * lanes
    count = (-(-size // lanes) * lanes if isinstance(size, int) else size + lanes - 1) * width
    is_shared = _fits(k, k.kernel.row.size, count * (8 if k.kernel.is_wide else 4))
    memory = k.buffer("tile", count if is_shared else whole_tile)
    name = k.scopes.fresh("packed")
    tile.add(View(name, memory, total((BEGIN, width)) if is_shared else Sum(()), k.real))
    body: list[Statement] = []
    clear = Clear(name, whole_tile, k.real)
    if is_across and divide(sweep.lane.size, lanes) is None:
        body.append(If(call("compare_LT", COLUMNS, whole(lanes)), (clear,)))
    elif not is_across and width != inner.size:
        body.append(clear)
    target = element_at(name, (DEEP, lanes), COLUMN) if is_across else element_at(name, (COLUMN, width), DEEP)
    turned = _turned(k, e, sweep, inner, (name, lanes)) if is_across else None
    deep = Counter(inner.name, "d", whole(inner.size), Sum(()))
    body.append(turned or fill(k, [lane_counter(sweep), deep], e, target))
    if not is_shared:
        tile.add(*body)
        return name
    tiles = -(-size // lanes) if isinstance(size, int) else size  # at most
    flags = k.buffer("filled", tiles, DType.I8)
    k.scopes.stack[0].add(Clear(flags, tiles, DType.I8))
    flag = Element(flags, call("quotient", BEGIN, whole(lanes)))
    tile.add(If(call("is_zero", flag), (Assign(flag, whole(1)), *body)))
    return name


def _fits(k: Context, rows: Dim, most: Dim) -> bool:
    """Whether row blocks share packed tiles: there are several, and room; for symbols the second one is a guard."""
    if isinstance(rows, int) and rows <= k.block:
        return False
    if isinstance(most, int) or not k.tiling.is_guarded:
        return isinstance(most, int) and most <= PACKED_LIMIT
    k.guards.append(PACKED_LIMIT - most)
    return True


def _turned(k: Context, e: Expression, sweep: Sweep, deep: Axis, target: tuple[str, int]) -> Statement | None:
    """An operand that lies in memory with its depth side by side, as one statement; None for another."""
    rows = rows_in_memory(k, e, sweep, deep)
    return None if rows is None else TurnRows(COLUMNS, deep.size, *rows, *target, k.real)


def rows_in_memory(k: Context, e: Expression, sweep: Sweep, inner: Axis) -> tuple[int, Scalar, Dim] | None:
    """A value that is read of a tensor whose elements along an axis are side by side, a row for each of the lane.

    The tensor, where the rows of a tile begin, and how far apart they are; None for another value.
    """
    lane, e = sweep.lane.name, _converted(e)
    if e.op != "load" or is_state(e) or e.dtype is DType.BOOL or any(a.op not in PLAIN for a in e.arguments):
        return None
    shape = k.shape(e.tensor)
    place = offset(k.table, e.arguments, shape)
    steps = {str(atom): factor for atom, factor in place.terms}
    rest = Index(place.constant, tuple(t for t in place.terms if str(t[0]) not in (lane, inner.name)))
    if steps.get(inner.name) != 1 or k.table.free_of(rest) & {lane, inner.name}:
        return None
    stride = steps.get(lane, 0)
    if not all(is_within(k, p, s) for p, s in zip(e.arguments, shape, strict=True)):
        return None
    first = index(k, rest)
    return e.tensor, Sum((*first.terms, (BEGIN, stride)), first.constant), stride


def product(k: Context, body: Scope, sweep: Sweep, found: Product, lanes: int, left: str) -> str:
    """A product of tiles; its memory."""
    depth = found.depth
    name = k.buffer("product", k.block * lanes)
    is_narrow = _is_narrow(k, found.left) and _is_narrow(k, found.right)
    own, target, size = (left, depth.size), (name, lanes), whole(depth.size)
    rows = rows_in_memory(k, found.right, sweep, depth) if k.reads_rows else None
    if rows is not None:
        body.add(ReadProduct(ROWS, COLUMNS, size, own, *rows, target, False, k.real, is_narrow))
        return name
    right = pack_tile(k, body, found.right, sweep, depth, lanes, True), lanes
    body.add(BlockProduct(ROWS, lanes, size, own, right, target, is_added=False, dtype=k.real, is_narrow=is_narrow))
    return name


def _is_narrow(k: Context, e: Expression) -> bool:
    """Whether the program has a value in bfloat16, so that a product may take it rounded to that."""
    return k.real is DType.F32 and (e.dtype is DType.BF16 or _converted(e).dtype is DType.BF16)


def _converted(e: Expression) -> Expression:
    """What is converted to a float, which changes nothing here: floats are computed in one dtype."""
    while e.op.startswith("convert_") and e.dtype.is_float:
        e = e.arguments[0]
    return e
