"""Branches, calls and what only says something to a compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rewright import ops
from rewright.frontends.triton.meaning.operations.integers import negation
from rewright.frontends.triton.meaning.operations.library import library_call
from rewright.frontends.triton.meaning.table import MEANINGS, Found
from rewright.frontends.triton.meaning.values import Address, Either, Truth, Value
from rewright.frontends.triton.text import Block, Operation
from rewright.ir.errors import UnsupportedOperator

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


Result = TypeVar("Result")


@MEANINGS.enter("scf.if")
def branched(reader: Reader, op: Operation) -> tuple[Value, ...]:
    """One branch where the condition is decided, else both, and a choice between what they give."""
    (condition,) = reader.operands(op)
    truth = condition if isinstance(condition, Truth) else Truth((), (), reader.writer.data(condition))
    decided = reader.decided(truth)
    if decided is not None:
        chosen = op.regions[0] if decided else op.regions[1] if len(op.regions) > 1 else Block((), ())
        return reader.run(chosen)
    yes = _where(reader, truth, lambda: reader.run(op.regions[0]))
    no: tuple[Value, ...] = ()
    if len(op.regions) > 1:
        no = _where(reader, truth, lambda: reader.run(op.regions[1]), holds=False)
    return tuple(either(reader, truth, a, b) for a, b in zip(yes, no, strict=True)) if op.results else ()


def _where(reader: Reader, truth: Truth, does: Callable[[], Result], *, holds: bool = True) -> Result:
    """What is done where a condition of an instance holds, or where it does not."""
    negated, data = negation(truth), reader.writer.truth(truth)
    if holds:
        parts, own = truth.parts, None if negated is not None else data
    else:
        parts = () if negated is None else negated.parts
        own = reader.writer.apply(ops.Not(), data) if negated is None else None
    with reader.reached(parts, own):
        return does()


def either(reader: Reader, truth: Truth, yes: Value, no: Value) -> Value:
    """One value where a condition holds, else the other."""
    if yes == no:
        return yes
    if isinstance(yes, Address | Either) or isinstance(no, Address | Either):
        if not (isinstance(yes, Address | Either) and isinstance(no, Address | Either)):
            raise UnsupportedOperator("a choice between a pointer and a number is not read")
        return Either(truth, yes, no)
    spread, _ = reader.spread_condition(reader.writer.truth(truth), yes)
    found = reader.writer.select(spread, reader.writer.data(yes), reader.writer.data(no))
    return Truth((), found.shape, found) if isinstance(yes, Truth) else found


def on_either(reader: Reader, op: Operation, name: str, does: Callable[[], Found]) -> Found:
    """What an operation makes of one of two pointers, its operand of some name: one of what it makes of both."""
    chosen, before = reader.values[name], reader.values
    assert isinstance(chosen, Either)
    if chosen.condition.shape:
        return _on_lanes(reader, op, name, chosen, does)
    found: list[Found] = []
    for holds, value in ((True, chosen.yes), (False, chosen.no)):
        reader.values = {**before, name: value}
        try:
            found.append(_where(reader, chosen.condition, does, holds=holds))
        finally:
            reader.values = before
    yes, no = found
    if yes is None or no is None:
        return None
    if isinstance(yes, tuple) or isinstance(no, tuple):
        raise UnsupportedOperator(f"{op.name} of one of two pointers is not read")
    return either(reader, chosen.condition, yes, no)


def _on_lanes(reader: Reader, op: Operation, name: str, chosen: Either, does: Callable[[], Found]) -> Found:
    """The same where the lanes of a block have one of two pointers each: a load of both, masked."""
    masked = {"tt.load": 1, "tt.store": 2}.get(op.name)
    if name != op.operands[0] or (masked is None and op.name != "tt.addptr"):
        raise UnsupportedOperator(f"{op.name} of one of two pointers for each lane is not read")
    before, found = reader.values, list[Found]()
    mask = op.operands[masked] if masked is not None and len(op.operands) > masked else None
    for holds, value in ((True, chosen.yes), (False, chosen.no)):
        reader.values = {**before, name: value}
        if masked is not None and mask is None:
            raise UnsupportedOperator(f"{op.name} of one of two pointers for each lane has no mask")
        if mask is not None:
            reader.values[mask] = _both(reader, before[mask], chosen.condition, holds=holds)
        try:
            found.append(does())
        finally:
            reader.values = before
    yes, no = found
    if yes is None or no is None:
        return None
    assert not isinstance(yes, tuple) and not isinstance(no, tuple)
    return either(reader, chosen.condition, yes, no)


def _both(reader: Reader, mask: Value, condition: Truth, *, holds: bool) -> Truth:
    """A mask where a condition of lanes holds too, or where it does not."""
    data = reader.writer.truth(condition)
    own = mask if isinstance(mask, Truth) else Truth((), data.shape, reader.writer.data(mask))
    negated = negation(condition) or _unequal(reader, condition, own)
    if not holds and negated is None:
        other = reader.writer.apply(ops.Not(), data)
        return replace(own, data=other if own.data is None else reader.writer.apply(ops.And(), own.data, other))
    also = condition if holds or negated is None else negated
    joined = also.data if own.data is None or also.data is None else reader.writer.apply(ops.And(), own.data, also.data)
    return own.both(also, joined if joined is not None else own.data)


def _unequal(reader: Reader, condition: Truth, mask: Truth) -> Truth | None:
    """Where an equation does not hold whose one side is no smaller where a mask holds: the side is larger there."""
    for part in condition.parts:
        is_equation = condition.data is None and len(condition.parts) == 2 and part * -1 in condition.parts
        if is_equation and reader.implies(part, mask.parts):
            return replace(condition, parts=(part - 1,))
    return None


def branch(reader: Reader, op: Operation, blocks: dict[str, Block]) -> None:
    """The blocks to which a branch leads, each where the branch is taken; what a kernel returns is nothing."""
    if op.name not in ("cf.br", "cf.cond_br") or any(blocks[name].arguments for name in op.words):
        raise UnsupportedOperator("a branch that hands values on is not read; write the kernel with one return")
    before, reader.blocks = reader.blocks, blocks
    try:
        if op.name == "cf.br":
            reader.run(blocks[op.words[0]])
            return
        (condition,) = reader.operands(op)
        truth = condition if isinstance(condition, Truth) else Truth((), (), reader.writer.data(condition))
        decided = reader.decided(truth)
        if decided is not None:
            reader.run(blocks[op.words[0 if decided else 1]])
            return
        _where(reader, truth, lambda: reader.run(blocks[op.words[0]]))
        _where(reader, truth, lambda: reader.run(blocks[op.words[1]]), holds=False)
    finally:
        reader.blocks = before


@MEANINGS.enter("tt.call")
def called(reader: Reader, op: Operation) -> tuple[Value, ...]:
    """Another function of the module, in its place."""
    name = next(word for word in op.words if word.startswith("@")).lstrip("@")
    known = library_call(reader, op, name)
    if known is not None:
        return known
    function = reader.module.functions[name]
    given = reader.operands(op)
    before = reader.values, reader.function, reader.fixed
    reader.fixed = {}  # names of the caller
    reader.values = {own: value for (own, _), value in zip(function.body.arguments, given, strict=True)}
    reader.function = function
    try:
        return reader.run(function.body)
    finally:
        reader.values, reader.function, reader.fixed = before


@MEANINGS.enter("gpu.barrier", "ttg.barrier")
def waited(reader: Reader, op: Operation) -> None:
    """Where what threads of an instance wrote before is seen by the others."""
    if not reader.is_trial:
        reader.access.barrier(reader.active)


@MEANINGS.enter("llvm.intr.assume", "tt.assert")
def said(reader: Reader, op: Operation) -> None:
    """What computes nothing."""
