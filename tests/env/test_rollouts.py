"""Agents over many modules: tasks travel as plain values, what goes wrong stays with its module."""

from __future__ import annotations

import json
import pickle
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.env.chart import Bar, chart
from rewright.env.datasets import dataset
from rewright.env.proposers import hand_decided
from rewright.env.rewards import Measurement
from rewright.env.rollouts import Rollout, Task, check_names, geometric_mean, run_rollouts
from rewright.env.session import Session
from rewright.env.trajectory import replay
from rewright.ir.errors import RewrightError
from tests.env.modules import LOOP, RATES


@pytest.mark.long
def test_a_rollout_travels_and_its_trajectory_runs_again(xla: Session) -> None:
    task = Task("rates", xla.parse(RATES).proto, ("algsimp", "rules"), ("always-first", "uniform"), seeds=2)
    outcome = pickle.loads(pickle.dumps(run_rollouts(pickle.loads(pickle.dumps(task)))))
    assert outcome.error == ""
    assert [(one.agent, one.seed) for one in outcome.rollouts] == [
        ("always-first", 0),
        ("always-first", 1),
        ("uniform", 0),
        ("uniform", 1),
    ]
    first, again = outcome.rollouts[:2]
    assert (first.steps, first.cost, first.gain) == (again.steps, again.cost, again.gain)
    assert all(one.equal for one in outcome.rollouts)
    assert all(0 <= one.proved <= one.steps for one in outcome.rollouts)
    assert first.steps > 0
    assert first.trajectory is not None
    episode = replay(xla, first.trajectory)
    assert sum(len(entry.chosen) for entry in episode.rounds) == first.steps


def test_what_xla_refuses_is_an_error_of_its_module() -> None:
    outcome = run_rollouts(Task("none", b"no module", ("algsimp",), ("greedy",)))
    assert outcome.rollouts == ()
    assert outcome.error
    assert "\n" not in outcome.error


def test_what_does_not_exist_is_said_before_any_worker_starts() -> None:
    with pytest.raises(RewrightError, match="no agent 'clever'"):
        check_names(("algsimp",), ("clever",))
    with pytest.raises(RewrightError, match="no pass 'algsim'"):
        check_names(("algsim",), ("greedy",))


def test_agents_go_on_from_what_xla_made(xla: Session) -> None:
    (entry,) = dataset(xla, "jax:layer-norm")
    agents = ("greedy", "beam", "e-graph")
    task = Task("norm", entry.module.proto, ("general-fusion",), agents, rounds=5, after_xla=True)
    outcome = run_rollouts(task)
    assert outcome.error == ""
    for one in outcome.rollouts:
        assert one.equal
        assert one.gain == pytest.approx(1 / one.cost)
        assert one.gain > 1
        assert one.measured is not None
    with pytest.raises(RewrightError, match="algsimp cannot run after XLA's passes"):
        check_names(("algsimp",), agents, after_xla=True)


def test_only_passes_of_xla_are_not_to_run_again() -> None:
    assert hand_decided(("algsimp", "rules", "rule:distribute", "general-fusion", "h100:algsimp")) == ("algsimp",)


def test_an_agent_without_time_ends_where_it_starts(xla: Session) -> None:
    proto = xla.parse(RATES).proto
    agents = ("always-first", "uniform", "greedy", "beam", "tree-search", "e-graph")
    outcome = run_rollouts(Task("rates", proto, ("algsimp",), agents, budget=0.0))
    assert outcome.error == ""
    assert [(one.steps, one.cost) for one in outcome.rollouts] == [(0, 1.0)] * len(agents)


@pytest.mark.parametrize(("gain", "kept", "worth"), [(1.2, True, 1.2), (1.0, False, 1.0), (0.8, False, 1.0)])
def test_xlas_own_result_is_kept_where_a_choice_is_not_cheaper(gain: float, kept: bool, worth: float) -> None:
    own = Rollout("greedy", 0, 3, 3, 0.9, gain, True, Measurement(1.0, 2.0, 0.5, 0.4, 0.6, 0.01), None)
    assert (own.kept, own.gain_kept) == (kept, worth)
    # What is not taken is as fast as itself.
    assert own.speedup_kept == (0.5 if kept else 1.0)
    assert not replace(own, equal=False).kept
    # Where nothing can be run, what is proved is taken.
    assert replace(own, equal=None).kept == kept
    assert not replace(own, equal=None, proved=2).kept


def test_the_mean_of_ratios() -> None:
    mean, low, high = geometric_mean([0.5, 2.0, 1.0])
    assert mean == pytest.approx(1.0)
    assert 0.5 <= low <= mean <= high <= 2.0


def test_the_chart_is_svg_and_has_every_module() -> None:
    drawn = chart("a < b", [Bar("one", (0.5, 2.0), (1.0, 0.5, 2.0)), Bar("two", (3.0,), (3.0, 3.0, 3.0))])
    root = ElementTree.fromstring(drawn)
    circles = [node for node in root if node.tag.endswith("circle")]
    assert len(circles) == 3 + 2
    assert all(130 <= float(node.attrib["cx"]) <= 590 for node in circles)


def test_the_command_over_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumps, out = tmp_path / "dumps", tmp_path / "out"
    dumps.mkdir()
    (dumps / "rates.hlo").write_text(RATES)
    (dumps / "loop.hlo").write_text(LOOP)
    line = ["env", "bench", str(dumps), "--agents", "always-first", "--names", "algsimp", "--jobs", "2"]
    assert run([*line, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "rates.hlo: 17 instructions" in said
    assert "2 modules; geometric means" in said
    results = json.loads((out / "results.json").read_text())
    assert [module["name"] for module in results["modules"]] == ["loop.hlo", "rates.hlo"]
    assert (out / "gain.svg").read_text().startswith("<svg")
    assert json.loads((out / "rates.hlo.always-first.0.json").read_text())["format"] == "rewright.trajectory"


def test_the_command_without_modules_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["env", "bench", str(tmp_path)]) == 3
    assert run(["env", "bench", "jax:rotary", "--agents", "clever"]) == 3
    assert run(["env", "bench", "jax:rotary", "--most", "1"]) == 3
    assert run(["env", "bench", "jax:rotary", "--executor", "moon"]) == 3
    assert capsys.readouterr().err.count("\n") == 4
