"""Chosen rewrites in a program of one's own: compiled where the original is met, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from rewright.cli.main import run
from rewright.env.alternatives import AlternativeGraph
from rewright.env.certificate import Stage, audit, certify_stages
from rewright.env.deploy import deploy, load
from rewright.env.episode import Episode, Settings
from rewright.env.session import Session
from rewright.frontends.hlo.proto import read, write
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


@pytest.mark.parametrize(("factor", "used"), [(0.3, 1), (0.7, 0)])
def test_a_program_with_another_constant_is_left_alone(xla: Session, factor: float, used: int) -> None:
    def scaled(by):
        return lambda x, y, z: jax.numpy.tanh(x * y + x * z) * by

    episode = Episode(xla, xla.from_function(scaled(0.3), INPUTS), Settings(("rule:distribute",)))
    assert episode.choose(0)
    deployment = deploy(xla, episode)
    with deployment.active():
        found = jax.jit(scaled(factor))(*INPUTS)
    assert deployment.used == used
    x, y, z = INPUTS
    np.testing.assert_allclose(found, factor * np.tanh(x * y + x * z), rtol=1e-5, atol=1e-6)


def test_a_deployment_is_a_file_with_its_certificate(xla: Session, chosen: Episode, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    deployment = deploy(xla, chosen)
    deployment.save(path)
    assert load(path) == deployment
    path.write_text(path.read_text().replace("rule distribute", "rule distribuse"))
    with pytest.raises(RewrightError, match="changed after it was written"):
        load(path)


def softmax(x, y, z):
    return jax.nn.softmax(x * y + x * z, axis=-1)


def donating(x, y, z):
    return jax.numpy.tanh(x * y + x * z), x


@pytest.mark.parametrize("function", [combined, softmax, jax.jit(donating, donate_argnums=(0,))])
def test_what_xla_makes_of_the_choice_is_proved_too(xla: Session, function) -> None:
    episode = Episode(xla, xla.from_function(function, INPUTS), Settings(("rule:distribute",), tested=False))
    assert episode.choose(0)
    deployment = deploy(xla, episode)
    assert deployment.open == ()
    parts = [audit(own) for own in (deployment.certificate, deployment.made, deployment.met)]
    assert parts[0].steps == 1
    assert all(own.steps >= 1 for own in parts[1:])
    assert parts[0].final == parts[1].original


def _with(program: bytes, old: str, new: str) -> bytes:
    """A module with one operator for another, wherever it stands."""
    whole = read(program)
    computations = {
        name: replace(
            c, instructions={n: replace(i, opcode=new) if i.opcode == old else i for n, i in c.instructions.items()}
        )
        for name, c in whole.computations.items()
    }
    return write(replace(whole, computations=computations))


FORGED = {
    "another module is compiled": lambda d, other: replace(d, module=_with(d.module, "tanh", "cosine")),
    "another module is met": lambda d, other: replace(d, replaced=_with(d.replaced, "tanh", "cosine")),
    "the chosen module of another": lambda d, other: replace(d, certificate=other.certificate),
    "made of another": lambda d, other: replace(d, made=other.made),
    "met by another": lambda d, other: replace(d, met=other.met),
    "compiled for another": lambda d, other: replace(d, module=other.module, made=other.made),
    "a certificate that is none": lambda d, other: replace(d, made={}),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_deployment_that_was_put_together_is_refused(xla: Session, chosen: Episode, tmp_path: Path, forge) -> None:
    second = Episode(xla, xla.from_function(softmax, INPUTS), Settings(("rule:distribute",), tested=False))
    assert second.choose(0)
    path = tmp_path / "deployment.json"
    forge(deploy(xla, chosen), deploy(xla, second)).save(path)
    with pytest.raises(RewrightError):
        load(path)


def test_claims_that_are_left_open_have_to_be_allowed(xla: Session, chosen: Episode, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    deployment = deploy(xla, chosen)
    # Anything at all, and a certificate that says of it: this was made by XLA, and is not proved.
    module = _with(deployment.module, "tanh", "cosine")
    stage = Stage(read(module), AlternativeGraph(read(module)), ())
    made = certify_stages(read(audit(deployment.certificate).final), [stage])
    assert len(made.open) == 1
    replace(deployment, module=module, made=made.document).save(path)
    with pytest.raises(RewrightError, match="leaves 1 claims open, the first made by XLA"):
        load(path)
    assert load(path, unproved=True).open


def test_other_buffers_are_refused(xla: Session, chosen: Episode, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    deployment = deploy(xla, chosen)
    program = read(deployment.module)
    shared = (8, 2, b"\n\x05\n\x01\x00 \x01")
    fields = (*(entry for entry in program.fields if entry[0] != 8), shared)
    forged = replace(deployment, module=write(replace(program, fields=fields)))
    forged.save(path)
    with pytest.raises(RewrightError):
        load(path)


def test_what_was_only_tested_is_not_deployed_unasked(xla: Session) -> None:
    module = xla.from_function(lambda x: jax.numpy.cos(x / 3), INPUTS[:1])
    episode = Episode(xla, module, Settings(("algsimp",)))
    assert episode.choose(0)
    with pytest.raises(RewrightError, match="only tested"):
        deploy(xla, episode)
    assert deploy(xla, episode, unproved=True).key


def test_the_command_audits_a_deployment(
    xla: Session, chosen: Episode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deployment.json"
    deployment = deploy(xla, chosen)
    deployment.save(path)
    assert run(["audit", str(path)]) == 0
    assert "proved" in capsys.readouterr().out
    replace(deployment, module=_with(deployment.module, "tanh", "cosine")).save(path)
    assert run(["audit", str(path)]) == 1
    assert "REFUSED" in capsys.readouterr().out
