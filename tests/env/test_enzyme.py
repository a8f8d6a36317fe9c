"""Enzyme-JAX's patterns as alternatives: ``make enzyme``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.env.dryrun import dry_run
from rewright.env.enzyme import patterns
from rewright.env.episode import Episode, Settings
from rewright.env.evidence import evidence_for
from rewright.env.session import Session
from rewright.env.trajectory import replay
from rewright.env.xla.worker import XlaError
from rewright.ir.errors import RewrightError

installed = pytest.mark.skipif(find_spec("enzyme_ad") is None, reason="needs the extra rewright[enzyme]")

TWICE = """HloModule twice
ENTRY main {
  x = f32[4,3] parameter(0)
  y = f32[4,3] parameter(1)
  c = f32[4,3] add(x, y)
  n = f32[4,3] negate(c)
  k = f32[4,3] negate(n)
  e = f32[4,3] exponential(k)
  l = f32[4,3] log(e)
  ROOT r = f32[4,3] multiply(l, c)
}
"""


@pytest.mark.skipif(find_spec("enzyme_ad") is not None, reason="Enzyme-JAX is there")
def test_without_it_there_is_one_line(xla: Session) -> None:
    with pytest.raises(
        XlaError, match=r"Enzyme-JAX needs the package enzyme-ad, .* run pip install 'enzyme-ad==0.0.16'"
    ):
        dry_run(xla, xla.parse(TWICE), ["enzyme:involution_neg_simplify"])


@installed
def test_there_are_hundreds_with_names_of_their_own(xla: Session) -> None:
    names = [pattern.name for pattern in patterns(xla)]
    assert len(names) > 400
    assert len(set(names)) == len(names)


@installed
def test_one_pattern_is_one_site_and_proved(xla: Session) -> None:
    run = dry_run(xla, xla.parse(TWICE), ["enzyme:involution_neg_simplify"])
    (own,) = run.graph.alternatives
    assert own.provenance.name == "involution_neg_simplify"
    assert evidence_for(run.graph, 0, run.tests[0]).status == "proved"
    chosen = {i.opcode for i in run.apply([0]).program.main.instructions.values()}
    assert "negate" not in chosen
    assert "exponential" in chosen


@installed
def test_a_pattern_that_does_not_match_offers_nothing(xla: Session) -> None:
    assert not len(dry_run(xla, xla.parse(TWICE), ["enzyme:transpose_transpose"]))


@installed
def test_a_pattern_that_does_not_exist_is_named(xla: Session) -> None:
    with pytest.raises(RewrightError, match="did you mean transpose_transpose"):
        dry_run(xla, xla.parse(TWICE), ["enzyme:transpose_transposed"])


@installed
def test_a_trajectory_with_patterns_runs_again(xla: Session) -> None:
    episode = Episode(xla, xla.parse(TWICE), Settings(("enzyme", "algsimp")))
    for number in range(len(episode.run)):
        episode.choose(number)
    assert episode.chosen
    assert episode.validate().agrees
    assert replay(xla, episode.to_json()).chosen == episode.chosen


@installed
def test_the_command_lists_those_that_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.hlo"
    path.write_text(TWICE)
    assert run(["env", "patterns", str(path)]) == 0
    said = capsys.readouterr().out
    assert "involution_neg_simplify" in said
    assert "patterns match" in said
