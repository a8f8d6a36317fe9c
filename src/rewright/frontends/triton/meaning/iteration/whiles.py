"""``while`` loops that count: ``while start < end: ...; start += step`` is a loop from ``start`` to ``end``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rewright.frontends.triton.meaning.addresses.indices import variables
from rewright.frontends.triton.meaning.iteration.loops import Loop, Probe, counted
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import Truth, Value, Whole
from rewright.frontends.triton.text import Block, Kind, Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.terms.index import Index

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_COUNTER = "%counter of "
_REFUSED = "a while loop is read where its condition compares a number that grows by a step with where it ends"


@dataclass(frozen=True, slots=True)
class _Ends:
    """Which carried number counts, by which step, and below which numbers."""

    number: int
    step: int
    high: tuple[Index, ...]


@MEANINGS.enter("scf.while")
def looped_while(reader: Reader, op: Operation) -> tuple[Value, ...]:
    """The values that a loop carries when its condition is false."""
    test, body = op.regions
    end = test.operations[-1]
    names = [name for name, _ in test.arguments]
    if end.name != "scf.condition" or any(name not in names for name in end.operands[1:]):
        raise UnsupportedOperator("a while loop whose condition hands on other values than those that it carries")
    order = [names.index(name) for name in end.operands[1:]]
    start = reader.operands(op)
    whole = _joined(op, test, body)
    aliases = {name: number for (name, _), number in zip(body.arguments, order, strict=True)}
    try:
        found = _ends(reader, whole, start, aliases, end.operands[0])
    except UnsupportedOperator:
        by_numbers = _run_by_numbers(reader, op, start)
        if by_numbers is None:
            raise
        return by_numbers
    counter = start[found.number]
    assert isinstance(counter, Whole)
    count = counted(reader, counter.index, found.high, Index(found.step))
    ends = start if count.most == 0 else Loop(reader, whole, count, start, counter, aliases=aliases).run()
    return tuple(ends[number] for number in order)


def _run_by_numbers(reader: Reader, op: Operation, start: Sequence[Value]) -> tuple[Value, ...] | None:
    """What is carried in the end where all of it is numbers, as in a search of a table; None elsewhere."""
    test, body = op.regions
    end, values = test.operations[-1], tuple(start)
    for step in range(_MOST_STEPS):
        decided: bool | None = None
        if all(isinstance(v, Whole) and not v.shape and v.index.as_size() is not None for v in values):
            reader.values.update(zip((name for name, _ in test.arguments), values, strict=True))
            for operation in test.operations[:-1]:
                reader.operation(operation)
            condition = reader.values[end.operands[0]]
            decided = reader.decided(condition) if isinstance(condition, Truth) else None
        if decided is None and not step:
            return None
        if decided is None:
            break
        values = tuple(reader.values[name] for name in end.operands[1:])
        if not decided:
            return values
        reader.values.update(zip((name for name, _ in body.arguments), values, strict=True))
        values = reader.run(body)
    raise UnsupportedOperator(_REFUSED)


_MOST_STEPS = 64
"""Iterations of a loop over numbers."""


def _joined(op: Operation, test: Block, body: Block) -> Operation:
    """The loop as one that has the condition at the start of its body, and a counter before what it carries."""
    counter = (f"{_COUNTER}{op.location.line}", Kind("i32"))
    operations = (*test.operations[:-1], *body.operations)
    return replace(op, regions=(Block((counter, *test.arguments), operations),))


def _ends(reader: Reader, op: Operation, start: Sequence[Value], aliases: dict[str, int], condition: str) -> _Ends:
    probe = Probe(reader, op, start, aliases)
    truth, steps = probe.condition(condition), probe.steps
    if not isinstance(truth, Truth) or truth.data is not None or not truth.parts or steps is None:
        raise UnsupportedOperator(_REFUSED)
    sizes = [step.as_size() for step in steps if step is not None]
    if not all(isinstance(size, int) and size >= 0 for size in sizes):  # the probe counts from zero on
        raise UnsupportedOperator("a while loop in which a number falls is not read")
    for number, value in enumerate(start):
        step = steps[number]
        by = None if step is None else step.as_size()
        if not isinstance(value, Whole) or not isinstance(by, int) or by < 1:
            continue
        high = [part + value.index + probe.variable(number) + 1 for part in truth.parts]
        if not any(probe.name(n) in variables(end) for end in high for n in range(len(start))):
            return _Ends(number, by, tuple(high))
    raise UnsupportedOperator(_REFUSED)
