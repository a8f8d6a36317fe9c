"""Chosen rewrites in a program of one's own: compiled where the original is met, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from rewright.env.deploy import deploy, load
from rewright.env.episode import Episode, Settings
from rewright.env.session import Session
from rewright.ir.errors import RewrightError


def combined(x, y, z):
    return jax.numpy.tanh(x * y + x * z)


def other(x, y, z):
    return jax.numpy.tanh(x * y + y * z)


INPUTS = [np.random.default_rng(k).normal(size=(6, 4)).astype(np.float32) for k in range(3)]


@pytest.fixture(scope="module")
def chosen(xla: Session) -> Episode:
    episode = Episode(xla, xla.from_function(combined, INPUTS), Settings(("rule:distribute",)))
    assert episode.choose(0)
    return episode


def test_a_program_is_compiled_as_chosen(xla: Session, chosen: Episode) -> None:
    deployment = deploy(xla, chosen)
    expected = jax.jit(combined)(*INPUTS)
    with deployment.active():
        compiled = jax.jit(lambda x, y, z: combined(x, y, z)).lower(*INPUTS).compile()
    assert deployment.used == 1
    assert compiled.as_text().count(" multiply(") == 1
    np.testing.assert_allclose(compiled(*INPUTS), expected, rtol=1e-6)


def test_another_program_is_left_alone(xla: Session, chosen: Episode) -> None:
    deployment = deploy(xla, chosen)
    with deployment.active():
        found = jax.jit(other)(*INPUTS)
    assert deployment.used == 0
    x, y, z = INPUTS
    np.testing.assert_allclose(found, np.tanh(x * y + y * z), rtol=1e-5, atol=1e-6)


def test_a_deployment_is_a_file_with_its_certificate(xla: Session, chosen: Episode, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    deployment = deploy(xla, chosen)
    deployment.save(path)
    assert load(path) == deployment
    path.write_text(path.read_text().replace("rule distribute", "rule distribuse"))
    with pytest.raises(RewrightError, match="changed after it was written"):
        load(path)


def test_what_was_only_tested_is_not_deployed_unasked(xla: Session) -> None:
    module = xla.from_function(lambda x: jax.numpy.cos(x / 3), INPUTS[:1])
    episode = Episode(xla, module, Settings(("algsimp",)))
    assert episode.choose(0)
    with pytest.raises(RewrightError, match="only tested"):
        deploy(xla, episode)
    assert deploy(xla, episode, unproved=True).key
