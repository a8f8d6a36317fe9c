"""JAX functions on the command line, and the modules of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.cli.main import run

MODEL = """
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

PARAMS = {"up": jax.ShapeDtypeStruct((8, 16), "float32"), "down": jax.ShapeDtypeStruct((16, 8), "float32")}
X = jax.ShapeDtypeStruct((4, 8), "float32")
SPECS = {"up": P(None, "tp"), "down": P("tp", None)}


def loss(params, x):
    return jnp.mean((jax.nn.gelu(x @ params["up"]) @ params["down"]) ** 2)


def sequential():
    return loss, (PARAMS, X)


def partitioned(mesh):
    shardings = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    return jax.jit(loss, in_shardings=(shardings, None)), (PARAMS, X)


def by_hand(mesh):
    def local(params, x):
        y = jax.lax.psum(jax.nn.gelu(x @ params["up"]) @ params["down"], "tp")
        return jnp.mean(y ** 2)

    return jax.shard_map(local, mesh=mesh, in_specs=(SPECS, P()), out_specs=P()), (PARAMS, X)


def forgotten(mesh):
    def local(params, x):
        y = jax.nn.gelu(x @ params["up"]) @ params["down"]
        return jnp.mean(y ** 2)

    return jax.shard_map(local, mesh=mesh, in_specs=(SPECS, P()), out_specs=P(), check_vma=False), (PARAMS, X)
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "jax_model.py"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize("build", ["partitioned", "by_hand"])
def test_a_right_program_is_proved_and_audited(model: Path, build: str, capsys: pytest.CaptureFixture[str]) -> None:
    mesh = ["--mesh", "tp=2", "--backward", "--audit"]
    assert run(["refine", f"{model}:sequential", f"{model}:{build}", *mesh]) == 0
    printed = capsys.readouterr().out
    assert "PROVED and audited: the ranks hold all 3 outputs of the sequential program" in printed
    assert "grad:params.up    Shard(1)" in printed


def test_a_broken_program_is_refuted_at_its_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["refine", f"{model}:sequential", f"{model}:forgotten", "--mesh", "tp=2"]) == 1
    line = MODEL[: MODEL.index("        y = jax.nn.gelu")].count("\n") + 1
    assert f"insert all_reduce over tp after jax_model.py:{line}" in capsys.readouterr().out


def test_captured_programs_are_saved_and_read(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "ranks.json.gz")
    assert run(["capture", f"{model}:by_hand", "--mesh", "tp=2", "--output", saved]) == 0
    assert run(["refine", f"{model}:sequential", saved]) == 0
    assert run(["refine", f"{model}:sequential", f"{model}:by_hand", "--mesh", "tp=2", "--symbolic", "x=n,_"]) == 3
    assert "symbolic sizes are for torch programs" in capsys.readouterr().err
