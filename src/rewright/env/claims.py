"""An alternative as a claim of its own: ``value = replacement`` for all tensors in the place of what both read.

The neighbourhood of the two values is cut out of the module and lowered to the IR, where the engine proves it. Names
that are cut become inputs, so that what is proved holds wherever the rewrite is made. The neighbourhood grows, operand
by operand, until a proof is found or a bound is reached.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.env.alternatives import AlternativeGraph
from rewright.env.hlo.program import PARAMETER, SHAPE, Computation, Instruction, Program, ordered, pruned, write
from rewright.env.hlo.shapes import array, read_shape
from rewright.env.hlo.wire import BYTES, VARINT, Field, text, write_fields
from rewright.env.module import HloModule
from rewright.env.words import words
from rewright.frontends.hlo.module import DTYPES
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.terms.normal.assumptions import Claim
from rewright.terms.normal.prove import prove

MOVEMENT = words("parameter reshape broadcast slice transpose concatenate reverse copy bitcast")
_DEPTHS = (1, 2, 3, 5)
_MOST_INSTRUCTIONS = 60


@dataclass(frozen=True)
class Proof:
    """Whether a claim was proved, at which grade, and why not; ``left`` and ``right`` are what was compared."""

    proved: bool
    grade: str
    why: str
    left: Graph | None = None
    right: Graph | None = None


def prove_alternative(graph: AlternativeGraph, number: int, seconds: float = 1.0) -> Proof:
    """Prove an alternative over the reals, and say whether the proof moves data only (``move``).

    Constants are part of the claim; every other value that is cut is any tensor of its type.
    """
    deadline = time.monotonic() + seconds
    why = "its neighbourhood is too large"
    for depth in _DEPTHS:
        try:
            left, right = neighbourhood(graph, number, depth)
        except RewrightError as error:
            return Proof(False, "", str(error))
        left_time = deadline - time.monotonic()
        if left_time <= 0:
            return Proof(False, "", f"the budget of {seconds:g} s is used up")
        outcome = prove(Claim(left, right), left_time, "real")
        if outcome.status == "proved":
            moves = prove(Claim(left, right), min(0.2, seconds), "move").status == "proved"
            return Proof(True, "move" if moves else "real", "", left, right)
        why = outcome.reason
    return Proof(False, "", why)


def neighbourhood(graph: AlternativeGraph, number: int, depth: int) -> tuple[Graph, Graph]:
    """The value and its replacement as programs over what is ``depth`` operands away.

    Raises RewrightError where an operator has no lowering, or the neighbourhood is too large.
    """
    alternative = graph.alternatives[number]
    computation = graph.program.computations[alternative.computation]
    pool = graph.pool.get(alternative.computation, {})
    instructions: dict[str, Instruction] = {**computation.instructions, **pool}
    inside = _inside(instructions, pool, (alternative.value, alternative.replacement), depth)
    if len(inside) > _MOST_INSTRUCTIONS:
        raise RewrightError(
            f"its neighbourhood has {len(inside)} instructions, and at most {_MOST_INSTRUCTIONS} are read"
        )
    everything = {**graph.program.computations, **graph.computations}
    cut = _retyped(_cut(instructions, inside, (alternative.value, alternative.replacement)))
    sides = [_side(graph.program, everything, cut, name) for name in (alternative.value, alternative.replacement)]
    return sides[0].graph(), sides[1].graph()


def _inside(
    instructions: Mapping[str, Instruction], pool: Mapping[str, Instruction], roots: Sequence[str], depth: int
) -> set[str]:
    """Names that are computed: new ones, constants, and what is less than ``depth`` operands away."""
    inside: set[str] = set()
    stack = [(root, depth) for root in roots]
    while stack:
        name, left = stack.pop()
        constant = _is_constant(instructions, name)
        if not (name in pool or constant or left > 0) or instructions[name].opcode == "parameter":
            continue
        if (name, left) != (name, 0) or name in pool or constant:
            inside.add(name)
        if len(inside) > _MOST_INSTRUCTIONS:
            break
        less = left if name in pool else left - 1
        stack.extend((operand, less) for operand in instructions[name].operands)
    return inside


def _is_constant(instructions: Mapping[str, Instruction], name: str) -> bool:
    """Whether a value is a constant, an iota, or data movement of one."""
    for _ in range(4):
        instruction = instructions[name]
        if instruction.opcode in ("constant", "iota"):
            return True
        if instruction.opcode not in ("broadcast", "reshape", "transpose", "convert", "negate"):
            return False
        name = instruction.operands[0]
    return False


def _cut(instructions: Mapping[str, Instruction], inside: set[str], roots: Sequence[str]) -> dict[str, Instruction]:
    """The instructions inside, and parameters for what they read from outside."""
    found = {name: replace(instructions[name], controls=()) for name in inside}
    outside = dict.fromkeys(o for name in sorted(inside) for o in instructions[name].operands if o not in inside)
    outside |= dict.fromkeys(root for root in roots if root not in inside)
    for place, name in enumerate(outside):
        shape = instructions[name].shape
        if read_shape(shape).element in ("tuple", "token", "opaque"):
            raise RewrightError(f"{name:.60} is a tuple, whose parts are not told apart; choose another alternative")
        fields: tuple[Field, ...] = ((SHAPE, BYTES, shape), (PARAMETER, VARINT, place))
        found[name] = Instruction(name, "parameter", (), fields)
    return found


def _retyped(cut: dict[str, Instruction]) -> dict[str, Instruction]:
    """Data movement holds for elements of any type: those that the IR does not have become float32."""
    if any(i.opcode not in MOVEMENT for i in cut.values()):
        return cut
    shapes = {name: read_shape(i.shape) for name, i in cut.items()}
    if all(shape.element in DTYPES or shape.element == "tuple" for shape in shapes.values()):
        return cut
    elements = {shape.element for shape in shapes.values()}
    if len(elements) > 1:
        return cut
    return {name: i.with_field(SHAPE, BYTES, array("f32", shapes[name].sizes)) for name, i in cut.items()}


def _side(program: Program, everything: Mapping[str, Computation], cut: dict[str, Instruction], root: str) -> HloModule:
    parameters = sorted((i for i in cut.values() if i.opcode == "parameter"), key=lambda i: i.parameter)
    names = [i.name for i in parameters]
    order = ordered(cut, [*names, root])
    signature: list[Field] = [(1, BYTES, i.shape) for i in parameters]
    signature.append((2, BYTES, cut[root].shape))
    signature += [text(3, name) for name in names]
    shape = write_fields(signature)
    main = Computation("claim", {name: cut[name] for name in order}, root, ((4, BYTES, shape),))
    whole = Program("claim", {**everything, "claim": main}, "claim", ((4, BYTES, shape),))
    return HloModule(write(pruned(whole)))
