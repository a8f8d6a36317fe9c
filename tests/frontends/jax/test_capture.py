"""JAX functions as graphs: names, lines, gradients, and the values that JAX itself computes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import rewright as rw
from rewright import ops
from rewright.interp.program import run
from rewright.ir.errors import CaptureError, RewrightError, UnsupportedOperator
from tests.frontends.jax import programs
from tests.frontends.jax.programs import PARAMS, X, array

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def integers(*shape: int, low: int = -9, high: int = 9) -> np.ndarray:
    return RANDOM.integers(low, high, shape).astype(np.int32)


KEY = np.array([3, 2**31 + 17], np.uint32)
BITS = RANDOM.integers(0, 2**32, 9, dtype=np.uint32)
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "first place of the largest": (lambda x: jnp.argmax(x, -1), (integers(3, 9, low=0, high=3),)),
    "first place of the smallest": (lambda x: jnp.argmin(x, 0), (floats(7, 5),)),
    "an unsigned maximum": (lambda x: jnp.argmax(x), (BITS,)),
    "order": (lambda x: jnp.argsort(x, -1), (integers(3, 9, low=0, high=3),)),
    "order downwards": (lambda x: jnp.argsort(x, descending=True), (integers(9, low=0, high=3),)),
    "sorted by a key": (
        lambda k, x: lax.sort((k, x), num_keys=1, dimension=0),
        (integers(9, 3, low=0, high=3), floats(9, 3)),
    ),
    "sorted by two keys": (
        lambda a, b, x: lax.sort((a, b, x), num_keys=2),
        (integers(3, 9, low=0, high=3), integers(3, 9, low=0, high=2), floats(3, 9)),
    ),
    "largest elements": (lambda x: lax.top_k(x, 2), (floats(3, 5),)),
    "a branch": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), (np.bool_(True), floats(3))),
    "a choice out of range": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (np.int32(5), floats(3))),
    "remainders": (lambda x: (x % 3, x // 4, x >> 2), (integers(9),)),
    "unsigned numbers wrap around": (
        lambda x: ((x >> np.uint32(7)) ^ (x << np.uint32(9)), x + x, ~x, x - np.uint32(77)),
        (BITS,),
    ),
    "unsigned products": (lambda x: (x * np.uint32(1664525) + np.uint32(1013904223)) ^ (x >> np.uint32(3)), (BITS,)),
    "uniform numbers": (lambda key: jax.random.uniform(key, (4, 3)), (KEY,)),
    "normal numbers": (lambda key: jax.random.normal(key, (4, 3)), (KEY,)),
    "a permutation": (lambda key, x: jax.random.permutation(key, x), (KEY, floats(6))),
    "a slice that is moved inside": (lambda x: lax.dynamic_slice(x, (9, 0), (2, 2)), (floats(5, 3),)),
    "an update that is moved inside": (
        lambda x, u: lax.dynamic_update_slice(x, u, (4, -7)),
        (floats(5, 3), floats(2, 2)),
    ),
    "rows": (lambda x, i: jnp.take(x, i, axis=0, mode="clip"), (floats(5, 3), integers(4, low=0, high=5))),
    "rows that are added": (lambda x, i, u: x.at[i].add(u), (jnp.zeros((5, 3)), np.array([0, 4, 0]), floats(3, 3))),
    "a scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0], x), (floats(5, 3),)),
    "a loop": (lambda x: lax.fori_loop(0, 3, lambda i, a: a * 2 + i, x), (floats(3),)),
    "a cumulative sum": (lambda x: jnp.cumsum(x, 0), (floats(5, 2),)),
    "a convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME"),
        (floats(2, 3, 8, 8), floats(4, 3, 3, 3)),
    ),
    "functions": (lambda x: (jnp.cbrt(x), jnp.tan(x), jnp.round(x), jax.nn.gelu(x), jax.nn.softplus(x)), (floats(9),)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_computes_what_jax_computes(name: str) -> None:
    function, args = FUNCTIONS[name]
    graph = rw.capture(function, args, framework="jax")
    found = list(run(graph, dict(zip(graph.inputs, map(np.asarray, args), strict=True))).values())
    wanted = jax.tree.leaves(function(*map(jnp.asarray, args)))
    assert len(found) == len(wanted)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, np.asarray(other), rtol=1e-5, atol=1e-5)


def test_inputs_and_outputs_are_named_by_their_paths() -> None:
    def program(params: Any, pair: Any, *, scale: Any) -> Any:
        return {"loss": scale * params["layers"][1]["w"], "rest": (pair[0], pair[1] + scale)}

    layers = {"layers": [{"w": array(2)}, {"w": array(2)}]}
    graph = rw.capture(program, (layers, (array(2), array(2))), {"scale": array(2)})
    assert list(graph.inputs) == ["params.layers.1.w", "pair.0", "pair.1", "scale"]  # what is not read is no input
    assert list(graph.outputs) == ["loss", "rest.0", "rest.1"]
    assert list(rw.capture(lambda x: (x, [-x]), (array(2),)).outputs) == ["output.0", "output.1.0"]


def test_nodes_know_their_line_and_whether_they_are_of_a_gradient() -> None:
    graph = rw.capture(programs.step, (PARAMS, X, X))
    spans = {node.span for node in graph.nodes if node.op.name == "rsqrt"}
    (span,) = spans
    assert (span.file.rsplit("/", 1)[-1], span.function) == ("programs.py", "rms_norm")
    backward = {node.span.backward for node in graph.nodes if node.op.name == "dot_general"}
    assert backward == {True, False}


def test_gradients_are_outputs_where_they_are_asked_for() -> None:
    graph = rw.capture(
        lambda params, x: jnp.sum(jnp.tanh(x @ params["w"])), ({"w": array(3, 2)}, array(4, 3)), backward=True
    )
    assert list(graph.outputs) == ["output", "grad:params.w"]
    w, x = floats(3, 2), floats(4, 3)
    found = run(graph, {"params.w": w, "x": x})["grad:params.w"]
    np.testing.assert_allclose(found, jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w), rtol=1e-4, atol=1e-5)


def test_a_read_that_is_not_a_number_out_of_range_is_a_gather_which_is_not_defined_there() -> None:
    graph = rw.capture(lambda x, i: jnp.take(x, i, axis=0), (array(5, 3), array(4, dtype="int32")))
    assert not any(isinstance(node.op, ops.Constant) and node.type.dtype.is_float for node in graph.nodes)
    assert "assumptions" not in graph.metadata
    x = floats(5, 3)
    (found,) = run(graph, {"x": x, "i": np.array([0, -1, 4, -5], np.int32)}).values()
    np.testing.assert_array_equal(found, x[[0, -1, 4, -5]].astype(np.float64))
    with pytest.raises(RewrightError, match="out of range"):
        run(graph, {"x": x, "i": np.array([0, 5, 0, 0], np.int32)})


def test_a_number_that_is_none_is_chosen_where_the_program_says_so() -> None:
    graph = rw.capture(lambda x: jnp.where(x > 0, x, jnp.nan), (array(3),))
    (found,) = run(graph, {"x": np.array([1.0, -1.0, 2.0])}).values()
    np.testing.assert_array_equal(found, [1.0, np.nan, 2.0])


@pytest.mark.parametrize(
    ("program", "args", "said"),
    [
        (lambda x: jnp.fft.fft(x).real, (array(4),), "tensors of c64 are not supported"),
        (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: s * 2, x), (array(2),), "number of steps depends on"),
        (lambda x: lax.bitcast_convert_type(x, jnp.int32), (array(2),), "bitcast.* at test_capture.py:"),
        (lambda x: 1 if x > 0 else 2, (array(),), "tracing .* stopped at test_capture.py:.*TracerBoolConversionError"),
        (lambda x, y: x @ y, (array(2, 3), array(2, 3)), "tracing .* stopped at test_capture.py:"),
        (lambda x: jax.pure_callback(np.sin, x, x), (array(2),), "has no definition here"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused_in_one_line(program: Any, args: Any, said: str) -> None:
    with pytest.raises(RewrightError, match=said) as caught:
        rw.capture(program, args)
    assert isinstance(caught.value, CaptureError | UnsupportedOperator)
    assert "\n" not in str(caught.value)


def test_a_program_of_ranks_is_not_a_sequential_one() -> None:
    def build(mesh: Any) -> Any:
        with pytest.raises(CaptureError, match="capture it with capture_ranks"):
            rw.capture(jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("dp"), out_specs=P("dp")), (array(4),))
        return jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("dp"), out_specs=P("dp")), (array(4),)

    rw.capture_ranks(build, {"dp": 2})


def test_importing_brings_in_no_jax() -> None:
    code = "import sys, rewright, rewright.frontends.files; rewright.capture; print('jax' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
