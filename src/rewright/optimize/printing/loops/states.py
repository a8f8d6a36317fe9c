"""Running states in loops: the partial result of a tile, and how a state takes it in and follows the others."""

from __future__ import annotations

from rewright.ir.dims import at_most
from rewright.ir.types import DType
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.online.update import Estimate
from rewright.optimize.printing.loops.context import BEGIN, COLUMNS, ROW, ROWS, Context
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.values import value, writer
from rewright.optimize.printing.statements import (
    Assign,
    Combine,
    Element,
    If,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    call,
    element_at,
    select,
    total,
    unequal,
    whole,
)
from rewright.optimize.printing.states import gaps, join_results, known_to_growth, old
from rewright.optimize.scalars.expressions import Expression

SHORT = 16
"""Sums of so few elements, as those of a window, are double throughout: there is no vector of them to fill."""
FEATURE = Name("f")
"""The counter of features."""


def is_state(e: Expression) -> bool:
    """Whether a value is a reduction, or the placeholder of one: no tensor in memory has it."""
    return e.op == "reduce" or (e.op == "load" and e.tensor < 0)


def state_dtype(k: Context, running: Running) -> DType:
    """The dtype of a state in memory: sums of many tiles are kept in double, one addition a row and tile."""
    assert running.value.bound is not None
    is_sum = running.value.bound.kind == "sum" and running.factors is None
    return DType.F64 if is_sum and running.value.dtype.is_float else k.computed(running.value.dtype)


def start(k: Context, block: Scope, running: Running) -> None:
    """The state before the first tile."""
    features = k.features if running.factors else 1
    count = (1 if running.is_shared else k.block) * features
    name = k.buffer("sum" if running.factors else "state", count, state_dtype(k, running))
    k.states[running.value.number] = name
    size = whole(features) if running.is_shared else total((ROWS, features))
    block.add(Loop("r", size, (Assign(Element(name, ROW), writer(k).first(running.value)),)))


def state(k: Context, running: Running) -> Element:
    """The state of a row, or of a feature of it."""
    name = k.states[running.value.number]
    if running.factors is None:
        return Element(name, ROW)
    return Element(name, FEATURE) if running.is_shared else element_at(name, (ROW, k.features), FEATURE)


def partial(
    k: Context, row: Scope, loop: Scope, sweep: Sweep, running: Running, body: Expression, inside: Scalar | None = None
) -> list[tuple[str, str]]:
    """The reduction of a tile; returns the reductions of the vector loop, each with its variable.

    Elements that are not ``inside`` of the tile are left out.
    """
    assert running.value.bound is not None
    number, kind = running.value.number, running.value.bound.kind
    part, is_flag = f"part{number}", running.value.dtype is DType.BOOL
    is_wide = kind == "sum" and state_dtype(k, running) is DType.F64 and at_most(sweep.lane.size, SHORT) is True
    dtype = DType.I32 if is_flag else DType.F64 if is_wide else k.computed(running.value.dtype)
    row.add(Let(part, writer(k).first(running.value), dtype, changes=True))
    lowered = value(k, body)
    if inside is not None:
        lowered = select(inside, lowered, writer(k).first(running.value))
    loop.add(Combine(kind, Name(part), call("flag", lowered) if is_flag else lowered))
    reductions = [(kind, part)]
    if number in sweep.exact:
        row.add(Let(f"nan{number}", whole(0), DType.I32, changes=True))
        loop.add(Combine("or", Name(f"nan{number}"), call("flag", unequal(lowered, lowered))))
        reductions.append(("or", f"nan{number}"))
    return reductions


