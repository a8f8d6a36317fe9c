"""A kernel as statements on whole tensors, tile by tile: the reference of what the kernel IR means.

Every loop index is a dimension, in the order grid, rows, lane, depth, features, and an index is a tensor that
broadcasts; only the tiles of a lane are a loop. States follow each other as everywhere; speed is no aim.
"""

from __future__ import annotations

from rewright.optimize.kernel import Kernel, Running, Sweep
from rewright.optimize.kernel import Loop as Axis
from rewright.optimize.online.update import Estimate
from rewright.optimize.phases import body_of, new_estimates, phases
from rewright.optimize.planning.plan import Plan
from rewright.optimize.printing.arguments import arguments
from rewright.optimize.printing.loops.context import BEGIN, Context, Tiling
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.values import put, value, writer
from rewright.optimize.printing.statements import Assign, Function, Let, Loop, Name, Scalar, Sum, call, total, whole
from rewright.optimize.printing.states import join_results, old

TILE = 32
"""Elements of a lane in one step."""


def lower(plan: Plan, kernel: Kernel) -> Function:
    """A kernel on whole tensors."""
    k = Context(plan.graph, plan.table, kernel, Tiling(1, TILE))
    loops = [*kernel.grid, *([kernel.rows] if kernel.rows is not None else [])]
    features = [kernel.features] if kernel.features is not None else []
    with k.scopes.block(*(loop.name for loop in (*loops, *features))) as block:
        for number, loop in enumerate(loops):
            _axis(k, block, loop, number)
        for loop in features:
            _axis(k, block, loop, _rank(k) - 1)
        for sweep in kernel.sweeps:
            _sweep(k, block, sweep)
        for store in kernel.finals:
            block.add(put(k, store, store.value))
    found = arguments(plan.graph, kernel)
    return Function(kernel.name, found, kernel.grid, k.kernel.row.size, k.kernel.row.count, (), (), block.body, k.real)


def _rank(k: Context) -> int:
    """How many dimensions tensors have: those of the grid and of rows, and three for the lane, depth and features."""
    return len(k.kernel.grid) + (k.kernel.rows is not None) + 3


def _lane(k: Context) -> Sum:
    return whole(_rank(k) - 3)


def _axis(k: Context, block: Scope, loop: Axis, axis: int, part: tuple[Scalar, Scalar] | None = None) -> None:
    """A loop index, or a part of it, as a dimension."""
    start, stop = part or (whole(0), whole(loop.size))
    block.add(Let(loop.name, call("along", whole(axis), whole(_rank(k)), start, stop)))
    k.ranges[loop.name] = (0, loop.size - 1)


def _sweep(k: Context, block: Scope, sweep: Sweep) -> None:
    """One pass in tiles."""
    lane = sweep.lane
    for running in sweep.running:
        name = k.states[running.value.number] = f"state{running.value.number}"
        first = writer(k).first(running.value)
        block.add(Let(name, call("full", whole(_rank(k)), first, dtype=running.value.dtype)))
    for product in sweep.products:
        _axis(k, block, product.depth, _rank(k) - 2)
    with k.scopes.block(lane.name) as tile:
        _axis(k, tile, lane, _rank(k) - 3, (BEGIN, _count_seen(sweep)))
        for product in sweep.products:
            with k.scopes.block(product.depth.name) as inner:  # elsewhere the index may be that of a lane
                both = call("multiply", value(k, product.left), value(k, product.right))
            name = k.scopes.fresh("v")
            tile.add(*inner.body, Let(name, call("reduced_sum", both, whole(_rank(k) - 2))))
            tile.names[product.value.number] = Name(name)
        known: set[int] = set()
        for phase in phases(sweep, k.kernel):
            for estimate in new_estimates(phase, known):
                _estimate(k, tile, sweep, estimate)
            for running in phase:
                _renew(k, tile, sweep, running)
        for store in sweep.stores:
            tile.add(put(k, store, store.value))
    block.add(Loop("begin", whole(lane.size), tile.body, step=whole(TILE)))
    block.add(*writer(k).settle(k.table, sweep, lambda e: Name(k.states[e.number])))
    for running in sweep.running:
        _finish(k, block, running)


def _count_seen(sweep: Sweep) -> Scalar:
    """How many elements were seen after a tile."""
    return call("smaller", total(BEGIN, TILE), whole(sweep.lane.size))


def _state(k: Context, running: Running) -> Name:
    return Name(k.states[running.value.number])


def _finish(k: Context, block: Scope, running: Running) -> None:
    """A name for a finished reduction."""
    text = writer(k).finish(running, _state(k, running), lambda e: Name(k.states[e.number]))
    if running.update.finish is not None:
        text = call("multiply", text, value(k, running.update.finish))
    name = k.scopes.fresh("v")
    block.add(Let(name, text))
    block.names[running.value.number] = Name(name)


def _renew(k: Context, tile: Scope, sweep: Sweep, running: Running) -> None:
    """The new state after a tile."""
    e, memory = running.value, _state(k, running)
    assert e.bound is not None
    write, number, kind = writer(k), e.number, e.bound.kind
    factor = write.factor(running)
    if factor is not None:
        tile.add(Let(f"factor{number}", factor))
        factor = Name(f"factor{number}")
    body = value(k, body_of(k.table, running))
    if sweep.lane.name not in running.body.free:
        body = call("add", body, Sum(((Name(sweep.lane.name), 0),)))
    tile.add(Let(f"part{number}", call(f"reduced_{kind}", body, _lane(k))), Let(f"old{number}", memory))
    lets, before = write.move(running, memory, factor, lambda x: Name(k.states[x.number]), BEGIN)
    tile.add(*lets)
    tile.add(Assign(memory, join_results(kind, before, Name(f"part{number}"), e.dtype)))
    lets, tile.names[number] = write.reading(sweep, e, memory)
    tile.names[k.table.renewed(e).number] = memory
    tile.add(*lets)


def _estimate(k: Context, tile: Scope, sweep: Sweep, estimate: Estimate) -> None:
    """What is taken for a value that is known at the end only, from before and after the tile."""
    tile.add(*writer(k).guesses(estimate, lambda e: Name(k.states[e.number]), old, _count_seen(sweep), BEGIN))
    tile.names[estimate.leaf.number] = Name(f"guess{estimate.leaf.number}")
