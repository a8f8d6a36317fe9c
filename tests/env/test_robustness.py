"""Mutated and truncated texts: a module or one line, and the process for XLA is there afterwards."""

from __future__ import annotations

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


def test_elided_constants_are_never_evidence(xla: Session) -> None:
    source = """HloModule m
    ENTRY main { x = f32[100] parameter(0) c = f32[100] constant({...}) two = f32[] constant(2)
      twos = f32[100] broadcast(two), dimensions={} p = f32[100] power(x, twos) ROOT y = f32[100] add(p, c) }"""
    module = xla.parse(source)
    run = dry_run(xla, module, ["algsimp"])
    assert all(test.agrees is not True for test in run.tests) or not module.elided()


def test_absurd_shapes_are_one_line(xla: Session) -> None:
    source = """HloModule m
    ENTRY main { x = f32[4000000000,4000000000] parameter(0)
      ROOT y = f32[4000000000,4000000000] negate(x) }"""
    with pytest.raises(RewrightError) as caught:
        xla.execute(xla.parse(source), [])
    assert "\n" not in str(caught.value)
