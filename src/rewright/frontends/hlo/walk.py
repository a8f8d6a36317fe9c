"""One pass over a module: calls, fusions and loops with a fixed number of steps are written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from rewright.frontends.hlo import arrays, bits, calls, collectives, ordering
from rewright.frontends.hlo.context import Context, Value
from rewright.frontends.hlo.module import Computation, Instruction, toposort
from rewright.ir.errors import RewrightError, TypeMismatch, UnsupportedOperator
from rewright.ir.types import DType, SourceSpan
from rewright.ops.reference import building as rb

_DEEPEST = 60
"""Calls inside of calls."""
_THROUGH = """add-dependency opt-barrier optimization-barrier all-reduce-done all-gather-done collective-permute-done
async-update async-done"""


class Walk:
    """Lowers computations into the builder of a context."""

    def __init__(self, context: Context) -> None:
        self.c = context
        context.call = self.computation
        self._depth = 0

    def computation(self, name: str, arguments: Sequence[Value]) -> Value:
        """What a computation gives for arguments; raises RewrightError for one that does not fit."""
        computation = self.c.module.computation(name)
        parameters = computation.parameters()
        if len(parameters) != len(arguments):
            raise RewrightError(f"{name:.60} takes {len(parameters)} arguments and gets {len(arguments)}")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RewrightError(f"{name:.60} is called in a circle; print the module again")
        values: dict[str, Value] = dict(zip((p.name for p in parameters), arguments, strict=True))
        needed = _needed(computation)
        outer = self.c.b.span
        for instruction in computation.in_order:
            if instruction.name not in values and instruction.name in needed:
                values[instruction.name] = self._locate(computation, instruction, values)
        self.c.b.span = outer
        self._depth -= 1
        return values[computation.root]

    def _locate(self, computation: Computation, instruction: Instruction, values: dict[str, Value]) -> Value:
        self.c.step()
        span = self.c.module.span(instruction)
        if span.file or span.module_path:
            self.c.b.span = span
        try:
            operands = [values[operand] for operand in instruction.operands]
            result = self._lower(computation, instruction, operands)
            self._check(instruction, result)
        except (UnsupportedOperator, TypeMismatch) as error:
            raise type(error)(_located_text(instruction, span, error)) from None
        except RewrightError:
            raise
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, AssertionError, ArithmeticError) as error:
            why = f"its operands do not fit ({type(error).__name__}: {error!s:.80}); print the module again"
            raise RewrightError(_located_text(instruction, span, RewrightError(why))) from None
        return result

    def _lower(self, computation: Computation, i: Instruction, operands: Sequence[Value]) -> Value:
        special = _SPECIAL.get(i.opcode)
        if special is not None:
            return special(self, i, operands)
        if i.opcode == "bitcast":
            return arrays.bitcast(self.c, i, computation.source(i), self.arrays_of(i, operands)[0])
        if i.opcode == "reduce" and i.shape.parts:
            return ordering.extreme(self.c, i, self.arrays_of(i, operands))
        if i.opcode in bits.TABLE:
            return bits.TABLE[i.opcode](self.c, i, self.arrays_of(i, operands))
        if i.opcode in collectives.TABLE:
            function = collectives.TABLE[i.opcode]
            own = self.arrays_of(i, operands)
            if i.opcode == "all-to-all" and i.shape.parts:
                return collectives.exchange(self.c, i, own)
            found = [function(self.c, i, operand) for operand in own]
            return found[0] if len(found) == 1 and (not i.shape.parts or i.opcode.endswith("-start")) else tuple(found)
        if i.opcode not in arrays.TABLE:
            otherwise = "no lowering exists; rewrite it with supported operators, or report it"
            raise UnsupportedOperator(arrays.REFUSED.get(i.opcode, otherwise))
        return arrays.TABLE[i.opcode](self.c, i, self.arrays_of(i, operands))

    def arrays_of(self, i: Instruction, operands: Sequence[Value]) -> list[int]:
        if not all(isinstance(operand, int) for operand in operands):
            raise UnsupportedOperator("it reads a tuple or a token; take its parts apart")
        return [cast("int", operand) for operand in operands]

    def _check(self, i: Instruction, result: Value) -> None:
        if isinstance(result, int) and i.opcode != "after-all" and not i.shape.parts:
            found, wanted = self.c.b.type(result), i.shape.type()
            if found != wanted:
                raise TypeMismatch(f"the module says {wanted} and the operands give {found}")

    def call(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """``call`` and ``fusion``, and ``async-start``: what it starts is done at once."""
        return self.computation(self.c.module.callee(i).name, operands)

    def loop(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """``while``, written out as far as its condition says, which must not depend on data."""
        (state,) = operands
        while True:
            self.c.step()
            goes_on = self.c.b.uniform(
                self.arrays_of(i, [self.computation(self.c.module.callee(i, 1).name, [state])])[0]
            )
            if goes_on is None:
                raise UnsupportedOperator("a loop whose number of steps depends on data; unroll it")
            if not goes_on:
                return state
            state = self.computation(self.c.module.callee(i).name, [state])

    def conditional(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """``conditional``: the branch that is known, or a choice of what all branches give."""
        selector = self.arrays_of(i, operands[:1])[0]
        chosen = self.c.b.uniform(selector)
        count = len(operands) - 1
        is_boolean = self.c.b.type(selector).dtype is DType.BOOL
        if chosen is not None:
            number = (0 if chosen else 1) if is_boolean else int(chosen)
            number = number if 0 <= number < count else count - 1
            return self.computation(self.c.module.callee(i, number).name, [operands[1 + number]])
        names = [self.c.module.callee(i, number).name for number in range(count)]
        if any(map(self._communicates, names)):
            raise UnsupportedOperator("a branch that depends on data, and in which devices communicate; do so outside")
        results = [self.computation(name, [operand]) for name, operand in zip(names, operands[1:], strict=True)]
        found = results[-1]
        for number in reversed(range(count - 1)):
            index = rb.splat_like(self.c.b, number, selector) if not is_boolean else None
            test = selector if index is None else rb.compare(self.c.b, "EQ", selector, index)
            found = self._choice(test, results[number], found)
        return found

    def _choice(self, test: int, yes: Value, no: Value) -> Value:
        if isinstance(yes, tuple):
            pairs = zip(cast("tuple[Value, ...]", yes), cast("tuple[Value, ...]", no), strict=True)
            return tuple(self._choice(test, a, b) for a, b in pairs)
        if yes is None:
            return None
        return rb.select(self.c.b, rb.broadcast(self.c.b, test, self.c.b.type(yes).shape), yes, no)

    def _communicates(self, name: str, depth: int = 0) -> bool:
        instructions = self.c.module.computation(name).instructions.values()
        if depth > _DEEPEST or any(i.opcode in collectives.TABLE for i in instructions):
            return True
        return any(self._communicates(inner, depth + 1) for i in instructions for inner in i.called)

    def element(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """``get-tuple-element``."""
        source: Any = operands[0]
        place = i.integer("index", 0)
        if not isinstance(source, tuple) or not 0 <= place < len(cast("tuple[Value, ...]", source)):
            raise UnsupportedOperator(f"it takes part {place} of what is no tuple of so many")
        return cast("tuple[Value, ...]", source)[place]

    def through(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """What only orders instructions, or ends one that was started."""
        return operands[0] if operands else None


def _needed(computation: Computation) -> set[str]:
    """Names of what the root needs, and of all collectives."""
    communicating = (i.name for i in computation.instructions.values() if i.opcode in collectives.TABLE)
    return set(toposort(computation.instructions, [computation.root, *communicating]))


def _located_text(i: Instruction, span: SourceSpan, error: RewrightError) -> str:
    text = str(error)
    where = f" at {span}" if span.file else ""
    line = text if text.startswith("instruction ") else f"instruction {i.name:.60} {i.opcode:.60}{where}: {text}"
    return " ".join(line.split())  # names of damaged modules hold anything


_SPECIAL: dict[str, Callable[[Walk, Instruction, Sequence[Value]], Value]] = {
    "call": Walk.call,
    "fusion": Walk.call,
    "while": Walk.loop,
    "conditional": Walk.conditional,
    "tuple": lambda walk, i, operands: tuple(operands),
    "get-tuple-element": Walk.element,
    **dict.fromkeys(_THROUGH.split(), Walk.through),
    "after-all": lambda walk, i, operands: None,
    "partition-id": lambda walk, i, operands: collectives.identity(walk.c, i),
    "replica-id": lambda walk, i, operands: collectives.identity(walk.c, i),
    "async-start": Walk.call,
    "topk": lambda walk, i, operands: ordering.top_k(walk.c, i, walk.arrays_of(i, operands)),
    "sort": lambda walk, i, operands: ordering.sort(walk.c, i, walk.arrays_of(i, operands)),
    "custom-call": lambda walk, i, operands: calls.custom_call(walk.c, i, walk.arrays_of(i, operands)),
}
