"""JAX programs over devices: what the partitioner and shard_map make of them is proved, without relations by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import rewright as rw
from bench.mutants import generate, is_equivalent
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.engine import answer
from tests.frontends.jax import programs
from tests.frontends.jax.programs import LANGUAGE, PARAMS, TOKENS, X, array, placed, sharded_step, specs


@pytest.fixture(scope="module")
def step() -> Graph:
    return rw.capture(programs.step, (PARAMS, X, X))


def proved(sequential: Graph, build: Any, mesh: dict[str, int]) -> dict[str, str]:
    """How the ranks hold the outputs of what is proved."""
    verdict = rw.refine(sequential, rw.capture_ranks(build, mesh))
    assert verdict.status == "proved", verdict.reason
    return {name: relation.placement for name, relation in verdict.relation.items()}


@pytest.mark.parametrize("degree", [2, 4])
def test_a_training_step_is_tensor_parallel(step: Graph, degree: int) -> None:
    found = proved(step, sharded_step(specs("tp", None), P()), {"tp": degree})
    assert found["loss"] == "Replicate()"
    assert (found["params.wq"], found["params.down"], found["params.norm1"]) == ("Shard(1)", "Shard(0)", "Replicate()")


def test_a_training_step_is_data_parallel(step: Graph) -> None:
    found = proved(step, sharded_step(specs(None, None), P("dp")), {"dp": 2})
    assert set(found.values()) == {"Replicate()"}


def test_weights_are_sharded_as_fsdp_does(step: Graph) -> None:
    weights = {name: P(None, "dp") if name == "down" else P("dp") for name in PARAMS}
    found = proved(step, sharded_step(weights, P("dp")), {"dp": 4})
    assert (found["params.norm1"], found["params.down"]) == ("Shard(0)", "Shard(1)")


def test_four_axes_at_once(step: Graph) -> None:
    build = sharded_step(specs("tp", "fsdp"), P(("dp", "fsdp"), "cp"))
    found = proved(step, build, {"dp": 2, "fsdp": 2, "cp": 2, "tp": 2})
    assert found["params.wq"] == "[Replicate(), Shard(0), Replicate(), Shard(1)]"


@pytest.mark.long
def test_a_vocabulary_is_split(step: Graph) -> None:
    weights = specs("tp", None) | {"embedding": P("tp"), "head": P(None, "tp")}
    args = (LANGUAGE, TOKENS, TOKENS)
    sequential = rw.capture(programs.language_step, args)
    program = rw.capture_ranks(sharded_step(weights, P(), programs.language_step, args), {"tp": 2})
    verdict = rw.refine(sequential, program)
    assert verdict.status == "proved"
    assert "the indices in input 'x' are in range: from 0 to 15, neither negative nor beyond" in verdict.assumptions


@pytest.mark.parametrize("degree", [2, 4])
def test_a_block_with_collectives_by_hand(degree: int) -> None:
    def build(mesh: Any) -> Any:
        local = programs.megatron_block
        spread = jax.shard_map(
            lambda params, x: local(params, x, 4 // degree), mesh=mesh, in_specs=(specs("tp", None), P()), out_specs=P()
        )
        return spread, (PARAMS, X)

    assert proved(rw.capture(programs.block, (PARAMS, X)), build, {"tp": degree}) == {"output": "Replicate()"}


def test_the_gradient_through_collectives_by_hand(step: Graph) -> None:
    def build(mesh: Any) -> Any:
        spread = jax.shard_map(
            lambda p, x: programs.sequence_parallel_block(p, x, 2),
            mesh=mesh,
            in_specs=(specs("tp", None), P(None, "tp")),
            out_specs=P(None, "tp"),
        )
        return programs.trained(lambda p, x, y: jnp.mean((spread(p, x) - y) ** 2)), (PARAMS, X, X)

    assert proved(step, build, {"tp": 2})["params.gate"] == "Shard(1)"


def test_a_whole_step_inside_of_shard_map(step: Graph) -> None:
    def build(mesh: Any) -> Any:
        def local(params: Any, x: Any, y: Any) -> Any:
            def loss(params: Any) -> Any:
                return lax.pmean(jnp.mean((programs.megatron_block(params, x, 2) - y) ** 2), "dp")

            value, gradient = jax.value_and_grad(loss)(params)
            return {"loss": value, "params": jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)}

        weights = specs("tp", None)
        outputs = {"loss": P(), "params": weights}
        return jax.shard_map(local, mesh=mesh, in_specs=(weights, P("dp"), P("dp")), out_specs=outputs), (PARAMS, X, X)

    assert proved(step, build, {"dp": 2, "tp": 2})["params.wo"] == "[Replicate(), Shard(0)]"


@pytest.mark.parametrize("build", [programs.ring, programs.ulysses])
def test_attention_over_parts_of_the_sequence(build: Any) -> None:
    sequential = rw.capture(programs.softmax_attention, programs.QKV)
    assert proved(sequential, build, {"cp": 4}) == {"output": "Shard(1)"}


def test_layers_in_a_scan_with_rematerialization() -> None:
    layers = {name: array(2, *value.shape) for name, value in PARAMS.items()}

    def deep(params: Any, x: Any, remember: Any = lambda f: f) -> Any:
        return lax.scan(remember(lambda h, p: (programs.block(p, h), None)), x, params)[0]

    def loss(params: Any, x: Any, y: Any) -> Any:
        return jnp.mean((deep(params, x) - y) ** 2)

    def frugal(params: Any, x: Any, y: Any) -> Any:
        return jnp.mean((deep(params, x, jax.checkpoint) - y) ** 2)

    weights = {name: P(None, *spec) for name, spec in specs("tp", None).items()}
    args = (layers, X, X)
    build = sharded_step(weights, P(), programs.trained(frugal), args)
    assert proved(rw.capture(programs.trained(loss), args), build, {"tp": 2})["params.up"] == "Shard(2)"


def test_dropout_draws_the_same_numbers_on_every_shard() -> None:
    def dropped(key: Any, x: Any, w: Any) -> Any:
        kept = jax.random.bernoulli(key, 0.8, (4, 8))
        return jnp.where(kept, x @ w / 0.8, 0.0)

    def build(mesh: Any) -> Any:
        shardings = placed(mesh, (P(), P("dp"), P(None, "tp")))
        return jax.jit(dropped, in_shardings=shardings, out_shardings=placed(mesh, P("dp", "tp"))), args

    args = (array(2, dtype="uint32"), array(4, 6), array(6, 8))
    found = proved(rw.capture(dropped, args), build, {"dp": 2, "tp": 2})
    assert found == {"output": "[Shard(0), Shard(1)]"}


def test_the_partitioner_itself_is_proved() -> None:
    """The program before the partitioner is one on whole tensors, whatever shardings it asks for."""
    before: list[Graph] = []

    def build(mesh: Any) -> Any:
        function, args = sharded_step(specs("tp", None), P("dp"))(mesh)
        before.append(rw.capture(function, args))
        return function, args

    program = rw.capture_ranks(build, {"dp": 2, "tp": 2})
    assert rw.refine(before[0], program).status == "proved"


def test_ranks_know_their_number() -> None:
    def build(mesh: Any) -> Any:
        def local(x: Any) -> Any:
            first = lax.axis_index("cp") * x.shape[0]
            return x * (first + jnp.arange(x.shape[0])).astype("float32")[:, None]

        return jax.shard_map(local, mesh=mesh, in_specs=P("cp"), out_specs=P("cp")), (array(8, 3),)

    sequential = rw.capture(lambda x: x * jnp.arange(8.0)[:, None], (array(8, 3),))
    assert proved(sequential, build, {"cp": 4}) == {"output": "Shard(0)"}


def test_nothing_global_changes() -> None:
    before = jax.devices()
    rw.capture_ranks(programs.ring, {"cp": 8})
    assert jax.devices() == before
    assert len(before) == 1


def test_shardings_may_come_with_the_arguments() -> None:
    def build(mesh: Any) -> Any:
        x = jax.ShapeDtypeStruct((4, 8), "float32", sharding=placed(mesh, P("dp")))
        w = jax.ShapeDtypeStruct((8, 6), "float32", sharding=placed(mesh, P(None, "tp")))
        return (lambda x, w: jnp.tanh(x @ w)), (x, w)

    program = rw.capture_ranks(build, {"dp": 2, "tp": 2})
    assert {name: str(placement) for name, placement in program.inputs.items()} == {
        "x": "[Shard(0), Replicate()]",
        "w": "[Replicate(), Shard(1)]",
    }


def test_a_program_may_make_a_mesh_with_explicit_axes() -> None:
    def build(mesh: Any) -> Any:
        explicit = jax.sharding.Mesh(mesh.devices, mesh.axis_names, axis_types=(jax.sharding.AxisType.Explicit,))
        x = jax.ShapeDtypeStruct((4, 8), "float32", sharding=placed(explicit, P("dp")))
        return (lambda x: jnp.sum(jnp.tanh(x))), (x,)

    assert proved(rw.capture(lambda x: jnp.sum(jnp.tanh(x)), (array(4, 8),)), build, {"dp": 2})


def test_specs_without_a_mesh_are_of_the_current_one() -> None:
    def build(mesh: Any) -> Any:
        return jax.jit(lambda x: lax.with_sharding_constraint(x * 2, P()), in_shardings=P("dp")), (array(4, 8),)

    program = rw.capture_ranks(build, {"dp": 2})
    assert (str(program.inputs["x"]), str(program.outputs["output"])) == ("Shard(0)", "Replicate()")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda mesh: jnp.sin, "build\\(mesh\\) returned .*; return \\(function, args\\)"),
        (lambda mesh: (jax.jit(jnp.sin), (jax.device_put(jnp.ones(2), jax.devices()[0]),)), "stopped|for 1 of the 2"),
        (
            lambda mesh: (jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("dp"), out_specs=P("dp")), (array(3),)),
            "tracing .* stopped",
        ),
    ],
)
def test_what_is_no_program_of_the_mesh_is_refused_in_one_line(build: Any, said: str) -> None:
    with pytest.raises(CaptureError, match=said) as caught:
        rw.capture_ranks(build, {"dp": 2}, framework="jax")
    assert "\n" not in str(caught.value)


def test_a_mesh_without_ranks_is_refused() -> None:
    with pytest.raises(CaptureError, match="has 0 ranks"):
        rw.capture_ranks(programs.ring, {"cp": 0})


@pytest.mark.parametrize(("count", "degree"), [(4, 2), (2, 2), (4, 4)])
def test_experts_over_ranks_also_one_on_each(count: int, degree: int) -> None:
    sequential = rw.capture(programs.mixture, programs.mixture_args(count))
    assert proved(sequential, programs.parallel_mixture(count), {"ep": degree}) == {"output": "Shard(0)"}


def squared(mixture: Any) -> Any:
    return lambda params, x: jnp.sum(mixture(params, x) ** 2)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("count", "degree"), [(4, 2), (2, 2), (3, 3)])
def test_gradients_of_experts_also_one_on_each(count: int, degree: int) -> None:
    sequential = rw.capture(squared(programs.mixture), programs.mixture_args(count), backward=True)
    verdict = rw.refine(sequential, parallel_gradients(count, degree))
    assert verdict.status == "proved", verdict.reason
    assert {name: relation.placement for name, relation in verdict.relation.items()} == {
        "output": "Replicate()",
        "grad:params.gate": "Replicate()",
        "grad:params.up": "Shard(0)",
        "grad:params.down": "Shard(0)",
    }


def parallel_gradients(count: int, degree: int, **options: bool) -> RankProgram:
    def build(mesh: Any) -> Any:
        mapped, args = programs.parallel_mixture(count, **options)(mesh)
        return squared(mapped), args

    return rw.capture_ranks(build, {"ep": degree}, backward=True)


@pytest.mark.long
def test_gradients_of_one_expert_on_each_rank_that_read_other_tokens() -> None:
    """Rows that come back in another order, and every bug that can be put into the exchanges of the right program."""
    sequential = rw.capture(squared(programs.mixture), programs.mixture_args(2), backward=True)
    assert rw.refine(sequential, parallel_gradients(2, 2, back=False)).status == "refuted"
    wrong = [m for m in generate(parallel_gradients(2, 2)) if m.kind in ("wrong_exchange", "dropped_collective")]
    assert len(wrong) >= 4
    for mutant in wrong:
        status = answer(sequential, mutant.program, suggest=False).status
        assert status == ("proved" if is_equivalent(sequential, mutant) else "refuted"), mutant.description


def test_results_of_experts_in_another_order() -> None:
    sequential = rw.capture(programs.mixture, programs.mixture_args(2))
    program = rw.capture_ranks(programs.parallel_mixture(2, back=False), {"ep": 2})
    assert rw.refine(sequential, program).status == "refuted"


@pytest.mark.parametrize("degree", [2, 4])
def test_two_blocks_written_out_over_ranks(degree: int) -> None:
    sequential = rw.capture(programs.two_blocks, ([PARAMS, PARAMS], X))
    assert proved(sequential, programs.megatron_blocks, {"tp": degree}) == {"output": "Replicate()"}