def renew(k: Context, row: Scope, sweep: Sweep, running: Running) -> None:
    """The new state after a tile."""
    number, dtype = running.value.number, running.value.dtype
    assert running.value.bound is not None
    memory, kind, real = state(k, running), running.value.bound.kind, k.computed(running.value.dtype)
    factor = _factor(k, row, running)
    lets, before = writer(k).move(running, memory, factor, _new, BEGIN)
    row.add(*lets)
    part = Name(f"part{number}")
    if number in sweep.exact:
        nothing = Number(float("nan"), real)
        row.add(Assign(part, select(call("to_bool", Name(f"nan{number}")), nothing, part)))
    taken = call("to_bool", part) if dtype is DType.BOOL else part
    row.add(
        Let(f"old{number}", memory, real),
        Let(f"next{number}", join_results(kind, before, taken, dtype), state_dtype(k, running)),
        Assign(memory, Name(f"next{number}")),
        Let(f"new{number}", Name(f"next{number}"), real),
    )
    lets, row.names[number] = writer(k).reading(sweep, running.value, _new(running.value))
    row.add(*lets)
    row.names[k.table.renewed(running.value).number] = Name(f"new{number}")


def _new(e: Expression) -> Scalar:
    return Name(f"new{e.number}")


def renew_features(k: Context, row: Scope, sweep: Sweep, running: Running) -> None:
    """The states of a row's features before a tile is added to them; those that others grow by come after these."""
    if running.is_shared:
        return
    factor, growth, memory = _factor(k, row, running), running.update.growth, state(k, running)
    size = whole(k.features)
    if growth is not None:
        names = known_to_growth(running)
        for e in growth.coefficients:
            rate = k.scopes.fresh("rate")
            row.add(Let(rate, writer(k).inline(e, names), k.real))
            names[e.number] = Name(rate)
        grown = call("add", memory, writer(k).grow(growth, names, lambda e: _before(k, sweep, e), BEGIN))
        row.add(Loop("f", size, (Assign(memory, grown if factor is None else call("multiply", grown, factor)),)))
    elif factor is not None:
        loop = Loop("f", size, (Combine("product", memory, factor),))
        row.add(If(unequal(factor, Number(1.0, k.real)), (loop,)))


def _before(k: Context, sweep: Sweep, e: Expression) -> Scalar:
    """Another state before the tile: features are renewed after those that grow by them."""
    running = next(r for r in sweep.running if r.value.number == e.number)
    return old(e) if running.factors is None else state(k, running)


def settle(k: Context, row: Scope, sweep: Sweep) -> None:
    """The states of a row at the end of a sweep, moved from the last estimates of means to the means."""
    size, names = sweep.lane.size, gaps(k.table, sweep)
    by_number = {r.value.number: r for r in sweep.running}

    def of(e: Expression) -> Element:
        return state(k, by_number[e.number])

    for estimate, left in sweep.remainders:
        number = estimate.leaf.number
        rest = call("divide", of(left.value), call("counted", whole(size), dtype=DType.F64))
        scale = call("divide", Number(estimate.count, k.real), call("counted", whole(size), dtype=k.real))
        guess = call("multiply", call("narrowed", of(estimate.sum), dtype=k.real), scale)
        row.add(
            Let(f"rest{number}", rest, DType.F64),
            Let(f"mean{number}", call("add", guess, Name(f"rest{number}")), DType.F64),
        )
    for running in sweep.settled:
        assert running.update.growth is not None
        grown = writer(k).grow(running.update.growth, names, of, whole(size))
        change = Combine("sum", of(running.value), grown)
        row.add(change if running.factors is None else Loop("f", whole(k.features), (change,)))
    for estimate, _ in sweep.remainders:
        mean = call("multiply", call("counted", whole(size), dtype=DType.F64), Name(f"mean{estimate.leaf.number}"))
        row.add(Assign(of(estimate.sum), mean))


def estimate_mean(k: Context, row: Scope, estimate: Estimate) -> None:
    """What is taken for a value that is known at the end only, from before and after the tile."""
    row.add(*writer(k).guesses(estimate, _new, old, total(BEGIN, COLUMNS), BEGIN))
    row.names[estimate.leaf.number] = Name(f"guess{estimate.leaf.number}")


def _factor(k: Context, row: Scope, running: Running) -> Scalar | None:
    """What the state is multiplied with when the states that it follows have changed."""
    factor = writer(k).factor(running)
    if factor is None:
        return None
    known = next((s for s in row.statements if isinstance(s, Let) and s.value == factor), None)
    if known is not None:
        return Name(known.name)
    name = k.scopes.fresh("factor")
    row.add(Let(name, factor, k.real))
    return Name(name)
