"""Mutated and truncated texts: a module or one line, and the process for XLA is there afterwards."""

from __future__ import annotations

import random

import pytest

from rewright.env.dryrun import dry_run
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import DTYPES, LOOP, RATES


def _mutated(text: str, chooser: random.Random) -> str:
    kind = chooser.randrange(4)
    place = chooser.randrange(len(text))
    if kind == 0:
        return text[:place]
    if kind == 1:
        return text[:place] + chooser.choice("{}()[],=%0123456789 \n") + text[place + 1 :]
    if kind == 2:
        other = chooser.randrange(len(text))
        low, high = sorted((place, other))
        return text[:low] + text[high:]
    words = text.split(" ")
    a, b = chooser.randrange(len(words)), chooser.randrange(len(words))
    words[a], words[b] = words[b], words[a]
    return " ".join(words)


def _survives(xla: Session, count: int, seed: int) -> None:
    chooser = random.Random(seed)
    said: list[str] = []
    for _ in range(count):
        text = _mutated(chooser.choice([RATES, LOOP, DTYPES]), chooser)
        try:
            dry_run(xla, xla.parse(text), ["algsimp"], tested=False)
        except RewrightError as error:
            said.append(str(error))
    assert not any("\n" in line for line in said)
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
