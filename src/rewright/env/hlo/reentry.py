"""Late modules made fit to enter XLA again: bitcasts between row-major arrays are reshapes."""

from __future__ import annotations

from dataclasses import replace

from rewright.env.hlo.program import Computation, Instruction, Program
from rewright.env.hlo.shapes import SIZES, Shape, read_shape


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
