"""One table of what is proved: parallelism by framework, forward and with backward, up to 512 ranks; ``make breadth``.

Every program is captured, refined and audited by the independent checker. ``--framework NAME`` takes the programs of
one framework; those of torchtitan need the environment of ``make pairs``, and are left out where it is not installed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from bench.distributed import Claim, claim, of_jax, of_megatron, of_model, of_step
from bench.schedules import around, experts, in_context, pipeline
from bench.tables import print_table
from rewright.frontends.capture import capture, capture_ranks
from rewright.ir.errors import RewrightError
from rewright.refine import refine
from zoo import ring_training
from zoo.steps import MESHES, STEPS

COLUMNS = ["parallelism", "framework", "program", "mesh", "what", "ranks", "nodes", "status", "evidence", "outputs"]
COLUMNS += ["capture s", "prove s", "audit s", "reason"]
BOTH = "forward + backward"


@dataclass(frozen=True)
class Entry:
    """A row: how the work is split, by whose code, and how to capture it."""

    parallelism: str
    framework: str
    program: str
    what: str
    captured: Callable[[], Claim]


def entries() -> Iterator[Entry]:
    """All rows, one parallelism after the other."""
    yield from _models()
    yield from _steps()
    yield from _schedules()
    if find_spec("jax"):
        yield from _jax()
    if find_spec("torchtitan"):
        yield from _torchtitan()
    for name, step in MESHES.items():
        yield Entry(_split(step.mesh), "PyTorch", f"{name}, 512 ranks", BOTH, partial(of_step, step))


def _models() -> Iterator[Entry]:
    plans = (
        ("tensor", "PyTorch DTensor", "llama", "dtensor"),
        ("tensor", "Transformers", "qwen3", "tp_plan"),
        ("tensor, experts", "Transformers", "mixtral", "tp_plan"),
        ("tensor", "by hand", "decoder", "megatron"),
        ("tensor, sequence", "PyTorch DTensor", "llama", "dtensor_sp"),
        ("tensor, sequence", "by hand", "decoder", "megatron_sp"),
        ("tensor, vocabulary", "PyTorch DTensor", "llama", "dtensor_loss"),
        ("tensor, sequence, vocabulary", "PyTorch DTensor", "llama", "dtensor_sp_loss"),
    )
    for parallelism, framework, name, plan in plans:
        for backward in (False, True):
            made = partial(of_model, name, plan, backward, 4)
            yield Entry(parallelism, framework, f"{name}, {plan}", BOTH if backward else "forward", made)
    for sequence in (False, True) if find_spec("megatron") else ():  # it has wheels for Linux only
        for backward in (False, True):
            made = partial(of_megatron, sequence, backward, 4)
            parallelism = "tensor, sequence, vocabulary" if sequence else "tensor, vocabulary"
            yield Entry(parallelism, "Megatron-core", "llama", BOTH if backward else "forward", made)


def _steps() -> Iterator[Entry]:
    for name, step in STEPS.items():
        parallelism = "data, state" if "zero" in name else _split(step.mesh, name)
        yield Entry(parallelism, "PyTorch", name, BOTH, partial(of_step, step))


def _split(mesh: Mapping[str, int], name: str = "fsdp") -> str:
    """The parallelism of a training step."""
    data = "data" if name.startswith("ddp") else "data, weights"
    return f"tensor, {data}" if "tp" in mesh else data


def _schedules() -> Iterator[Entry]:
    for plan in ("gpipe", "1f1b", "interleaved", "sends"):
        yield Entry("pipeline", "PyTorch", plan, BOTH, lambda plan=plan: claim(*pipeline(plan, 4)))
    for plan in ("all_reduce", "all_to_all"):
        for backward in (False, True):
            made = lambda p=plan, b=backward: claim(*experts(p, 2, backward=b))  # noqa: E731
            yield Entry("experts", "by hand", plan, BOTH if backward else "forward", made)
    for causal in (False, True):
        mask = ", causal" if causal else ""
        for plan in ("ulysses", "allgather", "alltoall", *(("allgather, balanced",) if causal else ())):
            who = "by hand" if plan == "ulysses" else "context_parallel"
            made = lambda p=plan, c=causal: claim(*in_context(p, 4, causal=c))  # noqa: E731
            yield Entry("context", who, plan + mask, BOTH, made)
        yield Entry(
            "context", "by hand", f"ring{mask}", "forward", lambda c=causal: claim(*around("online", 4, causal=c))
        )
        for plan in ring_training.PLANS:
            yield Entry("context", "by hand", f"ring, {plan}{mask}", BOTH, partial(_around_trained, plan, causal, 2))


def _around_trained(plan: str, causal: bool, degree: int) -> Claim:
    build = ring_training.parallel(plan, "contiguous" if causal else None)
    program, args, kwargs = ring_training.sequential(degree, causal=causal)
    held = dict.fromkeys(ring_training.NAMES, "Shard(1)")
    ranks = capture_ranks(build, {"cp": degree})
    return claim(capture(program, args, kwargs), ranks, held, {"loss": "Partial(sum)", "output": "Shard(1)"})


def _jax() -> Iterator[Entry]:
    from tests.frontends.jax import programs as of

    P, specs, sharded = of.P, of.specs, of.sharded_step
    data, own = (of.PARAMS, of.X, of.X), {name: of.P("dp") for name in of.PARAMS} | {"down": of.P(None, "dp")}
    blocks = of.two_blocks, ([of.PARAMS, of.PARAMS], of.X)
    yield Entry(
        "tensor", "JAX shard_map", "two blocks", "forward", partial(of_jax, *blocks, of.megatron_blocks, {"tp": 2})
    )
    steps: tuple[tuple[str, Any, dict[str, int]], ...] = (
        ("tensor", sharded(specs("tp", None), P()), {"tp": 4}),
        ("data", sharded(specs(None, None), P("dp")), {"dp": 4}),
        ("data, weights", sharded(own, P("dp")), {"dp": 4}),
        ("tensor, data, weights", sharded(specs("tp", "fsdp"), P("fsdp")), {"fsdp": 2, "tp": 2}),
        (
            "tensor, data, weights, context",
            sharded(specs("tp", "fsdp"), P(("dp", "fsdp"), "cp")),
            {"dp": 2, "fsdp": 2, "cp": 2, "tp": 2},
        ),
    )
    for parallelism, build, mesh in steps:
        yield Entry(parallelism, "JAX jit", "block", "training step", partial(of_jax, of.step, data, build, mesh))
    args = (of.LANGUAGE, of.TOKENS, of.TOKENS)
    weights = specs("tp", None) | {"embedding": P("tp"), "head": P(None, "tp")}
    build = sharded(weights, P(), of.language_step, args)
    made = partial(of_jax, of.language_step, args, build, {"tp": 2})
    yield Entry("tensor, vocabulary", "JAX jit", "block and loss", "training step", made)
    rows = of.softmax_attention, of.QKV
    yield Entry("context", "JAX shard_map", "ring", "forward", partial(of_jax, *rows, of.ring, {"cp": 4}))
    yield Entry("context", "JAX shard_map", "ulysses", "forward", partial(of_jax, *rows, of.ulysses, {"cp": 4}))
    made = partial(of_jax, of.mixture, of.mixture_args(4), of.parallel_mixture(4), {"ep": 2})
    yield Entry("experts", "JAX shard_map", "all_to_all", "forward", made)


def _torchtitan() -> Iterator[Entry]:
    from bench.titan import PROGRAMS, captured

    for training in PROGRAMS:
        parallelism = "tensor, sequence, vocabulary" if training.sequence else "tensor, vocabulary"
        if "shard" in training.mesh:
            parallelism = f"{parallelism}, data, weights" if "tp" in training.mesh else "data, weights"
        clipped = ", clipped" if training.clip else ""
        program = f"{training.family}, {training.backend}{clipped}"
        yield Entry(parallelism, "torchtitan", program, BOTH, lambda t=training: claim(*captured(t)))


def row(entry: Entry) -> list[object]:
    """One row of the table."""
    head: list[object] = [entry.parallelism, entry.framework, entry.program]
    start = time.perf_counter()
    try:
        made = entry.captured()
        middle = time.perf_counter()
        verdict = refine(made.sequential, made.program, audit=True)
    except RewrightError as error:
        return [*head, "", entry.what, "", "", "error", *[""] * 5, str(error)]
    seconds = time.perf_counter() - middle
    checked = verdict.stats.seconds.get("audit", 0.0)
    mesh = " x ".join(f"{name} {size}" for name, size in made.program.mesh.axes)
    nodes = f"{sum(map(len, made.program.graphs)):,}"
    updates = any(name.startswith("updated:") for name in made.sequential.outputs)
    what = "training step" if updates else entry.what
    found = [verdict.status, str(verdict.evidence), len(verdict.relation), middle - start, seconds - checked, checked]
    reason = "" if verdict.status == "proved" else verdict.reason
    return [*head, mesh, what, math.prod(size for _, size in made.program.mesh.axes), nodes, *found, reason]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", help="the rows of this one only, by the beginning of its name")
    parser.add_argument("--parallelism", help="the rows that split so only, by a part of the name")
    options = parser.parse_args()
    chosen = [
        entry
        for entry in entries()
        if entry.framework.startswith(options.framework or "") and (options.parallelism or "") in entry.parallelism
    ]
    print_table(COLUMNS, map(row, chosen))
