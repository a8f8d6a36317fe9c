"""Modules as XLA writes them, damaged at random as bytes and as text: a program, or one line of what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from jaxlib import _hlo

from rewright.frontends.jax.devices import device_mesh
from rewright.frontends.jax.ranks import _partitioned
from rewright.frontends.jax.tracing import trace
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, RankProgram
from tests.frontends.hlo.modules import read_proto, read_text
from tests.frontends.jax.programs import array, placed
from tests.frontends.mutations import mutated_bytes, mutated_text


def program(table: Any, tokens: Any, key: Any) -> Any:
    """A split table, a scan, an order and random numbers: most of what a partitioned module can hold."""
    x = table[tokens]
    total, _ = lax.scan(lambda c, row: (c + row, None), x[0], x)
    kept = jnp.where(jax.random.bernoulli(key, 0.5, total.shape), total, 0.0)
    return jnp.sum(kept) + jnp.argmax(total), jnp.sort(total)


@pytest.fixture(scope="module")
def module() -> bytes:
    mesh = Mesh.of({"dp": 2, "tp": 2})
    devices = device_mesh(mesh)
    shardings = placed(devices, (P("tp"), P("dp"), P()))
    args = (array(8, 4), array(6, dtype="int32"), array(2, dtype="uint32"))
    return _partitioned(trace(jax.jit(program, in_shardings=shardings), args), mesh)


def text_of(module: bytes) -> str:
    return _hlo.HloModule.from_serialized_hlo_module_proto(module).to_string()


def test_both_forms_are_one_program(module: bytes) -> None:
    first, second = read_proto(module), read_text(text_of(module))
    assert isinstance(first, RankProgram)
    assert isinstance(second, RankProgram)
    assert first.mesh == second.mesh == Mesh.of({"partition.0": 2, "partition.1": 2})
    assert first.inputs == second.inputs
    assert [str(placement) for placement in first.inputs.values()] == [
        "[Replicate(), Shard(0)]",
        "[Shard(0), Replicate()]",
        "[Replicate(), Replicate()]",
    ]
    for one, other in zip(first.graphs, second.graphs, strict=True):
        assert [node.op for node in one.nodes] == [node.op for node in other.nodes]
        assert [node.span for node in one.nodes] == [node.span for node in other.nodes]


def survives(read: Callable[[], object], seed: int) -> None:
    said = ""
    try:
        read()
    except RewrightError as error:
        said = str(error)
    assert "\n" not in said, (seed, said)


def test_damaged_bytes(module: bytes) -> None:
    for seed in range(60):
        damaged = mutated_bytes(module, random.Random(seed))
        survives(lambda damaged=damaged: read_proto(damaged), seed)


def test_damaged_text(module: bytes) -> None:
    text = text_of(module)
    for seed in range(60):
        damaged = mutated_text(text, random.Random(seed))
        survives(lambda damaged=damaged: read_text(damaged), seed)
