"""What is one term: calls and fusions written out, tuples taken apart; and what must not be."""

from __future__ import annotations

import pytest

from rewright.env.claims import prove_alternative
from rewright.env.dryrun import dry_change
from rewright.env.session import Change, Session

BODY = "f { a = u32[4] parameter(0) b = u32[4] parameter(1) ROOT c = u32[4] %s(a, b) } "
ENTRY = "ENTRY main { x = u32[4] parameter(0) y = u32[4] parameter(1) "


def proofs(xla: Session, before: str, after: str) -> list[str]:
    """The grade of each site, or an empty text where it is not proved."""
    change = Change(xla.parse("HloModule m\n" + before), xla.parse("HloModule m\n" + after), "pass", "", 0)
    graph = dry_change(xla, change, tested=False).graph
    return [own.grade for own in (prove_alternative(graph, n, 0.2) for n in range(len(graph)))]


CALL = BODY + ENTRY + "z = u32[4] call(%s), to_apply=f ROOT r = u32[4] not(z) }"
PLAIN = ENTRY + "w = u32[4] and(x, y) ROOT r = u32[4] not(w) }"


@pytest.mark.parametrize(
    ("opcode", "operands", "grades"),
    [("and", "x, y", ["same"]), ("or", "x, y", [""]), ("and", "y, x", ["move"]), ("and", "x, x", [""])],
)
def test_a_call_is_what_it_computes(xla: Session, opcode: str, operands: str, grades: list[str]) -> None:
    assert proofs(xla, CALL % (opcode, operands), PLAIN) == grades


def test_a_fusion_of_several_results_is_taken_apart(xla: Session) -> None:
    fused = (
        "f { a = u32[4] parameter(0) b = u32[4] parameter(1) c = u32[4] and(a, b) d = u32[4] not(a) "
        "ROOT t = (u32[4], u32[4]) tuple(%s) } "
        + ENTRY
        + "z = (u32[4], u32[4]) fusion(x, y), kind=kLoop, calls=f "
        + "p = u32[4] get-tuple-element(z), index=0 q = u32[4] get-tuple-element(z), index=1 "
        + "ROOT r = (u32[4], u32[4]) tuple(p, q) }"
    )
    plain = ENTRY + "c = u32[4] and(x, y) d = u32[4] not(x) ROOT r.1 = (u32[4], u32[4]) tuple(c, d) }"
    assert proofs(xla, plain, fused % "c, d") == ["same"]
    assert proofs(xla, plain, fused % "d, c") == [""]


LOOP = """body { s = (s32[], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = u32[4] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one) w = u32[4] %s(v)
  ROOT o = (s32[], u32[4]) tuple(j, w) }
cond { s = (s32[], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] parameter_number(0)
  ROOT l = pred[] compare(i, n), direction=LT }
""".replace("parameter_number(0)", "constant(9)")
RUN = "ENTRY main { x = u32[4] parameter(0) zero = s32[] constant(0) start = (s32[], u32[4]) tuple(zero, x) "


def test_a_loop_that_is_copied_is_the_loop(xla: Session) -> None:
    loop = LOOP % "not" + RUN + "e = (s32[], u32[4]) while(start), condition=cond, body=body "
    before = loop + "ROOT r = (s32[], u32[4]) copy(e) }"
    parts = "a = s32[] get-tuple-element(e), index=0 b = u32[4] get-tuple-element(e), index=1 c = u32[4] copy(b) "
    assert proofs(xla, before, loop + parts + "ROOT t = (s32[], u32[4]) tuple(a, c) }") == ["same"]
    # The value at the start is not the value at the end.
    assert proofs(xla, before, loop + parts + "ROOT t = (s32[], u32[4]) tuple(a, x) }") == [""]


def test_another_body_is_another_loop(xla: Session) -> None:
    # Negation and "popcnt" have one shape; only the bodies tell the loops apart.
    end = (
        RUN
        + "e = (s32[], u32[4]) while(start), condition=cond, body=body ROOT r = u32[4] get-tuple-element(e), index=1 }"
    )
    before, after = (
        LOOP % "not" + end,
        LOOP.replace("body {", "body.2 {") % "popcnt" + end.replace("y=body", "y=body.2"),
    )
    assert not any(proofs(xla, before, after))


def test_two_random_values_are_two(xla: Session) -> None:
    rng = "%s = f32[4] rng(x, y), distribution=rng_uniform "
    head = "ENTRY main { x = f32[] parameter(0) y = f32[] parameter(1) "
    one = head + rng % "a" + "ROOT r = f32[4] subtract(a, a) }"
    two = head + rng % "a" + rng % "b" + "ROOT r = f32[4] subtract(a, b) }"
    assert proofs(xla, two, one) == [""]


def test_a_function_with_random_values_is_not_one_value(xla: Session) -> None:
    head = "f { a = f32[] parameter(0) ROOT r = f32[4] rng(a, a), distribution=rng_uniform } "
    calls = "p = f32[4] call(x), to_apply=f q = f32[4] call(x), to_apply=f "
    main = head + "ENTRY main { x = f32[] parameter(0) " + calls
    assert proofs(xla, main + "ROOT r = f32[4] subtract(p, q) }", main + "ROOT r = f32[4] subtract(p, p) }") == [""]


def test_values_that_a_text_left_out_are_not_equal(xla: Session) -> None:
    head = "ENTRY main { a = u32[400] constant({...}) b = u32[400] constant({...}) "
    assert not any(proofs(xla, head + "ROOT r = u32[400] xor(a, b) }", head + "ROOT r = u32[400] xor(a, a) }"))


def test_a_map_is_what_it_computes_at_every_place(xla: Session) -> None:
    head = "f { p = u32[] parameter(0) q = u32[] parameter(1) three = u32[] constant(3) a = u32[] and(p, three) "
    before = head + "ROOT m = u32[] or(a, q) } " + ENTRY + "z = u32[4] map(x, y), dimensions={0}, to_apply=f "
    before += "ROOT r = u32[4] not(z) }"
    after = ENTRY + "three.1 = u32[] constant(3) threes = u32[4] broadcast(three.1), dimensions={} "
    after += "b = u32[4] and(x, threes) w = u32[4] or(%s) ROOT r = u32[4] not(w) }"
    assert proofs(xla, before, after % "b, y") == ["same"]
    assert proofs(xla, before, after % "y, b") == ["move"]
    assert proofs(xla, before, after.replace("constant(3)", "constant(5)") % "b, y") == [""]


def test_bits_that_are_read_as_another_dtype(xla: Session) -> None:
    head = "ENTRY main { x = f32[2,3]{1,0} parameter(0) "
    convert = head + "b = u32[2,3]{1,0} bitcast-convert(x) ROOT r = u32[2,3]{1,0} not(b) }"
    assert proofs(xla, convert, head + "c = u32[2,3]{1,0} bitcast(x) ROOT r = u32[2,3]{1,0} not(c) }") == ["same"]
    # Another layout: the elements lie there in another order.
    assert proofs(xla, convert, head + "c = u32[2,3]{0,1} bitcast(x) ROOT r = u32[2,3]{1,0} not(c) }") == [""]
    # A number that is converted is not its bits.
    assert proofs(xla, convert, head + "c = u32[2,3]{1,0} convert(x) ROOT r = u32[2,3]{1,0} not(c) }") == [""]
