"""Late modules made fit to enter XLA again: bitcasts between row-major arrays are reshapes."""

from __future__ import annotations

from dataclasses import replace

from rewright.frontends.hlo.module import METADATA, SHAPE, Computation, Instruction, Module
from rewright.frontends.hlo.shapes import Shape, array, element_of
from rewright.frontends.hlo.wire import BYTES
from rewright.ir.errors import RewrightError


def enterable(program: Module) -> Module:
    """The program with bitcasts written as the operators that they stand for, where layouts are row-major."""
    if not any(i.opcode == "bitcast" for c in program.computations.values() for i in c.instructions.values()):
        return program
    return program.map_instructions(_reentering)


def _reentering(computation: Computation, instruction: Instruction) -> Instruction:
    if instruction.opcode != "bitcast":
        return instruction
    source, target = computation.source(instruction), instruction.shape
    if not (_row_major(source) and _row_major(target)):
        return instruction
    if source.element == target.element:
        return replace(instruction, opcode="reshape")
    same = source.sizes == target.sizes and element_of(source).bytes == element_of(target).bytes
    return replace(instruction, opcode="bitcast-convert") if same else instruction


def check_enterable(program: Module) -> None:
    """Raise RewrightError where an import would lose what layouts say: at a bitcast that is not row-major."""
    for computation in program.computations.values():
        for i in computation.instructions.values():
            if i.opcode != "bitcast":
                continue
            shapes = (computation.source(i), i.shape)
            if not all(map(_row_major, shapes)):
                raise RewrightError(
                    f"{i.name:.60} is a bitcast of arrays that are not row-major, whose layouts XLA's import drops;"
                    " start from the module before layouts are assigned"
                )


def _row_major(shape: Shape) -> bool:
    return shape.layout in ((), tuple(reversed(range(len(shape.sizes)))))


def has_fusions(program: Module) -> bool:
    """Whether a program has fusions, whose layouts XLA:CPU may leave out."""
    return any(i.opcode == "fusion" for c in program.computations.values() for i in c.instructions.values())


def with_calls(program: Module) -> Module:
    """The program with calls in the place of fusions: of one signature, and without what XLA cannot lay out."""

    def changed(_: Computation, instruction: Instruction) -> Instruction:
        if instruction.opcode != "fusion":
            return instruction
        kept = tuple(entry for entry in instruction.fields if entry[0] in (SHAPE, METADATA))
        return replace(instruction, opcode="call", fields=kept)

    return program.map_instructions(changed)


def laid_out(program: Module) -> Module:
    """The program with layouts where XLA:CPU left them out, inside of fusions: those of what they read and give.

    All else is row-major. Raises RewrightError where a fusion of several results gives an array that is not.
    """
    found = dict(program.computations)
    for computation in program.computations.values():
        for i in computation.instructions.values():
            if i.opcode != "fusion":
                continue
            several = i.shape.element == "tuple"
            if several and not all(map(_row_major, i.shape.leaves())):
                raise RewrightError(f"{i.name:.60} gives arrays that are not row-major; choose another alternative")
            body = found[i.called[0]]
            around = {p.name: computation.instructions[i.operands[p.parameter]].shape_proto for p in body.parameters()}
            if not several:
                around[body.root] = i.shape_proto
            changed = {n: _lay(own, around[n]) if n in around else own for n, own in body.instructions.items()}
            found[body.name] = replace(body, instructions=changed)
    return replace(program, computations=found).map_instructions(_with_layout)


def _lay(instruction: Instruction, shape: bytes) -> Instruction:
    """The instruction with another shape, where it is an array without a layout."""
    own = instruction.shape
    return instruction if own.layout or not own.sizes else instruction.with_field(SHAPE, BYTES, shape)


def _with_layout(_: Computation, instruction: Instruction) -> Instruction:
    shape = instruction.shape
    if shape.layout or not shape.sizes or not element_of(shape).bytes:
        return instruction
    return instruction.with_field(SHAPE, BYTES, array(shape.element, shape.sizes))
