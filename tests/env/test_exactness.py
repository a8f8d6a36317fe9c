"""What is equal in mathematics and not on a machine is not proved: integers that wrap, floats that are no numbers."""

from __future__ import annotations

import pytest

from rewright.env.certificate import _same_program as same_program
from rewright.env.claims import Proof, prove_terms
from rewright.env.session import Session

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
SCATTER = ADD + (
    "ENTRY e { x = f32[5] parameter(0) k = s32[4,1] parameter(1) u = f32[4] parameter(2) "
    "ROOT r = f32[5] scatter(x, k, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
)
BY_KEY = (
    "by { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3) "
    "ROOT l = pred[] compare(a, b), direction=LT }\n"
    "ENTRY e { x = f32[3] parameter(0) y = s32[3] parameter(1) "
    "ROOT r = (f32[3], s32[3]) sort(x, y), dimensions={0}, to_apply=by"
)


def equal(xla: Session, left: str, right: str) -> Proof:
    """The proof that two modules are equal."""
    programs = [xla.parse("HloModule m\n" + text).program for text in (left, right)]
    return prove_terms(same_program(*programs), 10.0)


def of(kind: str, body: str) -> str:
    """A module of two arrays of a type."""
    return f"ENTRY e {{ x = {kind}[3] parameter(0) y = {kind}[3] parameter(1) {body} }}"


WRAPS = {
    "a difference below zero": (
        of(
            "s32",
            "d = s32[3] subtract(x, y) z = s32[] constant(0) o = s32[3] broadcast(z), dimensions={} "
            "ROOT r = pred[3] compare(d, o), direction=LT",
        ),
        of("s32", "ROOT r = pred[3] compare(x, y), direction=LT"),
    ),
    "an unsigned difference": (
        of(
            "u32",
            "d = u32[3] subtract(x, y) z = u32[] constant(0) o = u32[3] broadcast(z), dimensions={} "
            "ROOT r = pred[3] compare(d, o), direction=GE",
        ),
        of("u32", "ROOT r = pred[3] compare(x, y), direction=GE"),
    ),
    "a quotient of a product": (
        of(
            "s32",
            "t = s32[] constant(2) o = s32[3] broadcast(t), dimensions={} d = s32[3] multiply(x, o) "
            "ROOT r = s32[3] divide(d, o)",
        ),
        of("s32", "ROOT r = s32[3] copy(x)"),
    ),
    "to eight bits and back": (
        of("s32", "n = s8[3] convert(x) ROOT r = s32[3] convert(n)"),
        of("s32", "ROOT r = s32[3] copy(x)"),
    ),
    "by way of unsigned": (
        of("s32", "n = u32[3] convert(x) ROOT r = f32[3] convert(n)"),
        of("s32", "ROOT r = f32[3] convert(x)"),
    ),
    "a sum before it is widened": (
        of("u8", "s = u8[3] add(x, y) ROOT r = s32[3] convert(s)"),
        of("u8", "a = s32[3] convert(x) b = s32[3] convert(y) ROOT r = s32[3] add(a, b)"),
    ),
    "the least number has no opposite": (
        of(
            "s32",
            "a = s32[3] abs(x) z = s32[] constant(0) o = s32[3] broadcast(z), dimensions={} "
            "ROOT r = pred[3] compare(a, o), direction=GE",
        ),
        of("s32", "t = pred[] constant(true) ROOT r = pred[3] broadcast(t), dimensions={}"),
    ),
    "places that do not fit": (
        "ENTRY e { i = u8[300] iota(), iota_dimension=0 ROOT r = s32[300] convert(i) }",
        "ENTRY e { ROOT r = s32[300] iota(), iota_dimension=0 }",
    ),
}


@pytest.mark.parametrize("sides", WRAPS.values(), ids=WRAPS.keys())
def test_what_wraps_around_is_not_proved(xla: Session, sides: tuple[str, str]) -> None:
    found = equal(xla, *sides)
    assert not found.proved
    assert "wrap around" in found.why


EXACT = {
    "sums and products wrap alike": (
        of("s32", "s = s32[3] add(x, y) ROOT r = s32[3] multiply(s, x)"),
        of("s32", "a = s32[3] multiply(x, x) b = s32[3] multiply(y, x) ROOT r = s32[3] add(a, b)"),
    ),
    "to more bits and back": (
        of("s8", "n = s32[3] convert(x) ROOT r = s8[3] convert(n)"),
        of("s8", "ROOT r = s8[3] copy(x)"),
    ),
    "places that fit": (
        "ENTRY e { i = u8[200] iota(), iota_dimension=0 ROOT r = s32[200] convert(i) }",
        "ENTRY e { ROOT r = s32[200] iota(), iota_dimension=0 }",
    ),
    "a sum that fits": (
        of("u8", "a = s32[3] convert(x) b = s32[3] convert(y) s = s32[3] add(a, b) ROOT r = s64[3] convert(s)"),
        of("u8", "a = s64[3] convert(x) b = s64[3] convert(y) ROOT s = s64[3] add(a, b)"),
    ),
}


