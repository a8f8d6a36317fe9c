"""States of reductions as tiles: how they start, follow other states after a tile, and end."""

from __future__ import annotations

from rewright.ir.errors import RewrightError
from rewright.ir.types import DType
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.online.update import Estimate
from rewright.optimize.printing.statements import Assign, Let, Name, Number, Scalar, call, select, total, unequal, whole
from rewright.optimize.printing.states import known_to_growth, old
from rewright.optimize.printing.tiles.context import BEGIN, BLOCK_LANES, BLOCK_ROWS, Block, Context, padded_size
from rewright.optimize.printing.tiles.values import value, writer
from rewright.optimize.scalars.expressions import Expression

_REDUCED = {"sum": "sum", "maximum": "max", "minimum": "min", "or": "max", "and": "min"}
_JOINED = {"sum": "add", "max": "most", "min": "least"}
NOTHING = Number(float("nan"), DType.F32)


def state_dtype(dtype: DType) -> DType:
    """The dtype of a state: flags are numbers, as their extrema are taken."""
    if dtype is DType.BOOL:
        return DType.I32
    return DType.F32 if dtype.is_float and dtype is not DType.F64 else dtype


def first(k: Context, c: Block, e: Expression) -> Number:
    """What a reduction has before its first element, as its state has it."""
    found = writer(k, c).first(e)
    return Number(int(found.value), DType.I32) if e.dtype is DType.BOOL else found


def start(k: Context, c: Block, running: Running) -> None:
    """The state before the first tile."""
    name = k.states[running.value.number] = k.fresh("state")
    rows, width = whole(1) if running.is_shared else BLOCK_ROWS, 1
    if running.factors is not None:
        assert k.kernel.features is not None
        width = padded_size(k.kernel.features.count)
    dtype = state_dtype(running.value.dtype)
    c.add(Let(name, call("full", rows, whole(width), first(k, c, running.value), dtype=dtype)))


def state(k: Context, e: Expression) -> Name:
    """The state of a reduction."""
    return Name(k.states[e.number])


def finish_states(k: Context, c: Block) -> None:
    """Names for reductions that are finished."""
    for running in k.done:
        if running.factors is None and running.value.number not in c.names:
            c.names[running.value.number] = finish_reduction(k, c, running)


def finish_reduction(k: Context, c: Block, running: Running) -> Name:
    """A finished reduction."""
    text: Scalar = state(k, running.value)
    if running.value.dtype is DType.BOOL:
        text = call("to_bool", text)
    text = writer(k, c).finish(running, text, lambda e: state(k, e))
    if running.update.finish is not None:
        text = call("multiply", text, value(k, c, running.update.finish))
    name = k.fresh("v")
    c.add(Let(name, text))
    return Name(name)


def estimate_mean(k: Context, c: Block, sweep: Sweep, estimate: Estimate) -> None:
    """What is taken for a value that is known at the end only, from before and after the tile."""
    seen = call("least", total(BEGIN, BLOCK_LANES), whole(sweep.lane.size))
    c.add(*writer(k, c).guesses(estimate, lambda e: state(k, e), old, seen, BEGIN))
    c.names[estimate.leaf.number] = Name(f"guess{estimate.leaf.number}")


def grow_state(k: Context, c: Block, running: Running) -> Scalar:
    """A state with what it grows by for all that was seen; as it is where it does not grow."""
    if running.update.growth is None:
        return state(k, running.value)
    added = writer(k, c).grow(running.update.growth, known_to_growth(running), old, BEGIN)
    return call("add", state(k, running.value), added)


def factor(k: Context, c: Block, running: Running) -> Scalar | None:
    """What the state is multiplied with when the states that it follows have changed."""
    factor = running.update.factor
    if factor is not None and factor.number not in c.names:
        text = writer(k, c).factor(running)
        assert text is not None
        name = k.fresh("factor")
        c.add(Let(name, text))
        c.names[factor.number] = Name(name)
    return None if factor is None else c.names[factor.number]


def renew(k: Context, c: Block, sweep: Sweep, running: Running, source: Expression) -> None:
    """The new state of every row after a tile."""
    e, memory = running.value, state(k, running.value)
    assert e.bound is not None
    number, kind = e.number, _REDUCED.get(e.bound.kind)
    scale = factor(k, c, running)
    _reduce(k, c, sweep, running, source)
    if kind is None:
        raise RewrightError(f"no Triton for a reduction of kind {e.bound.kind}; use target='cpu'")
    part = Name(f"part{number}")
    c.add(Let(part.text, call(f"row_{kind}", Name(f"whole{number}"))), Let(f"old{number}", memory))
    lets, before = writer(k, c).move(running, memory, scale, lambda x: state(k, x), BEGIN)
    c.add(*lets)
    is_exact = number in sweep.exact
    if is_exact:
        found = call("row_max", call("cast", unequal(Name(f"whole{number}"), Name(f"whole{number}")), dtype=DType.I32))
        c.add(Assign(part, select(call("compare_GT", found, whole(0)), NOTHING, part)))
    joint = call(_JOINED[kind], before, part)
    if is_exact:  # no maximum or minimum of the device keeps NaN
        joint = select(call("or", unequal(old(e), old(e)), unequal(part, part)), NOTHING, joint)
    c.add(Assign(memory, joint))
    lets, c.names[number] = writer(k, c).reading(sweep, e, memory)
    c.add(*lets)
    c.names[k.table.renewed(e).number] = memory


def _reduce(k: Context, c: Block, sweep: Sweep, running: Running, source: Expression) -> None:
    """What is reduced in a tile, as a whole tile: what the lane does not have is what the reduction starts with."""
    body, dtype = value(k, c, source), running.value.dtype
    if dtype is DType.BOOL:
        body = call("cast", body, dtype=DType.I32)
    if not dtype.is_float or not {k.kernel.row.name, sweep.lane.name} <= source.free:
        kind = DType.F32 if dtype.is_float else state_dtype(dtype)  # indices are narrower than their states
        body = call("add", body, call("zeros", BLOCK_ROWS, BLOCK_LANES, dtype=kind))
    inside = c.guards.get(sweep.lane.name)
    body = body if inside is None else select(inside, body, first(k, c, running.value))
    c.add(Let(f"whole{running.value.number}", body))
