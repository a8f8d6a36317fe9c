"""A kernel as loops: blocks of rows, sweeps over tiles of a lane, and what is stored at the end."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rewright.ir.dims import at_most
from rewright.ir.graph import Graph
from rewright.ir.sizes import size_symbols
from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel, Product, Sweep
from rewright.optimize.phases import Mask, Variants, variants
from rewright.optimize.planning.dense import FEW
from rewright.optimize.printing.arguments import arguments
from rewright.optimize.printing.loops.context import (
    BEGIN,
    COLUMNS,
    FIRST,
    ROW,
    ROWS,
    VECTOR,
    Context,
    Tiling,
    padded_size,
)
from rewright.optimize.printing.loops.interchange import interchanged, runs_across
from rewright.optimize.printing.loops.packing import pack_left
from rewright.optimize.printing.loops.rows import (
    all_of_tile,
    bind_state,
    enter_row,
    finite_too,
    simpler,
    tile_condition,
)
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.states import settle, start
from rewright.optimize.printing.loops.tile import lowered_tile
from rewright.optimize.printing.loops.values import put
from rewright.optimize.printing.places import Bounds
from rewright.optimize.printing.statements import (
    Combine,
    Element,
    Function,
    If,
    Leave,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    Statement,
    call,
    fold_left,
    total,
    whole,
)
from rewright.optimize.scalars.expressions import Expression, Table
from rewright.optimize.scalars.ranges import narrowed
from rewright.optimize.scalars.values import Chosen, specialise

SHORT = 128
"""Elements of a lane that are one tile, which saves the work between two tiles."""


def with_few_rows(kernels: Sequence[Kernel]) -> frozenset[str]:
    """The kernels that read what few rows are multiplied with as it lies, by name.

    Products of tiles are summed in another order then. What is computed again in another kernel has to be equal in
    every bit, so that one with products has to be the only one.
    """
    multiplying = {k.name for k in kernels if k.has_products}
    few = {k.name for k in kernels if at_most(k.row.size, FEW) is True}
    return frozenset(few - multiplying if len(multiplying) > 1 else few)


def lower(
    graph: Graph,
    table: Table,
    kernel: Kernel,
    tiling: Tiling | None = None,
    prefix: str = "",
    reads_rows: bool = False,
) -> Function:
    """A kernel as loops; ``prefix`` is put before its name, ``reads_rows`` is what ``with_few_rows`` says of it."""
    is_across = runs_across(kernel) and (tiling is not None or _fills_vectors(kernel))
    k = Context(graph, table, kernel, tiling or choose_tiling(kernel), is_across, reads_rows)
    k.ranges.update({loop.name: (0, loop.size - 1) for loop in kernel.grid})
    k.ranges[k.kernel.row.name] = (0, k.kernel.row.size - 1)
    if kernel.features:
        k.ranges[kernel.features.name] = (0, kernel.features.size - 1)
    with k.scopes.block(*(loop.name for loop in kernel.grid)) as task, k.scopes.block() as block:
        block.add(
            Let("rows", call("least", whole(k.block), call("subtract", whole(k.kernel.row.size), FIRST)), DType.I64)
        )
        for sweep in kernel.sweeps:
            _sweep(k, sweep)
        if kernel.finals:
            _finals(k)
    return Function(
        prefix + kernel.name,
        arguments(graph, kernel),
        kernel.grid,
        k.kernel.row.size,
        k.block,
        tuple(k.buffers),
        task.body,
        block.body,
        k.real,
        symbols=size_symbols(graph),
        guards=tuple(k.guards),
    )


def choose_tiling(kernel: Kernel) -> Tiling:
    """Tiles of products fit the first cache; rows of elementwise work are long and few, or many and short."""
    if runs_across(kernel) and _fills_vectors(kernel):
        return Tiling(128, 64)
    if not kernel.has_products:
        return Tiling(8, 1024)
    is_short = all(at_most(sweep.lane.size, SHORT) is True for sweep in kernel.sweeps)
    return Tiling(64 if at_most(kernel.row.size, 64) is True else 48, SHORT if is_short else 64)


def _fills_vectors(kernel: Kernel) -> bool:
    """Whether rows may be as many as a vector has elements, and so the innermost loop."""
    return at_most(VECTOR, kernel.row.size) is not False  # fewer rows are no innermost loop


def _sweep(k: Context, sweep: Sweep) -> None:
    """States, the loop over tiles, and the ends of the states."""
    block = k.scopes.here
    size = sweep.lane.size
    lanes = min(k.tiling.lanes, padded_size(size)) if isinstance(size, int) else k.tiling.lanes
    k.ranges[sweep.lane.name] = (0, sweep.lane.size - 1)
    k.ranges.update({p.depth.name: (0, p.depth.size - 1) for p in sweep.products})
    for running in sweep.running:
        start(k, block, running)
    left = {p.value.number: pack_left(k, block, p) for p in sweep.products}
    with k.scopes.block() as tile:
        tile.add(Let("cols", call("least", whole(lanes), call("subtract", whole(sweep.lane.size), BEGIN)), DType.I64))
        found = variants(k.table, sweep)
        if found.skip or found.special or found.plain:
            bounds = _bounds(k, sweep)
            for number, condition in enumerate(found.conditions):
                tile.add(Let(f"known{number}", tile_condition(condition, bounds), DType.I32))
        _skip(k, tile, sweep, found)
        if found.read is not None and sweep.products:
            _skip_by_data(k, tile, sweep, found.read)
        tile.add(*_cases(k, tile, sweep, found, lanes, left))
        _stop(k, tile, sweep)
    block.add(Loop("begin", whole(sweep.lane.size), tile.body, step=whole(lanes)))
    if sweep.remainders:
        with k.scopes.block(k.kernel.row.name) as row:
            enter_row(k, row)
            settle(k, row, sweep)
        block.add(Loop("r", ROWS, row.body, note="means were estimated; what is left of them tells how well"))
    k.done.extend(sweep.running)


def _bounds(k: Context, sweep: Sweep) -> Bounds:
    """The first and the last value of loop indices in a tile: those of a loop inside of it take all of theirs."""
    bounds: dict[str, tuple[Scalar, Scalar]] = {n: (whole(low), whole(high)) for n, (low, high) in k.ranges.items()}
    bounds |= {loop.name: (Name(loop.name), Name(loop.name)) for loop in k.kernel.grid}
    bounds[k.kernel.row.name] = FIRST, total(FIRST, ROWS, -1)
    bounds[sweep.lane.name] = BEGIN, total(BEGIN, COLUMNS, -1)
    return bounds


def _skip(k: Context, tile: Scope, sweep: Sweep, found: Variants) -> None:
    """Leave a tile that masks leave nothing of."""
    tests = [simpler(k, tile, sweep, (one,), found.taken[one,]) for one in found.skip]
    some = [test for test in tests if test is not None]
    if some:
        tile.add(If(fold_left("or", some), (Leave("continue"),), note="the mask absorbs the whole tile"))


def _skip_by_data(k: Context, tile: Scope, sweep: Sweep, mask: Mask) -> None:
    """Leave a tile of which a mask that is read leaves nothing, before its products."""
    empty = Name(k.scopes.fresh("empty"))
    tile.add(Let(empty.text, whole(1), DType.I32, changes=True))
    tile.add(*all_of_tile(k, sweep, mask.condition, empty, mask.absorbs))
    test = finite_too(k, tile, sweep, call("to_bool", empty), mask.taken)
    if test is not None:
        tile.add(If(test, (Leave("continue"),), note="the mask, as it was read, absorbs the whole tile"))


def _cases(
    k: Context, tile: Scope, sweep: Sweep, found: Variants, lanes: int, left: Mapping[int, str]
) -> tuple[Statement, ...]:
    """The work of a tile: simpler where the values of conditions are known in all of it."""
    tests = [((one,), work) for one, work in found.special] + ([found.plain] if found.plain else [])
    cases: list[tuple[Scalar, tuple[Statement, ...]]] = []
    for test, work in tests:
        condition = simpler(k, tile, sweep, test, found.taken[test])
        if condition is not None:
            known = {found.conditions[n]: holds for n, holds in test}
            with _known(k, sweep, known):
                cases.append((condition, lowered_tile(k, _products_under(k, sweep, known), work, lanes, left)))
    statements = lowered_tile(k, sweep, found.mixed, lanes, left)
    for condition, body in reversed(cases):
        statements = (If(condition, body, statements),)
    return statements


@contextmanager
def _known(k: Context, sweep: Sweep, known: Chosen) -> Generator[None]:
    """Meanwhile the lane ends where conditions have their values: what is read of one of two caches is in range."""
    lane = sweep.lane.name
    whole_lane = k.ranges[lane]
    for condition, holds in known.items():
        place = condition.arguments[0].index if condition.op == "at_least_zero" else None
        if place is not None and [str(atom) for atom, _ in place.terms] == [lane]:
            k.ranges[lane] = narrowed(k.ranges[lane], place.terms[0][1], place.constant, holds)
    yield
    k.ranges[lane] = whole_lane


def _products_under(k: Context, sweep: Sweep, known: Chosen) -> Sweep:
    """The sweep where conditions have their values, as far as its products need nothing to be finite for that."""
    products: list[Product] = []
    for product in sweep.products:
        taken: list[Expression] = []
        right = specialise(k.table, product.right, known, taken)
        products.append(product if taken else replace(product, right=right))
    return replace(sweep, products=tuple(products))


def _stop(k: Context, tile: Scope, sweep: Sweep) -> None:
    """Stop where every state has the value that nothing changes."""
    kinds = {r.value.number: r.value.bound.kind for r in sweep.running if r.value.bound}
    if not kinds or not {*kinds.values()} <= {"or", "and"} or sweep.stores:
        return
    settled = Name("settled")
    tile.add(Let(settled.text, Number(True, DType.BOOL), DType.BOOL, changes=True))
    for number, kind in kinds.items():
        memory = Element(k.states[number], ROW)
        test = memory if kind == "or" else call("not_bool", memory)
        tile.add(Loop("r", ROWS, (Combine("and", settled, test),)))
    tile.add(If(settled, (Leave("break", "nothing changes any more"),)))


def _finals(k: Context) -> None:
    """What is stored once for a row."""
    feature = k.kernel.features
    is_wide = {s.tensor: feature is not None and feature.name in s.axes for s in k.kernel.finals}
    with k.scopes.block(k.kernel.row.name) as row:
        enter_row(k, row)
        for store in k.kernel.finals:
            if not is_wide[store.tensor]:
                row.add(put(k, store, store.value))
        if feature is not None and any(is_wide.values()):
            with k.scopes.block(feature.name) as loop:
                loop.add(Let(feature.name, Name("f"), DType.I64))
                for running in k.done:
                    if running.factors is not None:
                        bind_state(k, loop, running)
                for store in k.kernel.finals:
                    if is_wide[store.tensor]:
                        loop.add(put(k, store, store.value))
            row.add(Loop("f", whole(feature.size), loop.body, reductions=()))
    k.scopes.here.add(*(interchanged(k, row.body) if k.is_across else (Loop("r", ROWS, row.body),)))