@pytest.mark.parametrize("sides", EXACT.values(), ids=EXACT.keys())
def test_what_wraps_alike_or_fits_is_proved(xla: Session, sides: tuple[str, str]) -> None:
    assert equal(xla, *sides).grade == "move"


REALS = {
    "no number is not less and not more": (
        of("f32", "c = pred[3] compare(x, y), direction=LT ROOT r = pred[3] not(c)"),
        of("f32", "ROOT r = pred[3] compare(x, y), direction=GE"),
    ),
    "no number is chosen otherwise": (
        of("f32", "c = pred[3] compare(x, y), direction=GE ROOT r = f32[3] select(c, x, y)"),
        of("f32", "ROOT r = f32[3] maximum(x, y)"),
    ),
    "fewer digits": (
        of("f32", "ROOT r = f32[3] reduce-precision(x), exponent_bits=5, mantissa_bits=7"),
        of("f32", "ROOT r = f32[3] copy(x)"),
    ),
    "fewer digits by a cast": (
        of("f32", "n = bf16[3] convert(x) ROOT r = f32[3] convert(n)"),
        of("f32", "ROOT r = f32[3] copy(x)"),
    ),
    "the sign of zero": (
        of(
            "f32",
            "z = f32[] constant(0) n = f32[] negate(z) o = f32[3] broadcast(n), dimensions={} "
            "ROOT r = f32[3] divide(x, o)",
        ),
        of("f32", "z = f32[] constant(0) o = f32[3] broadcast(z), dimensions={} ROOT r = f32[3] divide(x, o)"),
    ),
}


@pytest.mark.parametrize("sides", REALS.values(), ids=REALS.keys())
def test_what_holds_over_the_reals_alone_says_so(xla: Session, sides: tuple[str, str]) -> None:
    found = equal(xla, *sides)
    assert found.grade == "real" or not found.proved


ASSUMED = {
    "an order of equal keys": (BY_KEY + ", is_stable=true }", BY_KEY + " }"),
    "indices that are not twice": (SCATTER + " }", SCATTER + ", unique_indices=true }"),
    "the smallest": (
        "ENTRY e { x = f32[5] parameter(0) ROOT r = (f32[2], s32[2]) topk(x), k=2, largest=true }",
        "ENTRY e { x = f32[5] parameter(0) ROOT r = (f32[2], s32[2]) topk(x), k=2, largest=false }",
    ),
    "an index that is not negative": (
        "ENTRY e { x = f32[5] parameter(0) k = s32[] parameter(1) z = s32[] constant(0) n = s32[] constant(5) "
        "c = pred[] compare(k, z), direction=LT m = s32[] add(k, n) s = s32[] select(c, m, k) "
        "ROOT r = f32[2] dynamic-slice(x, s), dynamic_slice_sizes={2} }",
        "ENTRY e { x = f32[5] parameter(0) k = s32[] parameter(1) "
        "ROOT r = f32[2] dynamic-slice(x, k), dynamic_slice_sizes={2} }",
    ),
    "what is no number": (
        "ENTRY e { p = pred[3] parameter(0) x = f32[3] parameter(1) n = f32[] constant(nan) "
        "o = f32[3] broadcast(n), dimensions={} ROOT r = f32[3] select(p, x, o) }",
        "ENTRY e { p = pred[3] parameter(0) x = f32[3] parameter(1) ROOT r = f32[3] copy(x) }",
    ),
}


@pytest.mark.parametrize("sides", ASSUMED.values(), ids=ASSUMED.keys())
def test_what_is_taken_for_granted_is_no_proof(xla: Session, sides: tuple[str, str]) -> None:
    assert not equal(xla, *sides).proved


def sliced(start: str) -> str:
    """A module that reads a block of four from a place."""
    return (
        "ENTRY e { x = f32[9] parameter(0) k = s32[] parameter(1) z = s32[] constant(0) n = s32[] constant(5) "
        f"{start} s = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={{4}} ROOT r = f32[4] copy(s) }}"
    )


def test_a_block_is_moved_inside_as_hlo_does(xla: Session) -> None:
    # A place out of range is moved to the nearest that is not, so that clamping it before changes nothing.
    plain = "i = s32[] copy(k)"
    assert equal(xla, sliced(plain), sliced("i = s32[] clamp(z, k, n)")).proved
    assert not equal(xla, sliced(plain), sliced("m = s32[] constant(4) i = s32[] clamp(z, k, m)")).proved


def test_an_update_of_all_is_the_update_wherever_it_starts(xla: Session) -> None:
    head = "ENTRY e { x = f32[3] parameter(0) u = f32[3] parameter(1) k = s32[] parameter(2) "
    whole = head + "ROOT r = f32[3] dynamic-update-slice(x, u, k) }"
    assert equal(xla, whole, head + "ROOT r = f32[3] copy(u) }").proved
    part = "ENTRY e { x = f32[4] parameter(0) u = f32[3] parameter(1) k = s32[] parameter(2) z = s32[] constant(0) "
    moved, fixed = (part + f"ROOT r = f32[4] dynamic-update-slice(x, u, {at}) }}" for at in ("k", "z"))
    assert not equal(xla, moved, fixed).proved
