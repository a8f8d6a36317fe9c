"""Distributed programs of every parallelism as pairs that can be proved: what ``make mutants`` puts bugs into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from bench import families, megatron
from bench.programs import captured
from bench.schedules import programs as schedules
from rewright.frontends.capture import capture, capture_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.relations.given import Given
from rewright.refine.relations.known import input_relations, output_expectations
from zoo.megatron_core import GPT
from zoo.megatron_core import MODELS as MEGATRON
from zoo.steps import STEPS, Step

MODELS = (
    ("llama", "dtensor", True),
    ("llama", "dtensor_sp_loss", True),
    ("qwen3", "dtensor_sp", True),
    ("decoder", "megatron", True),
    ("decoder", "megatron_sp", True),
    ("gpt2", "dtensor", False),
    ("mixer", "all_to_all", True),
    ("mixtral", "tp_plan", True),
)
MIXTURES = (("qwen3_moe", "dense"), ("deepseek_v3", "dense"))
"""Families of Transformers by their ``ep_plan``, and how experts are computed."""
DEGREE = 2


@dataclass(frozen=True)
class Claim:
    """A sequential program and one for all ranks that says of every input and output how ranks hold it."""

    sequential: Graph
    program: RankProgram


def claim(
    sequential: Graph, program: RankProgram, relations: Given | None = None, expect: Given | None = None
) -> Claim:
    """The pair with what is stated about inputs and outputs written into the program of the ranks."""
    inputs = input_relations(sequential, program, relations).placements
    held = replace(program, inputs={**program.inputs, **inputs})
    return Claim(sequential, replace(held, outputs=output_expectations(sequential, held, expect)))


def of_model(name: str, plan: str, backward: bool, degree: int = DEGREE) -> Claim:
    """A tiny model of the zoo on a mesh of one axis, forward or with backward."""
    pair = captured(name, plan, "tiny", degree, backward)
    return Claim(pair.sequential, pair.distributed)


def of_family(name: str, experts: str) -> Claim:
    """A mixture of Transformers whose ranks compute the routes to their own experts, and are added up."""
    return Claim(*families.captured(name, families.Way(experts=experts, plan="all_reduce"), "sdpa"))


def of_megatron(sequence: bool, backward: bool = True, degree: int = DEGREE) -> Claim:
    """Megatron-core's GPT with the sizes of a Llama, one layer."""
    pair = megatron.captured(GPT(degree, layers=1, **MEGATRON["llama"]), sequence=sequence, backward=backward)
    return Claim(pair.sequential, pair.distributed)


def of_step(step: Step) -> Claim:
    """A training step of the zoo."""
    return claim(capture(*step.sequential()), capture_ranks(step.parallel, step.mesh), step.relations)


def of_jax(function: Callable[..., Any], args: Any, build: Callable[[Any], Any], mesh: dict[str, int]) -> Claim:
    """A function of JAX, and what its ranks run."""
    return Claim(capture(function, args), capture_ranks(build, mesh))


def _jax_programs() -> Iterator[tuple[str, Callable[[], Claim]]]:
    from tests.frontends.jax import programs as jax_programs

    specs, sharded, P = jax_programs.specs, jax_programs.sharded_step, jax_programs.P
    step, data = jax_programs.step, (jax_programs.PARAMS, jax_programs.X, jax_programs.X)
    yield "jax step, tp", partial(of_jax, step, data, sharded(specs("tp", None), P()), {"tp": 2})
    both = sharded(specs("tp", "fsdp"), P("fsdp"))
    yield "jax step, fsdp and tp", partial(of_jax, step, data, both, {"fsdp": 2, "tp": 2})
    rows = jax_programs.softmax_attention, jax_programs.QKV
    yield "jax ring attention", partial(of_jax, *rows, jax_programs.ring, {"cp": 2})
    yield "jax ulysses", partial(of_jax, *rows, jax_programs.ulysses, {"cp": 2})
    blocks = jax_programs.two_blocks, ([jax_programs.PARAMS, jax_programs.PARAMS], jax_programs.X)
    yield "jax blocks by hand, tp", partial(of_jax, *blocks, jax_programs.megatron_blocks, {"tp": 2})
    experts = jax_programs.mixture, jax_programs.mixture_args(4)
    yield "jax experts", partial(of_jax, *experts, jax_programs.parallel_mixture(4), {"ep": 2})


def claims() -> Iterator[tuple[str, Callable[[], Claim]]]:
    """Every program by name, and how to capture it."""
    for name, plan, backward in MODELS:
        yield f"{name} {plan}", partial(of_model, name, plan, backward)
    for name, experts in MIXTURES:
        yield f"{name}, {experts} experts, ep_plan", partial(of_family, name, experts)
    for plan in ("tp", "tp and sp") if find_spec("megatron") else ():  # it has wheels for Linux only
        yield f"megatron-core llama, {plan}", partial(of_megatron, plan != "tp")
    for name, step in STEPS.items():
        yield name, partial(of_step, step)
    for name, plan, what, made in schedules():
        if what != "forward" or name.startswith("ring"):
            yield f"{name}, {plan}", lambda made=made: claim(*made(DEGREE))
    yield from _jax_programs()
