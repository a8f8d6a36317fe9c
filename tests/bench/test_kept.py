"""What a long comparison keeps: results of the same settings are found again, those of others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.env.rewards import Measurement
from rewright.env.rollouts import Rollout

pytest.importorskip("jax")

from bench.kept import Kept

ROLLOUT = Rollout("greedy", 0, 3, 2, 0.5, 1.25, True, Measurement(2.0, 1.0, 2.0, 1.5, 2.5, 0.01), None)


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "new", ("algsimp",), (512, 60))
    assert kept.read("jax:mlp", "greedy") is None
    kept.write("jax:mlp", ROLLOUT)
    assert Kept(tmp_path / "new", ("algsimp",), (512, 60)).read("jax:mlp", "greedy") == ROLLOUT
    assert kept.read("jax:mlp", "beam") is None
    assert Kept(tmp_path / "new", ("algsimp",), (1024, 60)).read("jax:mlp", "greedy") is None
    assert Kept(tmp_path / "new", ("cse",), (512, 60)).read("jax:mlp", "greedy") is None


def test_a_policy_is_trained_on_whatever_was_trained_before(tmp_path: Path) -> None:
    short, long = (Kept(tmp_path, ("algsimp",), (steps, 60)) for steps in (512, 1024))
    assert short.policy == long.policy
    assert Kept(tmp_path, ("cse",), (512, 60)).policy != short.policy


def test_without_a_folder_nothing_is_kept() -> None:
    kept = Kept(None, (), ())
    kept.write("jax:mlp", ROLLOUT)
    assert kept.read("jax:mlp", "greedy") is None
    assert kept.policy is None
