"""Broken programs of ranks are refuted, at the line of the user's file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import rewright as rw
from rewright.refine.verdict import Finding
from tests.frontends.jax import programs
from tests.frontends.jax.programs import PARAMS, X, array, attention, mlp, rms_norm, specs

EVERYWHERE = P()


def found(sequential: Any, build: Any, mesh: dict[str, int]) -> Finding:
    """The first finding about what is refuted."""
    verdict = rw.refine(sequential, rw.capture_ranks(build, mesh))
    assert verdict.status == "refuted", verdict.reason
    return verdict.findings[0]


def line_of(function: Callable[..., Any], text: str) -> int:
    """The line of this file at which a function says something."""
    lines, first = inspect.getsourcelines(function)
    return first + next(place for place, line in enumerate(lines) if text in line)


def spread(local: Callable[..., Any], data: Any = EVERYWHERE) -> Callable[[Any], Any]:
    """Run by hand on every rank, results taken as the specs say without a check by JAX."""

    def build(mesh: Any) -> Any:
        whole = jax.shard_map(local, mesh=mesh, in_specs=(specs("tp", None), data), out_specs=data, check_vma=False)
        return whole, (PARAMS, X)

    return build


def forgotten(params: Any, x: Any) -> Any:
    x = x + lax.psum(attention(params, rms_norm(x, params["norm1"]), 2), "tp")
    return x + mlp(params, rms_norm(x, params["norm2"]))


def averaged(params: Any, x: Any) -> Any:
    x = x + lax.psum(attention(params, rms_norm(x, params["norm1"]), 2), "tp")
    return x + lax.pmean(mlp(params, rms_norm(x, params["norm2"])), "tp")


def added_twice(params: Any, x: Any) -> Any:
    x = x + lax.psum(attention(params, rms_norm(x, params["norm1"]), 2), "tp")
    return lax.psum(x + mlp(params, rms_norm(x, params["norm2"])), "tp")


def wrong_axis(params: Any, x: Any) -> Any:
    x = x + lax.psum(attention(params, rms_norm(x, params["norm1"]), 2), "tp")
    return x + lax.psum(mlp(params, rms_norm(x, params["norm2"])), "dp")


@pytest.mark.parametrize(
    ("local", "kind", "text"),
    [
        (forgotten, "missing_reduction", "return x + mlp"),
        (averaged, "extra_operator", "lax.pmean"),
        (added_twice, "missing_reduction", "return lax.psum"),
    ],
)
def test_a_block_that_adds_up_wrongly(local: Any, kind: str, text: str) -> None:
    finding = found(rw.capture(programs.block, (PARAMS, X)), spread(local), {"tp": 2})
    assert finding.kind == kind
    assert f"test_broken.py:{line_of(local, text)}" in finding.message


def test_a_sum_over_the_wrong_axis() -> None:
    finding = found(rw.capture(programs.block, (PARAMS, X)), spread(wrong_axis, P("dp")), {"dp": 2, "tp": 2})
    place = f"test_broken.py:{line_of(wrong_axis, 'dp')}"
    assert (finding.kind, finding.suggestion) == ("wrong_collective", f"call the all_reduce at {place} over tp")


def gradients(reduce: Callable[[str, Any], Any]) -> Callable[[Any], Any]:
    """A step of data parallelism whose gradients are reduced by hand."""

    def build(mesh: Any) -> Any:
        def local(params: Any, x: Any, y: Any) -> Any:
            value, gradient = jax.value_and_grad(programs.loss)(params, x, y)
            reduced = {name: reduce(name, one) for name, one in gradient.items()}
            updated = jax.tree.map(lambda p, g: p - 0.1 * g, params, reduced)
            return {"loss": lax.pmean(value, "dp"), "params": updated}

        weights = specs(None, None)
        outputs = {"loss": P(), "params": weights}
        whole = jax.shard_map(
            local, mesh=mesh, in_specs=(weights, P("dp"), P("dp")), out_specs=outputs, check_vma=False
        )
        return whole, (PARAMS, X, X)

    return build


@pytest.mark.long
def test_gradients_over_the_data_axis_are_averaged() -> None:
    step = rw.capture(programs.step, (PARAMS, X, X))
    verdict = rw.refine(step, rw.capture_ranks(gradients(lambda name, g: lax.pmean(g, "dp")), {"dp": 2}))
    assert verdict.status == "proved"
    for wrong in (lambda name, g: lax.psum(g, "dp"), lambda name, g: g):
        verdict = rw.refine(step, rw.capture_ranks(gradients(wrong), {"dp": 2}))
        assert verdict.status == "refuted"
        assert verdict.relation["loss"].holds
        assert not verdict.relation["params.wq"].holds


def test_one_gradient_that_is_not_reduced() -> None:
    step = rw.capture(programs.step, (PARAMS, X, X))
    forgets = gradients(lambda name, g: g if name == "norm2" else lax.pmean(g, "dp"))
    verdict = rw.refine(step, rw.capture_ranks(forgets, {"dp": 2}))
    assert verdict.status == "refuted"
    assert [name for name, relation in verdict.relation.items() if not relation.holds] == ["params.norm2"]


def test_positions_that_start_anew_on_every_rank() -> None:
    def build(mesh: Any) -> Any:
        def local(x: Any) -> Any:
            return x * jnp.arange(x.shape[0]).astype("float32")[:, None]

        return jax.shard_map(local, mesh=mesh, in_specs=P("cp"), out_specs=P("cp")), (array(8, 3),)

    finding = found(rw.capture(lambda x: x * jnp.arange(8.0)[:, None], (array(8, 3),)), build, {"cp": 4})
    assert finding.kind == "wrong_value"
    assert str(finding.distributed).endswith(f"test_broken.py:{line_of(build, 'x * jnp.arange')}")


def test_a_spec_that_shards_the_wrong_axis() -> None:
    def build(mesh: Any) -> Any:
        weights = specs("tp", None) | {"wo": P("tp"), "wv": P(None, "tp"), "wq": P(None, "tp")}

        def local(params: Any, x: Any) -> Any:
            return lax.psum((x @ params["wq"]) @ params["wo"], "tp")

        specified = {name: weights[name] for name in ("wq", "wo")} | {"wo": P(None, "tp")}
        swapped = jax.shard_map(
            lambda p, x: local({"wq": p["wq"], "wo": p["wo"].T}, x), mesh=mesh, in_specs=(specified, P()), out_specs=P()
        )
        return swapped, ({"wq": array(16, 16), "wo": array(16, 16)}, array(3, 16))

    args = ({"wq": array(16, 16), "wo": array(16, 16)}, array(3, 16))
    sequential = rw.capture(lambda p, x: (x @ p["wq"]) @ p["wo"], args)
    assert found(sequential, build, {"tp": 2}).counterexample is not None
