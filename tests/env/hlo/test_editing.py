"""Modules as named instructions: the proto that is written says what the one that was read says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewright.env.hlo.editing import remove_dead_code
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.frontends.hlo.order import Cycle
from rewright.frontends.hlo.proto import read, write
from rewright.frontends.hlo.shapes import array
from tests.env.modules import DTYPES, LOOP, RATES


@pytest.mark.parametrize("text", [RATES, LOOP, DTYPES])
def test_written_again_it_is_the_same_module(xla: Session, text: str) -> None:
    module = xla.parse(text)
    assert xla.fingerprint(HloModule(write(read(module.proto)))) == xla.fingerprint(module)


def test_text_is_read_again(xla: Session) -> None:
    module = xla.parse(LOOP)
    assert xla.fingerprint(xla.parse(xla.text(module))) == xla.fingerprint(module)


def test_the_proto_keeps_the_sign_of_zero_and_the_text_loses_it(xla: Session) -> None:
    source = "HloModule zero\nENTRY main { x = f32[] parameter(0) z = f32[] constant(0) ROOT n = f32[] divide(x, z) }"
    module = xla.parse(source)
    program = module.program
    constant = program.main.instructions["z"]
    literal = next(value for number, _, value in constant.fields if number == 8)
    assert isinstance(literal, bytes)
    negative = constant.with_field(8, 2, literal.replace(b"\x42\x04" + bytes(4), b"\x42\x04" + b"\x00\x00\x00\x80"))
    main = replace(program.main, instructions={**program.main.instructions, "z": negative})
    changed = HloModule(program.with_computation(main))
    assert "constant(-0)" in xla.text(changed)
    assert "constant(-0)" not in xla.text(xla.parse(xla.text(changed)))


def test_dead_code_goes_and_parameters_stay(xla: Session) -> None:
    source = """HloModule dead
    ENTRY main { x = f32[4] parameter(0) y = f32[4] negate(x) ROOT z = f32[4] constant({1,2,3,4}) }"""
    assert set(remove_dead_code(xla.parse(source).program).main.instructions) == {"x", "z"}


def test_a_circle_is_an_error(xla: Session) -> None:
    program = xla.parse(RATES).program
    main = program.main
    looped = replace(main.instructions["third"], operands=("out", "threes"))
    broken = program.with_computation(replace(main, instructions={**main.instructions, "third": looped}))
    with pytest.raises(Cycle):
        remove_dead_code(broken)


def test_shapes_are_written_as_xla_writes_them(xla: Session) -> None:
    for instruction in xla.parse(DTYPES).program.main.instructions.values():
        shape = instruction.shape
        if shape.element != "tuple":
            assert array(shape.element, shape.sizes) == instruction.shape_proto
