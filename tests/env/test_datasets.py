"""Data sets by name, and JAX functions as modules."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest

from rewright.env.datasets import FUNCTIONS, dataset
from rewright.env.registration import register
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from tests.env.modules import LOOP, RATES


def test_functions_of_common_models_are_lowered(xla: Session) -> None:
    entries = dataset(xla, "jax")
    assert [entry.title for entry in entries] == [f"jax:{name}" for name in FUNCTIONS]
    assert all(entry.module.result_shapes() for entry in entries)


def test_a_lowered_function_computes_what_the_function_computes(xla: Session) -> None:
    (entry,) = dataset(xla, "jax:layer-norm")
    x = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32)
    one, zero = np.ones(32, np.float32), np.zeros(32, np.float32)
    (found,) = xla.execute(entry.module, [x, one, zero])
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_modules_that_differ_in_names_are_one(xla: Session, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(RATES)
    (tmp_path / "b.txt").write_text(RATES.replace("square", "second_power"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.hlo").write_text(LOOP)
    (tmp_path / "notes.md").write_text("no module")
    assert [entry.title for entry in dataset(xla, f"folder:{tmp_path}")] == ["a.hlo", "sub/c.hlo"]


@pytest.mark.parametrize("name", ["jax:nothing", "folder:/nowhere"])
def test_a_name_of_no_data_set_is_one_line(xla: Session, name: str) -> None:
    with pytest.raises(RewrightError) as error:
        dataset(xla, name)
    assert "\n" not in str(error.value)


def test_a_function_of_ones_own(xla: Session) -> None:
    module = xla.from_function(lambda x: x + 1, [np.zeros(3, np.float32)])
    assert xla.execute(module, [np.arange(3, dtype=np.float32)])[0].tolist() == [1, 2, 3]
    with pytest.raises(RewrightError, match="cannot trace"):
        xla.from_function(lambda x: x.nothing, [np.zeros(3, np.float32)])


def test_an_environment_over_a_data_set(xla: Session) -> None:
    register()
    env = gymnasium.make("rewright/HloRewrite-v0", hlo="jax:adam", session=xla, disable_env_checker=True)
    _, info = env.reset(seed=0)
    assert info["action_mask"].any()
