"""What a machine does and the reals do not know is no proof: casts that do not fit, no numbers, signs of zero."""

from __future__ import annotations

import pytest

from rewright.env.session import Session
from tests.env.test_exactness import equal, of


def filled(kind: str, name: str, value: str) -> str:
    """A constant of three elements, as instructions."""
    return f"{name}0 = {kind}[] constant({value}) {name} = {kind}[3] broadcast({name}0), dimensions={{}} "


SAME = "ROOT r = {}[3] copy(x)"
CASTS = {
    # 2^32 - 1 as eight bits is -1, and as a float becomes 127.
    "fewer bits by way of floats": (
        of("u32", "a = f32[3] convert(x) ROOT r = s8[3] convert(a)"),
        of("u32", "ROOT r = s8[3] convert(x)"),
    ),
    # 2^24 + 1 is no float of 32 bits.
    "floats and back": (
        of("s32", "a = f32[3] convert(x) ROOT r = s32[3] convert(a)"),
        of("s32", SAME.format("s32")),
    ),
    "an order of rounded numbers": (
        of("s32", "a = f32[3] convert(x) b = f32[3] convert(y) ROOT r = pred[3] compare(a, b), direction=LT"),
        of("s32", "ROOT r = pred[3] compare(x, y), direction=LT"),
    ),
    "a sum before it is an integer": (
        of(
            "f32",
            "a = f32[3] floor(x) b = f32[3] floor(y) c = s8[3] convert(a) d = s8[3] convert(b) "
            "ROOT r = s8[3] add(c, d)",
        ),
        of("f32", "a = f32[3] floor(x) b = f32[3] floor(y) c = f32[3] add(a, b) ROOT r = s8[3] convert(c)"),
    ),
    "whole floats as integers": (
        of("f32", "a = f32[3] floor(x) b = s8[3] convert(a) ROOT r = f32[3] convert(b)"),
        of("f32", "ROOT r = f32[3] floor(x)"),
    ),
    "floats end at other limits": (
        of("f32", "n = s8[3] convert(x) ROOT r = s32[3] convert(n)"),
        of("f32", "ROOT r = s32[3] convert(x)"),
    ),
    "a constant that does not fit": (
        of("f32", filled("f32", "c", "300") + "ROOT r = s8[3] convert(c)"),
        of("f32", filled("s8", "c", "44") + "ROOT r = s8[3] copy(c)"),
    ),
}
GUARDS = {
    "is it finite": (
        of("f32", filled("f32", "z", "0") + "c = pred[3] is-finite(x) ROOT r = f32[3] select(c, x, z)"),
        of("f32", SAME.format("f32")),
    ),
    "is it a number": (
        of("f32", filled("f32", "z", "0") + "c = pred[3] compare(x, x), direction=NE ROOT r = f32[3] select(c, z, x)"),
        of("f32", SAME.format("f32")),
    ),
    "is it infinite": (
        of(
            "f32", filled("f32", "i", "inf") + "c = pred[3] compare(x, i), direction=EQ ROOT r = f32[3] select(c, y, x)"
        ),
        of("f32", SAME.format("f32")),
    ),
    "is a difference from infinity negative": (
        of(
            "f32",
            filled("f32", "i", "inf")
            + filled("f32", "z", "0")
            + "d = f32[3] subtract(x, i) ROOT c = pred[3] compare(d, z), direction=LT",
        ),
        of("f32", filled("pred", "t", "true") + "ROOT r = pred[3] copy(t)"),
    ),
    "zeros in a total order": (
        of("f32", filled("f32", "z", "0") + "ROOT r = pred[3] compare(x, z), direction=GE, type=TOTALORDER"),
        of("f32", filled("f32", "z", "0") + "ROOT r = pred[3] compare(x, z), direction=GE"),
    ),
}


@pytest.mark.parametrize("sides", (CASTS | GUARDS).values(), ids=(CASTS | GUARDS).keys())
def test_what_the_reals_do_not_know_is_not_proved(xla: Session, sides: tuple[str, str]) -> None:
    assert not equal(xla, *sides).proved


def test_casts_of_what_fits_are_proved(xla: Session) -> None:
    there = of("s8", "a = f32[3] convert(x) ROOT r = s8[3] convert(a)")
    assert equal(xla, there, of("s8", SAME.format("s8"))).proved
    moved = of("f32", "a = s8[3] convert(x) ROOT r = s8[3] reverse(a), dimensions={0}")
    assert equal(xla, moved, of("f32", "a = f32[3] reverse(x), dimensions={0} ROOT r = s8[3] convert(a)")).proved


def test_a_guard_that_stays_is_proved(xla: Session) -> None:
    plain = of("f32", "c = pred[3] is-finite(x) n = pred[3] not(c) ROOT r = f32[3] select(n, x, y)")
    assert equal(xla, plain, of("f32", "c = pred[3] is-finite(x) ROOT r = f32[3] select(c, y, x)")).proved


@pytest.mark.parametrize(("opcode", "grade"), [("add", "real"), ("subtract", "move")])
def test_zero_that_is_added_changes_the_sign_of_zero(xla: Session, opcode: str, grade: str) -> None:
    # -0 + 0 is 0, and -0 - 0 is -0.
    left = of("f32", filled("f32", "z", "0") + f"ROOT r = f32[3] {opcode}(x, z)")
    assert equal(xla, left, of("f32", SAME.format("f32"))).grade == grade
