"""Branches, calls and what only says something to a compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.integers import negation
from rewright.frontends.triton.meaning.library import library_call
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import Address, Data, Truth, Value
from rewright.frontends.triton.text import Block, Operation
from rewright.ir.errors import UnsupportedOperator

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


@MEANINGS.enter("scf.if")
def branched(reader: Reader, op: Operation) -> tuple[Value, ...]:
    """One branch where the condition is decided, else both, and a choice between what they give."""
    (condition,) = reader.operands(op)
    truth = condition if isinstance(condition, Truth) else Truth((), (), reader.writer.data(condition))
    decided = reader.decided(truth)
    if decided is not None:
        chosen = op.regions[0] if decided else op.regions[1] if len(op.regions) > 1 else Block((), ())
        return reader.run(chosen)
    negated = negation(truth)
    data = reader.writer.truth(truth)
    opposite = reader.writer.apply(ops.Not(), data)
    with reader.reached(truth.parts, data if negated is None else None):
        yes = reader.run(op.regions[0])
    no: tuple[Value, ...] = ()
    if len(op.regions) > 1:
        with reader.reached(() if negated is None else negated.parts, opposite if negated is None else None):
            no = reader.run(op.regions[1])
    return tuple(either(reader, data, a, b) for a, b in zip(yes, no, strict=True)) if op.results else ()


def either(reader: Reader, condition: Data, yes: Value, no: Value) -> Value:
    """One value where a condition holds, else the other."""
    if yes == no:
        return yes
    if isinstance(yes, Address) or isinstance(no, Address):
        raise UnsupportedOperator("a choice among pointers is not read")
    spread, _ = reader.spread_condition(condition, yes)
    found = reader.writer.select(spread, reader.writer.data(yes), reader.writer.data(no))
    return Truth((), found.shape, found) if isinstance(yes, Truth) else found


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
        negated = negation(truth)
        data = reader.writer.truth(truth)
        with reader.reached(truth.parts, data if negated is None else None):
            reader.run(blocks[op.words[0]])
        opposite = reader.writer.apply(ops.Not(), data) if negated is None else None
        with reader.reached(() if negated is None else negated.parts, opposite):
            reader.run(blocks[op.words[1]])
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
