"""Rows of a block: what is known of a finished row, and whether it is finite, so that a mask makes a tile simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rewright.ir.types import DType
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.phases import Test
from rewright.optimize.printing.loops.context import BEGIN, COLUMN, COLUMNS, FIRST, ROW, ROWS, Context
from rewright.optimize.printing.loops.scopes import Scope
from rewright.optimize.printing.loops.states import state, state_dtype
from rewright.optimize.printing.loops.values import value, writer
from rewright.optimize.printing.places import FLOOR, Bounds, ends
from rewright.optimize.printing.statements import (
    Combine,
    Element,
    If,
    Leave,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    Statement,
    call,
    equal,
    fold_left,
    total,
    whole,
)
from rewright.optimize.scalars.constants import closed_value
from rewright.optimize.scalars.expressions import Expression, contains
from rewright.optimize.scalars.finite import needs
from rewright.optimize.scalars.simplify import as_index


def enter_row(k: Context, row: Scope) -> None:
    """The row index, and reductions that are finished."""
    row.add(Let(k.kernel.row.name, total(FIRST, ROW), DType.I64))
    for running in k.done:
        if running.factors is None:
            bind_state(k, row, running)


def bind_state(k: Context, scope: Scope, running: Running) -> None:
    """Give the value of a finished reduction a name."""
    text = writer(k).finish(running, state(k, running), lambda e: Element(k.states[e.number], ROW))
    finish = running.update.finish
    if finish is not None:
        inverse = _wide_inverse(k, finish)
        if inverse is None:
            text = call("multiply", text, value(k, finish))
        else:
            text = call("narrowed", call("multiply", text, inverse), dtype=k.real)
    name = k.scopes.fresh("v")
    scope.add(Let(name, text, k.computed(running.value.dtype)))
    scope.names[running.value.number] = Name(name)


def _wide_inverse(k: Context, finish: Expression) -> Scalar | None:
    """One over a sum of the row in double, as its state is; None for another value."""
    if finish.op != "divide" or closed_value(finish.arguments[0]) != 1:
        return None
    sum_ = next((r for r in k.done if r.value is finish.arguments[1]), None)
    if sum_ is None or state_dtype(k, sum_) is not DType.F64 or sum_.update.finish is not None:
        return None
    row = next(s for s in reversed(k.scopes.stack) if sum_.value.number in s.names)
    name = k.scopes.fresh("inverse")
    row.add(Let(name, call("divide", Number(1.0, DType.F64), state(k, sum_)), DType.F64))
    return Name(name)


def tile_condition(e: Expression, bounds: Bounds) -> Scalar:
    """Whether a condition on indices holds in a tile: 1 everywhere, 0 nowhere, -1 where it is not known."""
    if e.op == "constant":
        return whole(1 if e.value else 0)
    if e.op in ("and", "or"):
        first, second = (tile_condition(a, bounds) for a in e.arguments)
        return call("both" if e.op == "and" else "either", first, second)
    if e.op == "not":
        return call("neither", tile_condition(e.arguments[0], bounds))
    if e.op in ("at_least_zero", "is_zero"):
        index = as_index(e.arguments[0])
        found = None if index is None else ends(index, bounds, FLOOR)
        if found is not None:
            return call(f"everywhere_{e.op.removeprefix('is_')}", *found)
    return whole(-1)


def simpler(k: Context, tile: Scope, sweep: Sweep, test: Test, taken: Iterable[Expression]) -> Scalar | None:
    """Whether conditions have these values in the whole tile, and what is taken to be finite then is so.

    None where that is not known before the tile is computed.
    """
    known = fold_left("and", [equal(Name(f"known{n}"), whole(int(v))) for n, v in test])
    return finite_too(k, tile, sweep, known, taken)


def finite_too(k: Context, tile: Scope, sweep: Sweep, known: Scalar, taken: Iterable[Expression]) -> Scalar | None:
    """Whether something holds, and what is taken to be finite then is so; None where the tile itself has to tell."""
    values = needs(k.graph, k.table, k.kernel, sweep, taken)
    if values is None:
        return None
    if not values:
        return known
    flag = Name(k.scopes.fresh("simpler"))
    note = "a row without elements is no number, masked or not"
    tile.add(Let(flag.text, call("flag", known), DType.I32, note, changes=True))
    with k.scopes.block() as inner:
        for e in values:
            inner.add(*_check(k, sweep, e, flag))
    tile.add(If(call("to_bool", flag), inner.body))
    return call("to_bool", flag)


def _check(k: Context, sweep: Sweep, e: Expression, flag: Name) -> tuple[Statement, ...]:
    """Unset a flag where a value of a row, or of an element of the lane, is not finite."""
    return _over_tile(k, sweep, e, flag, lambda: call("is_bounded", value(k, e), dtype=k.real))


def all_of_tile(k: Context, sweep: Sweep, mask: Expression, flag: Name, wanted: bool) -> tuple[Statement, ...]:
    """Unset a flag where a condition has another value than the wanted one."""
    return _over_tile(k, sweep, mask, flag, lambda: value(k, mask) if wanted else call("not_bool", value(k, mask)))


def _over_tile(
    k: Context, sweep: Sweep, e: Expression, flag: Name, test: Callable[[], Scalar]
) -> tuple[Statement, ...]:
    """Loops over what a value depends on, which unset a flag where a test of it fails."""
    with k.scopes.block(k.kernel.row.name, sweep.lane.name) as inner:
        has_rows = k.kernel.row.name in e.free or any(contains(e, r.value) for r in k.done)
        has_lanes = sweep.lane.name in e.free
        if has_rows:
            enter_row(k, inner)
        if has_lanes:
            inner.add(Let(sweep.lane.name, total(BEGIN, COLUMN), DType.I64))
        inner.add(Combine("and", flag, call("flag", test())))
    body = inner.body
    if has_lanes:
        body = (Loop("c", COLUMNS, body, reductions=None if has_rows else (("and", flag.text),)),)
    if not has_rows:
        return body
    return (Loop("r", ROWS, (*body, If(call("is_zero", flag), (Leave("break"),)))),)
