"""Which framework a program is of."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from types import CellType, FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import torch
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import rewright as rw
from rewright.frontends.capture import framework_of
from rewright.ir.errors import CaptureError, RewrightError


def test_the_framework_is_told_by_the_program() -> None:
    def jax_program(x: Any) -> Any:
        return jnp.sin(x)

    def torch_program(x: Any) -> Any:
        return torch.sin(x)

    def both(x: Any) -> Any:
        return torch.sin(jnp.sin(x))

    assert framework_of(jax_program, ()) == framework_of(jax.jit(torch_program), ()) == "jax"
    assert framework_of(torch_program, ()) == "torch"
    assert framework_of(lambda x: x, [{"a": jnp.ones(2)}]) == "jax"
    assert framework_of(lambda x: x, (torch.ones(2),)) == "torch"
    with pytest.raises(CaptureError, match="both uses torch and jax; say which"):
        framework_of(both, ())


def _spread(mesh: Any) -> Any:
    return jax.jit(jnp.tanh), (jax.ShapeDtypeStruct((2,), "float32"),)


class _Builder:
    def __call__(self, mesh: Any) -> Any:
        return _spread(mesh)


def test_the_framework_is_told_by_functions_that_a_program_calls() -> None:
    assert framework_of(lambda mesh: _spread(mesh), ()) == framework_of(_Builder(), ()) == "jax"
    assert framework_of(partial(lambda _, mesh: _spread(mesh), 1), ()) == "jax"
    assert rw.capture_ranks(lambda mesh: _spread(mesh), {"tp": 2}).mesh.size == 2


def test_a_program_that_was_taken_for_one_of_another_framework() -> None:
    hidden = {"build": lambda mesh: (jax.jit(jnp.tanh, in_shardings=NamedSharding(mesh, P())), ())}
    program = FunctionType((lambda mesh: hidden["build"](mesh)).__code__, {"torch": torch}, closure=(CellType(hidden),))
    with pytest.raises(CaptureError, match="if it is a program of jax, say framework='jax'"):
        rw.capture_ranks(program, {"tp": 2})


def test_symbolic_sizes_are_for_torch() -> None:
    with pytest.raises(RewrightError, match="symbolic sizes are for torch programs"):
        rw.capture(jnp.sin, (jnp.ones(2),), dynamic={"x": {0: "n"}})


def test_a_frontend_that_is_not_installed_is_named() -> None:
    code = """
import sys; sys.modules["jax"] = None
import rewright
try:
    rewright.capture(lambda x: x, (), framework="jax")
except rewright.frontends.capture.RewrightError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "capture needs the package jax, which is not installed; run pip install 'jax>=0.10.2,<0.11'\n"
