"""Loops whose states are arranged otherwise: equal where condition, starts and steps are, and never else."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from rewright.env.inlining import Inlined
from rewright.env.session import Session
from tests.env.test_inlining import proofs

HOISTED = """body.2 { s = (s32[], u32[4], u32[4], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = u32[4] get-tuple-element(s), index=1 a = u32[4] get-tuple-element(s), index=2
  h = u32[4] get-tuple-element(s), index=3 one = s32[] constant(1) j = s32[] add(i, one) w = u32[4] add(v, h)
  ROOT o = (s32[], u32[4], u32[4], u32[4]) tuple(j, w, a, PASSED) }
cond.2 { s = (s32[], u32[4], u32[4], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY main { x = u32[4] parameter(0) y = u32[4] parameter(1) zero = s32[] constant(0) g = u32[4] BEFORE
  start = (s32[], u32[4], u32[4], u32[4]) tuple(zero, x, y, g)
  e = (s32[], u32[4], u32[4], u32[4]) while(start), condition=cond.2, body=body.2
  f.2 = u32[4] get-tuple-element(e), index=1 ROOT r = u32[4] not(f.2) }"""
INSIDE = """body { s = (s32[], u32[4], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = u32[4] get-tuple-element(s), index=1 a = u32[4] get-tuple-element(s), index=2
  h = u32[4] multiply(a, a) one = s32[] constant(1) j = s32[] add(i, one) w = u32[4] add(v, h)
  ROOT o = (s32[], u32[4], u32[4]) tuple(j, w, a) }
cond { s = (s32[], u32[4], u32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY main { x = u32[4] parameter(0) y = u32[4] parameter(1) zero = s32[] constant(0)
  start = (s32[], u32[4], u32[4]) tuple(zero, x, y)
  d = (s32[], u32[4], u32[4]) while(start), condition=cond, body=body
  f = u32[4] get-tuple-element(d), index=1 ROOT r = u32[4] not(f) }"""


@pytest.mark.parametrize(
    ("before", "passed", "changes", "grades"),
    [
        ("multiply(y, y)", "h", {}, ["same"]),
        # Another value before the loop, one that the body changes, another bound, start and step.
        ("multiply(x, y)", "h", {}, [""]),
        ("multiply(y, y)", "w", {}, [""]),
        ("multiply(y, y)", "v", {}, [""]),
        ("multiply(y, y)", "h", {"constant(9)": "constant(8)"}, [""]),
        ("multiply(y, y)", "h", {"tuple(zero, x, y, g)": "tuple(zero, y, y, g)"}, [""]),
        ("multiply(y, y)", "h", {"constant(1)": "constant(3)"}, [""]),
        ("multiply(y, y)", "h", {"tuple(j, w, a, h)": "tuple(j, w, w, h)"}, ["same"]),
        ("multiply(y, y)", "h", {"add(v, h)": "add(a, h)"}, [""]),
    ],
)
def test_what_does_not_change_may_be_computed_before_the_loop(
    xla: Session, before: str, passed: str, changes: dict[str, str], grades: list[str]
) -> None:
    hoisted = HOISTED.replace("BEFORE", before).replace("PASSED", passed)
    for old, new in changes.items():
        hoisted = hoisted.replace(old, new)
    assert proofs(xla, INSIDE, hoisted) == grades


NESTED = """inner { s = (s32[], u32[], u32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = u32[] get-tuple-element(s), index=1 k = u32[] get-tuple-element(s), index=2 one = s32[] constant(1)
  j = s32[] add(i, one) w = u32[] add(v, k) ROOT o = (s32[], u32[], u32[]) tuple(j, w, k) }
less { s = (s32[], u32[], u32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
outer { s = (s32[], u32[], u32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  v = u32[] get-tuple-element(s), index=1 k = u32[] get-tuple-element(s), index=2 one = s32[] constant(1)
  j = s32[] add(i, one) zero = s32[] constant(0) t = (s32[], u32[], u32[]) tuple(zero, %s)
  e = (s32[], u32[], u32[]) while(t), condition=less, body=inner w = u32[] get-tuple-element(e), index=1
  ROOT o = (s32[], u32[], u32[]) tuple(j, w, %s) }
ENTRY main { x = u32[] parameter(0) y = u32[] parameter(1) zero = s32[] constant(0)
  start = (s32[], u32[], u32[]) tuple(zero, x, y)
  d = (s32[], u32[], u32[]) while(start), condition=less, body=outer
  f = u32[] get-tuple-element(d), index=1 ROOT r = u32[] not(f) }"""


@pytest.mark.parametrize(
    ("inside", "passed"), [("k, v", "k"), ("v, v", "k"), ("k, k", "k"), ("v, k", "v"), ("v, k", "w")]
)
def test_loops_in_loops_are_kept_apart(xla: Session, inside: str, passed: str) -> None:
    plain = NESTED % ("v, k", "k")
    other = NESTED % (inside, passed)
    other = re.sub(r"\b(outer|e|d|f)\b", r"\1.2", other)
    assert not any(proofs(xla, plain, other))
    assert proofs(xla, plain, NESTED % ("v, k", "k")) == []


STEPS = ("{0}", "{1}", "{2}", "add({0}, {1})", "add({1}, {2})", "multiply({0}, {2})", "xor({0}, {1})", "not({2})")
LOOPS = 60


def _loops(chooser: random.Random) -> str:
    """A module with loops of a counter and three numbers, each with steps, starts and a value at random."""
    lines, mains, results = list[str](), list[str](), list[str]()
    kind = "(s32[], u32[], u32[], u32[])"
    for number in range(LOOPS):
        parts = [f"  p{k} = u32[] get-tuple-element(s), index={k + 1}" for k in range(3)]
        order = chooser.sample(range(3), 3)
        taken = list[str]()
        for place in range(3):
            step = chooser.choice(STEPS).format(*(f"p{order[k]}" for k in range(3)))
            taken.append(f"q{place}" if "(" in step else step)
            if "(" in step:
                parts.append(f"  q{place} = u32[] {step}")
        lines += [f"body.{number} {{ s = {kind} parameter(0)", "  i = s32[] get-tuple-element(s), index=0"]
        lines += [*parts, "  one = s32[] constant(1)", "  j = s32[] add(i, one)"]
        lines.append(f"  ROOT o = {kind} tuple(j, {', '.join(taken)}) }}")
        starts = ", ".join(chooser.choice("xyz") for _ in range(3))
        mains += [f"  t{number} = {kind} tuple(zero, {starts})"]
        mains += [f"  e{number} = {kind} while(t{number}), condition=less, body=body.{number}"]
        mains += [f"  r{number} = u32[] get-tuple-element(e{number}), index={chooser.randrange(1, 4)}"]
        results.append(f"r{number}")
    less = f"""less {{ s = {kind} parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3)
      ROOT l = pred[] compare(i, n), direction=LT }}"""
    inputs = [f"  {name} = u32[] parameter({place})" for place, name in enumerate("xyz")]
    root = f"  ROOT all = ({', '.join(['u32[]'] * LOOPS)}) tuple({', '.join(results)}) }}"
    entry = ["ENTRY main {", *inputs, "  zero = s32[] constant(0)", *mains, root]
    return "\n".join(["HloModule loops", less, *lines, *entry])


@pytest.mark.parametrize("seed", [0, 1])
def test_loops_of_one_term_give_one_value(xla: Session, seed: int) -> None:
    module = xla.parse(_loops(random.Random(seed)))
    main = module.program.main
    outputs = main.instructions[main.root].operands
    values = Inlined(module.program.computations).values((main.name,), main.instructions, outputs)
    inputs = [np.array(value, np.uint32) for value in (11, 1_000_003, 77_777_777)]
    found = dict(zip(outputs, xla.execute(module, inputs), strict=True))
    groups: dict[int, list[int]] = {}
    for name, number in values.items():
        if name in found:
            groups.setdefault(number, []).append(int(found[name]))
    assert all(len(set(own)) == 1 for own in groups.values())
    assert any(len(own) > 1 for own in groups.values())
