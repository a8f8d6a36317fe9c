"""Rows as the innermost loop, where neighbours in memory are rows: what one row does is done for a vector of them.

The statements of a row, some of them loops over the lane, become loops over rows: each loop over the lane has one over
rows inside of it. A variable of a row that several of these loops have becomes an element of memory for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rewright.ir.types import DType
from rewright.optimize.kernel import Kernel
from rewright.optimize.printing.loops.context import ROW, ROWS, Context
from rewright.optimize.printing.statements import (
    Assign,
    Call,
    Combine,
    Element,
    Let,
    Load,
    Loop,
    Name,
    Number,
    Scalar,
    Statement,
    Store,
    Sum,
)
from rewright.optimize.printing.variables import names
from rewright.optimize.scalars.expressions import Expression, walk
from rewright.optimize.scalars.simplify import as_index

Group = tuple[Loop | None, list[Statement]]
"""Statements of a row side by side, or those of its loop over the lane, with that."""


def runs_across(kernel: Kernel) -> bool:
    """Whether most of what a kernel reads and writes lies in memory with rows side by side, and not lanes.

    What has one element for a row, or one for an element of the lane, is read once for many others in either order.
    """
    if kernel.has_products or kernel.rows is None:
        return False
    across = along = 0
    for sweep in kernel.sweeps:
        row, lane = kernel.rows.name, sweep.lane.name
        values = [r.body for r in sweep.running] + [s.value for s in sweep.stores]
        loads = [e for e in walk(*values) if e.op == "load" and e.tensor >= 0 and {row, lane} <= e.free]
        steps = [_steps(e.arguments[-1]) for e in loads] + [{s.axes[-1]: 1} for s in sweep.stores if s.axes]
        across += sum(s.get(row) == 1 and lane not in s for s in steps)
        along += sum(s.get(lane) == 1 for s in steps)
    return across > along


def _steps(place: Expression) -> Mapping[str, object]:
    """By loop index, how far apart in memory elements are that are read one after the other."""
    index = as_index(place)
    return {} if index is None else {str(atom): factor for atom, factor in index.terms}


def interchanged(k: Context, body: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements of a row as loops over rows, the lane outside of them."""
    groups = list(_groups(body))
    homes: dict[str, int] = {}
    lets: dict[str, Let] = {}
    for number, (loop, statements) in enumerate(groups):
        for s in statements if loop is None else ():
            if isinstance(s, Let):
                homes[s.name], lets[s.name] = number, s
    copied = {name for name, let in lets.items() if _is_place(let, lets)}
    used = {n for number, (_, own) in enumerate(groups) for n in _names(own) if homes.get(n, number) != number}
    kept = {n: Element(k.buffer("row", k.block, lets[n].dtype), ROW) for n in lets if n in used - copied}
    found: list[Statement] = []
    for number, (loop, statements) in enumerate(groups):
        wanted = _needed(statements, lets, copied)
        head = [lets[n] for n in lets if n in wanted and homes[n] != number]
        inner = Loop("r", ROWS, tuple(_moved(s, kept) for s in (*head, *statements)), reductions=())
        found.append(inner if loop is None else replace(loop, body=(inner,), reductions=None))
    return tuple(found)


def _groups(body: Sequence[Statement]) -> Iterator[Group]:
    """Statements between loops over the lane, and these."""
    some: list[Statement] = []
    for s in body:
        if not isinstance(s, Loop):
            some.append(s)
            continue
        if some:
            yield None, some
        some = []
        yield s, list(s.body)
    if some:
        yield None, some


def _is_place(let: Let, lets: Mapping[str, Let]) -> bool:
    """Whether a variable is a sum of counters, which is cheaper to compute again than to read."""
    found = [let.value]
    while found:
        s = found.pop()
        if isinstance(s, Name) and s.text in lets:
            s = lets[s.text].value
        if isinstance(s, Sum):
            found += [term for term, _ in s.terms]
        elif not isinstance(s, Name):
            return False
    return not let.changes and let.dtype is DType.I64


def _needed(statements: Sequence[Statement], lets: Mapping[str, Let], copied: set[str]) -> set[str]:
    """The variables that are computed again for statements, with those that they are computed from."""
    found: set[str] = set()
    stack = [n for n in _names(statements) if n in copied]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += [n for n in names(lets[name].value) if n in copied]
    return found


def _names(statements: Iterable[Statement]) -> set[str]:
    """The variables that statements use."""
    return {name for s in statements for value in _parts(s) for name in names(value)}


def _parts(s: Statement) -> Iterator[Scalar]:
    match s:
        case Let():
            yield s.value
        case Assign() | Combine():
            yield from (s.target, s.value)
        case Store():
            yield from (e for e in (s.place, s.value, s.guard) if e is not None)
        case _:
            raise AssertionError(f"a row has no {type(s).__name__} here")


def _moved(s: Statement, kept: Mapping[str, Element]) -> Statement:
    """A statement with the variables that are in memory."""
    match s:
        case Let():
            value = _read(s.value, kept)
            return Assign(kept[s.name], value, s.note) if s.name in kept else replace(s, value=value)
        case Assign() | Combine():
            target = _read(s.target, kept)
            assert isinstance(target, (Name, Element))
            return replace(s, target=target, value=_read(s.value, kept))
        case Store():
            return replace(s, place=_read(s.place, kept), value=_read(s.value, kept))
        case _:
            raise AssertionError(f"a row has no {type(s).__name__} here")


def _read(s: Scalar, kept: Mapping[str, Element]) -> Scalar:
    match s:
        case Name():
            return kept.get(s.text, s)
        case Call():
            return replace(s, arguments=tuple(_read(a, kept) for a in s.arguments))
        case Sum():
            return replace(s, terms=tuple((_read(a, kept), factor) for a, factor in s.terms))
        case Element() | Load():
            return replace(s, place=_read(s.place, kept))
        case Number():
            return s


__all__ = ["interchanged", "runs_across"]
