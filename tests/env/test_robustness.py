"""Mutated and truncated texts: a module or one line, and the process for XLA is there afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from bench.robust import survive
from rewright.env.dryrun import dry_run
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import DTYPES, LOOP, RATES


def _survives(xla: Session, count: int, seed: int) -> None:
    found = survive(xla, [RATES, LOOP, DTYPES], count, seed, tested=False)
    assert sum(sum(tally.ends.values()) for tally in found.values()) == count
    assert all(tally.ends["one line"] and not tally.ends["SEVERAL LINES"] for tally in found.values())
    assert xla.fingerprint(xla.parse(RATES))


def test_mutated_texts(xla: Session) -> None:
    _survives(xla, 60, 0)


@pytest.mark.slow
def test_two_thousand_mutated_texts(xla: Session) -> None:
    _survives(xla, 2000, 1)


ELIDED = """HloModule m
ENTRY main { x = f32[4] parameter(0) c = f32[4] constant({...}) d = f32[4] constant({...})
  s = f32[4] add(c, d) two = f32[] constant(2) twos = f32[4] broadcast(two), dimensions={}
  p = f32[4] power(x, twos) ROOT y = f32[4] add(p, s) }"""


def test_elided_constants_are_parameters(xla: Session) -> None:
    module = xla.parse(ELIDED)
    assert [i.name for i in module.program.main.parameters()] == ["x", "c", "d"]
    assert xla.parse(xla.text(module)).program.main.signature == module.program.main.signature
    x, c, d = np.float32([1, 2, 3, 4]), np.float32([5, 6, 7, 8]), np.float32([1, 1, 2, 2])
    np.testing.assert_array_equal(xla.execute(module, [x, c, d])[0], x**2 + (c + d))


def test_nothing_follows_from_values_that_were_left_out(xla: Session) -> None:
    run = dry_run(xla, xla.parse(ELIDED), ["algsimp", "constant_folding"])
    # A sum of two constants is not folded, as nobody knows them.
    assert [a.value.split(".")[0] for a in run.graph.alternatives] == ["p"]
    assert all(test.agrees for test in run.tests)


def test_elided_constants_inside_of_a_loop_are_one_line(xla: Session) -> None:
    source = LOOP.replace("w = f32[4] add(v, v)", "c = f32[4] constant({...}) w = f32[4] add(v, c)")
    with pytest.raises(RewrightError, match=r"constant c in body are elided .*; print the module"):
        xla.parse(source)


def test_absurd_shapes_are_one_line(xla: Session) -> None:
    source = """HloModule m
    ENTRY main { x = f32[4000000000,4000000000] parameter(0)
      ROOT y = f32[4000000000,4000000000] negate(x) }"""
    with pytest.raises(RewrightError) as caught:
        xla.execute(xla.parse(source), [])
    assert "\n" not in str(caught.value)
