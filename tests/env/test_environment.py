"""The Gymnasium environment: its contract, its masks, and trajectories that run again."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rewright.env.environment import HloRewrite
from rewright.env.registration import ID, register
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import LOOP, RATES


@pytest.fixture
def env(xla: Session) -> HloRewrite:
    return HloRewrite(xla.parse(RATES), session=xla, most_alternatives=8)


@pytest.mark.parametrize("actions", ["sequential", "vector", "passes"])
@pytest.mark.parametrize("observation", ["arrays", "graph"])
def test_gymnasium_finds_nothing_to_complain_about(xla: Session, actions, observation) -> None:
    env = HloRewrite(
        xla.parse(RATES), session=xla, actions=actions, observation=observation, most_alternatives=8, passes=["algsimp"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)


def test_it_is_made_by_name(tmp_path: Path) -> None:
    path = tmp_path / "rates.hlo"
    path.write_text(RATES)
    register()
    env = gymnasium.make(f"rewright.env:{ID}", hlo=path, passes=["algsimp"], actions="sequential", reward="cost")
    _, info = env.reset(seed=0)
    assert info["alternatives"] == 3
    env.close()


def test_an_episode_starts_from_a_text(env: HloRewrite) -> None:
    env.reset(options={"hlo": LOOP})
    assert env.episode.original.name == "loop"
    with pytest.raises(RewrightError, match="5 is no module"):
        env.reset(options={"hlo": 5})


def test_all_choices_then_a_round_then_nothing_is_left(env: HloRewrite) -> None:
    _, info = env.reset(seed=0)
    total = 0.0
    for number in range(info["alternatives"]):
        _, reward, done, _, info = env.step(number)
        total += reward
        assert not done
        assert number in info["chosen"]
    assert info["action_mask"][env.most_alternatives]
    _, _, done, _, info = env.step(env.most_alternatives)
    assert done or info["round"] == 1
    assert env.validate().agrees
    assert total != 0


def test_a_masked_action_changes_nothing(env: HloRewrite) -> None:
    env.reset(seed=0)
    before = env.episode.current
    for action in (7, env.most_alternatives):
        assert not env.action_masks()[action]
        _, reward, done, _, info = env.step(action)
        assert (reward, done) == (0.0, False)
        assert "refused" in info
    assert env.episode.current is before


def test_the_stop_action_ends_the_episode(env: HloRewrite) -> None:
    env.reset(seed=0)
    _, _, done, truncated, _ = env.step(env.most_alternatives + 1)
    assert (done, truncated) == (True, False)


def test_a_fork_goes_its_own_way(env: HloRewrite) -> None:
    env.reset(seed=0)
    other = env.fork()
    env.step(0)
    assert (env.episode.chosen, other.episode.chosen) == ((0,), ())


def test_a_trajectory_runs_again(env: HloRewrite, tmp_path: Path) -> None:
    env.reset(seed=0)
    env.step(1)
    env.step(env.most_alternatives)
    env.save(tmp_path / "trajectory.json")
    final = env.session.fingerprint(env.episode.current)
    env.reset(seed=0)
    env.load(tmp_path / "trajectory.json")
    assert env.session.fingerprint(env.episode.current) == final
    assert env.validate().agrees
    steps = json.loads((tmp_path / "trajectory.json").read_text())["steps"]
    assert [step["status"] for step in steps] == ["proved"]


@pytest.mark.parametrize("text", ["{", "{}", '{"format": "rewright.trajectory", "version": 1}', "[1]"])
def test_what_is_no_trajectory_is_one_line(env: HloRewrite, tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(RewrightError) as caught:
        env.load(tmp_path / "broken.json")
    assert "\n" not in str(caught.value)


def test_a_vector_chooses_everything_at_once(xla: Session) -> None:
    env = HloRewrite(xla.parse(RATES), session=xla, actions="vector", most_alternatives=4, passes=["algsimp"])
    env.reset(seed=0)
    _, _, _, _, info = env.step(np.array([1, 1, 1, 1]))
    assert info["round"] == 1
    assert len(env.episode.past[0].chosen) == 3


def test_a_pass_at_a_time(xla: Session) -> None:
    env = HloRewrite(xla.parse(RATES), session=xla, actions="passes", passes=["algsimp", "cse"])
    env.reset(seed=0)
    env.step(0)
    opcodes = {i.opcode for i in env.episode.current.program.main.instructions.values()}
    assert not {"power", "subtract"} & opcodes
    assert env.step(2)[2]


def test_xla_ends_its_process_and_the_trajectory_survives(env: HloRewrite) -> None:
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(RewrightError):
        env.session.worker.call("abort")
    _, _, _, _, info = env.step(1)
    assert info["chosen"] == (0, 1)
    assert env.validate().agrees


def test_the_picture_marks_what_was_chosen(xla: Session) -> None:
    env = HloRewrite(xla.parse(RATES), session=xla, render_mode="svg", passes=["algsimp"])
    env.reset(seed=0)
    env.step(0)
    picture = env.render()
    ElementTree.fromstring(picture)
    assert picture.count('stroke="#c33"') == len(env.episode.run.graph.alternatives[0].uses)


def test_features_keep_order_and_multiplicity_of_operands(xla: Session) -> None:
    source = "HloModule m\nENTRY main { x = f32[4] parameter(0) ROOT y = f32[4] subtract(x, x) }"
    env = HloRewrite(xla.parse(source), session=xla, tested=False, passes=["cse"])
    env.reset(seed=0)
    assert env.features().edges[:, 0].tolist() == [0, 1]
    assert env.features().nodes[0].tolist()[6:8] == [4, 16]


def test_a_measured_reward_comes_with_its_interval(xla: Session) -> None:
    env = HloRewrite(xla.parse(LOOP), session=xla, reward="time", passes=["algsimp"])
    env.reset(seed=0)
    _, _, done, _, info = env.step(env.most_alternatives + 1)
    assert done
    found = info["measurement"]
    assert found.low <= found.speedup <= found.high
    assert found.noise >= 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"passes": ["nothing"]}, "no pass"),
        ({"reward": "luck"}, "reward is 'luck'"),
        ({"actions": "none"}, "actions is 'none'"),
        ({"observation": "text"}, "observation is 'text'"),
        ({"granularity": "graph"}, "granularity is 'graph'"),
        ({"most_alternatives": -1}, "most_alternatives is -1"),
        ({"most_steps": 0}, "most_steps is 0"),
        ({"patterns": [1]}, "1 is no pattern"),
        ({"hlo": 5}, "5 is no module"),
        ({"hlo": []}, "no module"),
        ({"hlo": "/nowhere.hlo"}, "cannot read"),
    ],
)
def test_bad_arguments_are_one_line(xla: Session, arguments, message: str) -> None:
    given = {"hlo": xla.parse(LOOP), "session": xla} | arguments
    with pytest.raises(RewrightError, match=message):
        HloRewrite(**given)
