"""Distributed programs of every parallelism as pairs that can be proved: what ``make mutants`` puts bugs into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from bench import megatron
from bench.programs import captured
from bench.schedules import programs as schedules
from rewright.frontends.capture import capture, capture_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.relations import Given, input_relations, output_expectations
from rewright.zoo.megatron_core import GPT
from rewright.zoo.megatron_core import MODELS as MEGATRON
from rewright.zoo.steps import STEPS, Step
from tests.frontends.jax import programs as jax_programs

MODELS = (
    ("llama", "dtensor", True),
    ("llama", "dtensor_sp_loss", True),
    ("qwen3", "dtensor_sp", True),
    ("decoder", "megatron", True),
    ("decoder", "megatron_sp", True),
    ("gpt2", "dtensor", False),
    ("mixer", "all_to_all", True),
)
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


def _model(name: str, plan: str, backward: bool) -> Claim:
    pair = captured(name, plan, "tiny", DEGREE, backward)
    return Claim(pair.sequential, pair.distributed)


def _megatron(sequence: bool) -> Claim:
    pair = megatron.captured(GPT(DEGREE, layers=1, **MEGATRON["llama"]), sequence=sequence, backward=True)
    return Claim(pair.sequential, pair.distributed)


def _step(step: Step) -> Claim:
    return claim(capture(*step.sequential()), capture_ranks(step.parallel, step.mesh), step.relations)


def _jax(function: Callable[..., Any], args: Any, build: Callable[[Any], Any], mesh: dict[str, int]) -> Claim:
    return Claim(capture(function, args), capture_ranks(build, mesh))


def _jax_programs() -> Iterator[tuple[str, Callable[[], Claim]]]:
    specs, sharded, P = jax_programs.specs, jax_programs.sharded_step, jax_programs.P
    step, data = jax_programs.step, (jax_programs.PARAMS, jax_programs.X, jax_programs.X)
    yield "jax step, tp", partial(_jax, step, data, sharded(specs("tp", None), P()), {"tp": 2})
    both = sharded(specs("tp", "fsdp"), P("fsdp"))
    yield "jax step, fsdp and tp", partial(_jax, step, data, both, {"fsdp": 2, "tp": 2})
    rows = jax_programs.softmax_attention, jax_programs.QKV
    yield "jax ring attention", partial(_jax, *rows, jax_programs.ring, {"cp": 2})
    yield "jax ulysses", partial(_jax, *rows, jax_programs.ulysses, {"cp": 2})
    blocks = jax_programs.two_blocks, ([jax_programs.PARAMS, jax_programs.PARAMS], jax_programs.X)
    yield "jax blocks by hand, tp", partial(_jax, *blocks, jax_programs.megatron_blocks, {"tp": 2})
    experts = jax_programs.mixture, jax_programs.mixture_args(4)
    yield "jax experts", partial(_jax, *experts, jax_programs.parallel_mixture(4), {"ep": 2})


def claims() -> Iterator[tuple[str, Callable[[], Claim]]]:
    """Every program by name, and how to capture it."""
    for name, plan, backward in MODELS:
        yield f"{name} {plan}", partial(_model, name, plan, backward)
    for plan in ("tp", "tp and sp") if find_spec("megatron") else ():  # it has wheels for Linux only
        yield f"megatron-core llama, {plan}", partial(_megatron, plan != "tp")
    for name, step in STEPS.items():
        yield name, partial(_step, step)
    for name, plan, what, made in schedules():
        if what != "forward" or name.startswith("ring"):
            yield f"{name}, {plan}", lambda made=made: claim(*made(DEGREE))
    yield from _jax_programs()
