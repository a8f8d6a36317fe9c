"""Late modules made fit to enter XLA again: bitcasts between row-major arrays are reshapes."""

from __future__ import annotations

from dataclasses import replace

from rewright.env.hlo.program import SHAPE, Computation, Instruction, Program
from rewright.env.hlo.shapes import SIZES, Shape, array, read_shape
from rewright.env.hlo.wire import BYTES
from rewright.ir.errors import RewrightError


def enterable(program: Program) -> Program:
    """The program with bitcasts written as the operators that they stand for, where layouts are row-major."""
    if not any(i.opcode == "bitcast" for c in program.computations.values() for i in c.instructions.values()):
        return program
    return replace(program, computations={name: _computation(c) for name, c in program.computations.items()})


def _computation(computation: Computation) -> Computation:
    def changed(instruction: Instruction) -> Instruction:
        if instruction.opcode != "bitcast":
            return instruction
        source = read_shape(computation.instructions[instruction.operands[0]].shape)
        target = read_shape(instruction.shape)
        if not (_row_major(source) and _row_major(target)):
            return instruction
        if source.element == target.element:
            return replace(instruction, opcode="reshape")
        same = source.sizes == target.sizes and SIZES.get(source.element) == SIZES.get(target.element)
        return replace(instruction, opcode="bitcast-convert") if same else instruction

    return replace(computation, instructions={name: changed(i) for name, i in computation.instructions.items()})


def _row_major(shape: Shape) -> bool:
    return shape.layout in ((), tuple(reversed(range(len(shape.sizes)))))


def has_several_results(program: Program) -> bool:
    """Whether a fusion of the program gives a tuple."""
    instructions = (i for c in program.computations.values() for i in c.instructions.values())
    return any(i.opcode == "fusion" and read_shape(i.shape).element == "tuple" for i in instructions)


def laid_out(program: Program) -> Program:
    """The program with row-major layouts where XLA:CPU left them out: inside of fusions of several results.

    Raises RewrightError where such a fusion gives an array that is not row-major.
    """
    for computation in program.computations.values():
        for i in computation.instructions.values():
            parts = read_shape(i.shape).leaves() if i.opcode == "fusion" else ()
            if read_shape(i.shape).element == "tuple" and not all(map(_row_major, parts)):
                raise RewrightError(f"{i.name:.60} gives arrays that are not row-major; choose another alternative")
    return replace(program, computations={name: _with_layouts(c) for name, c in program.computations.items()})


def _with_layouts(computation: Computation) -> Computation:
    def changed(instruction: Instruction) -> Instruction:
        shape = read_shape(instruction.shape)
        if shape.layout or not shape.sizes or shape.element not in SIZES:
            return instruction
        return instruction.with_field(SHAPE, BYTES, array(shape.element, shape.sizes))

    return replace(computation, instructions={name: changed(i) for name, i in computation.instructions.items()})
