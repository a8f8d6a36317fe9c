"""Trajectories run again to the same end, whatever was chosen; one that was edited is one line, and never believed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewright.env.environment import HloRewrite
from rewright.env.episode import Episode, Settings
from rewright.env.session import Session
from rewright.env.trajectory import replay
from rewright.ir.errors import RewrightError
from rewright.proof.container import seal_document
from tests.env.modules import RATES

PASSES = ("algsimp", "cse")


@pytest.fixture(scope="module")
def written(xla: Session) -> dict[str, Any]:
    episode = Episode(xla, xla.parse(RATES), Settings(PASSES))
    assert episode.choose(0)
    assert episode.choose(1)
    episode.next_round()
    return episode.to_json(seconds=5)


def test_it_runs_again(xla: Session, written: dict[str, Any]) -> None:
    assert {step["status"] for step in written["steps"]} <= {"proved", "tested"}
    again = replay(xla, json.loads(json.dumps(written)))
    assert [own.chosen for own in again.rounds] == [(0, 1), ()]
    assert again.to_json(seconds=5) == written


def test_one_that_starts_after_xla_does_too(xla: Session) -> None:
    late = xla.optimised(xla.parse(RATES), "fusion")
    episode = Episode(xla, late, Settings(("general-fusion",), tested=False))
    assert episode.choose(0)
    again = replay(xla, episode.to_json())
    assert again.current.late
    assert again.validate().agrees


def test_one_of_whole_passes_does_too(xla: Session, tmp_path: Path) -> None:
    env = HloRewrite(xla.parse(RATES), session=xla, actions="passes", passes=PASSES)
    env.reset(seed=0)
    env.step(0)
    env.step(1)
    env.save(tmp_path / "passes.json")
    final = xla.fingerprint(env.episode.current)
    env.reset(seed=0)
    env.load(tmp_path / "passes.json")
    assert xla.fingerprint(env.episode.current) == final


def _changed(document: dict[str, Any], change) -> dict[str, Any]:
    """The trajectory with a change, and the digest of what it says then."""
    other = copy.deepcopy(document)
    change(other)
    return seal_document(other)


def _step(**fields: object):
    return lambda d: d["steps"][0].update(fields)


CHANGES = {
    "another choice": lambda d: d["rounds"][0]["chosen"].__setitem__(1, 2),
    "a choice less": lambda d: d["rounds"][0]["chosen"].pop(),
    "a choice that is not there": lambda d: d["rounds"][0]["chosen"].append(99),
    "a choice from the end": lambda d: d["rounds"][0]["chosen"].__setitem__(0, -1),
    "a choice twice": lambda d: d["rounds"][0]["chosen"].append(0),
    "a choice that is no number": lambda d: d["rounds"][0]["chosen"].__setitem__(0, "0"),
    "a choice that is true": lambda d: d["rounds"][0]["chosen"].__setitem__(1, True),
    "choices that are a text": lambda d: d["rounds"][0].update(chosen="01"),
    "another pass": lambda d: d["rounds"][0].update(passes=["cse"]),
    "a pass that does not exist": lambda d: d["rounds"][0].update(passes=["algsimq"]),
    "no rounds": lambda d: d.update(rounds=[]),
    "a round less": lambda d: d["rounds"].pop(0),
    "another claim": _step(claim="%x = %y at 1 use, by xla algsimp"),
    "no claim": lambda d: d["steps"][0].pop("claim"),
    "a step less": lambda d: d["steps"].pop(),
    "another program that was proved": lambda d: [s.update(left=s["right"]) for s in d["steps"] if s["left"]],
    "no grade": lambda d: [s.update(grade="") for s in d["steps"]],
    "a better grade": lambda d: [s.update(grade="same") for s in d["steps"]],
    "a status that does not exist": _step(status="certain"),
    "another module at the start": lambda d: d.update(original=d["original"][:-4] + "AAAA"),
    "another fingerprint": lambda d: d.update(fingerprint="0" * 64),
    "another end": lambda d: d.update(final=d["fingerprint"]),
    "no end": lambda d: d.pop("final"),
    "late": lambda d: d.update(late="no"),
    "another granularity": lambda d: d.update(granularity="all"),
    "another version": lambda d: d.update(version=1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_one_that_was_edited_is_one_line(xla: Session, written: dict[str, Any], change) -> None:
    with pytest.raises(RewrightError) as caught:
        replay(xla, _changed(written, change))
    assert "\n" not in str(caught.value)


def test_less_may_be_said_of_a_step_than_is_found(xla: Session, written: dict[str, Any]) -> None:
    place = next(k for k, step in enumerate(written["steps"]) if step["status"] == "proved")
    less = {"text": "one term", "grade": "", "left": "", "right": ""}
    for fields in ({"grade": "real"}, {"status": "tested", **less}, {"status": "unknown", **less}):
        assert replay(xla, _changed(written, lambda d, f=fields: d["steps"][place].update(f)))


def test_a_digest_that_does_not_fit_is_one_line(xla: Session, written: dict[str, Any]) -> None:
    with pytest.raises(RewrightError, match="changed after it was written"):
        replay(xla, {**written, "refused": ["something"]})


def test_what_was_tested_is_not_said_to_be_proved(xla: Session) -> None:
    source = "HloModule m\nENTRY e { x = f32[4] parameter(0) c = f32[] constant(3) d = f32[4] broadcast(c), dimensions={} ROOT r = f32[4] divide(x, d) }"  # noqa: E501
    episode = Episode(xla, xla.parse(source), Settings(("algsimp",)))
    assert episode.choose(0)
    document = episode.to_json()
    # The reciprocal of 3 is no float.
    assert [step["status"] for step in document["steps"]] == ["tested"]
    with pytest.raises(RewrightError, match="step 0 is said to be 'proved' and is tested here"):
        replay(xla, _changed(document, _step(status="proved")))


@pytest.mark.parametrize("action", ["abc", None, 1.5, float("nan"), [0, 1], [], True, -3, 10**6, {"a": 1}])
def test_what_is_no_action_changes_nothing(xla: Session, action: object) -> None:
    env = HloRewrite(xla.parse(RATES), session=xla, passes=PASSES, most_alternatives=8)
    env.reset(seed=0)
    before = env.episode.current
    _, reward, ended, _, info = env.step(action)
    assert (reward, ended, env.episode.current) == (0.0, False, before)
    assert "\n" not in info["refused"]


@pytest.mark.parametrize("action", [["a"], [1.0, 2.0], [], [99] * 8])
def test_what_is_no_vector_of_choices_changes_nothing(xla: Session, action: Any) -> None:
    env = HloRewrite(xla.parse(RATES), session=xla, actions="vector", passes=PASSES, most_alternatives=8)
    env.reset(seed=0)
    before = xla.fingerprint(env.episode.current)
    env.step(np.array(action))
    assert xla.fingerprint(env.episode.current) == before


def test_a_pass_that_does_not_exist_is_one_line(xla: Session) -> None:
    with pytest.raises(RewrightError, match=r"no pass 'algsimq'.*did you mean"):
        Episode(xla, xla.parse(RATES), Settings(("algsimq",)))


def test_outputs_that_say_nothing_are_no_evidence(xla: Session) -> None:
    head = "HloModule m\nENTRY e { x = f32[4] parameter(0) a = f32[4] abs(x) n = f32[4] negate(a) "
    nothing = xla.parse(
        head
        + "c = f32[] constant(1) o = f32[4] broadcast(c), dimensions={} "
        + "m = f32[4] subtract(n, o) ROOT r = f32[4] log(m) }"
    )
    episode = Episode(xla, nothing, Settings(("algsimp",), tested=False))
    assert episode.validate().agrees is None
    drawn = xla.parse(
        "HloModule m\nENTRY e { a = f32[] constant(0) b = f32[] constant(1) ROOT x = f32[3] rng(a, b), distribution=rng_uniform }"  # noqa: E501
    )
    assert Episode(xla, drawn, Settings(("algsimp",))).validate().agrees is None
