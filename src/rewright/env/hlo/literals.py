"""Literals of constants: whether their values are there."""

from __future__ import annotations

from rewright.env.hlo.program import LITERAL, Instruction
from rewright.env.hlo.shapes import SIZES, read_shape


def is_elided(instruction: Instruction) -> bool:
    """Whether an instruction is a constant whose values a text left out: nothing is known of them."""
    if instruction.opcode != "constant":
        return False
    shape = read_shape(instruction.shape)
    literal = next((v for number, _, v in instruction.fields if number == LITERAL), b"")
    size = len(literal) if isinstance(literal, bytes) else 0
    return shape.elements > 0 and size < (shape.elements if shape.element in SIZES else 0)
