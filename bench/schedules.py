"""Pipelines, routed experts and ring attention of the zoo: proved, confirmed, in which time; ``make zoo`` prints it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench.tables import print_table
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine import refine
from rewright.refine.engine import audit_verdict
from rewright.refine.verdict import Verdict
from zoo import context, pipelines, ring, routed

EXPERTS = {"up": "Shard(0)", "down": "Shard(0)"}
PARTIAL = {"grad:router.gate.weight": "Partial(sum)"}
TOKENS = dict.fromkeys(("query", "key", "value"), "Shard(1)")

Captured = tuple[Graph, RankProgram, dict[str, str], dict[str, str]]


def pipeline(plan: str, degree: int) -> Captured:
    """Loss and gradients of a pipeline."""
    step, args, kwargs = pipelines.sequential(degree)
    ranks: Any = "traced" if plan == "sends" else "threads"
    program = capture_ranks(pipelines.parallel(plan, degree), {"pp": degree}, ranks=ranks)
    return capture(step, args, kwargs), program, {}, {}


def experts(plan: str, degree: int, *, backward: bool) -> Captured:
    """A mixture of experts for the routing of one batch."""
    step, args, kwargs = routed.sequential(degree, backward=backward)
    build = routed.parallel(plan, degree, backward=backward)
    program = capture_ranks(build, {"ep": degree}, ranks="threads")
    split = plan == "all_to_all"
    relations = EXPERTS | ({"x": "Shard(0)"} if split else {})
    expect = (PARTIAL | ({"loss": "Partial(sum)"} if split else {})) if backward else {}
    return capture(step, args, kwargs, run=True), program, relations, expect


def around(plan: str, degree: int, *, causal: bool) -> Captured:
    """Attention around a ring."""
    program, args, kwargs = ring.sequential(degree, causal=causal)
    ranks = capture_ranks(ring.parallel(plan, degree, causal=causal), {"cp": degree})
    return capture(program, args, kwargs), ranks, TOKENS, {}


def in_context(plan: str, degree: int, *, causal: bool) -> Captured:
    """Attention as ``context_parallel`` of torch has it, or by exchanging tokens for heads."""
    heads = degree if plan == "ulysses" else 1
    program, args, kwargs = context.sequential(degree, causal=causal, heads=heads)
    balanced = plan.endswith("balanced")
    if plan == "ulysses":
        build = context.ulysses(degree, causal=causal)
    else:
        build = context.parallel(degree, causal=causal, balanced=balanced, rotation=plan.split(",")[0])
    held = "HeadTail(2)" if balanced else "Shard(2)"
    relations = dict.fromkeys(context.NAMES, held)
    ranks = capture_ranks(build, {"cp": degree})
    return capture(program, args, kwargs), ranks, relations, {"loss": "Partial(sum)", "output": held}


def programs() -> Iterator[tuple[str, str, str, Callable[[int], Captured]]]:
    """Name, plan, what of it, and how to capture it at a degree."""
    for plan in (*pipelines.SCHEDULES, "sends"):
        yield "pipeline", plan, "forward + backward", lambda degree, plan=plan: pipeline(plan, degree)
    for plan in routed.MIXTURES:
        for backward in (False, True):
            what = "forward + backward" if backward else "forward"
            yield "experts", plan, what, lambda degree, p=plan, b=backward: experts(p, degree, backward=b)
    for causal in (False, True):
        mask = ", causal" if causal else ""
        for plan in ring.MERGES:
            yield "ring attention" + mask, plan, "forward", lambda degree, p=plan, c=causal: around(p, degree, causal=c)
        plans = ["ulysses", *context.ROTATIONS, *(f"{rotation}, balanced" for rotation in context.ROTATIONS if causal)]
        for plan in plans:
            name, what = "context_parallel" + mask, "forward + backward"
            yield name, plan, what, lambda degree, p=plan, c=causal: in_context(p, degree, causal=c)


def rows(degrees: Sequence[int]) -> Iterator[list[object]]:
    """All rows, as they are measured."""
    for name, plan, what, captured in programs():
        for degree in degrees:
            head: list[object] = [name, plan, degree, what]
            start = time.perf_counter()
            try:
                sequential, program, relations, expect = captured(degree)
                middle = time.perf_counter()
                verdict = refine(sequential, program, relations, expect)
                confirmed = audit_verdict(verdict, sequential, program) if verdict.status == "proved" else verdict
            except RewrightError as error:
                yield [*head, "error", "", "", "", "", str(error)]
                continue
            nodes = sum(len(graph) for graph in program.graphs)
            seconds = time.perf_counter() - middle
            reason = "" if verdict.status == "proved" else verdict.reason
            best = confirmed if confirmed.status == verdict.status else verdict
            yield [
                *head,
                best.status,
                str(best.evidence),
                nodes,
                middle - start,
                seconds,
                reason or confirmed_not(confirmed),
            ]


def confirmed_not(verdict: Verdict) -> str:
    """Why the independent checker does not confirm a proof, if so."""
    return "" if verdict.status == "proved" else verdict.reason


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--degrees", default="2,3,4", type=lambda text: [int(part) for part in text.split(",")])
    header = ["program", "plan", "ranks", "what", "status", "evidence", "nodes of all ranks", "capture s"]
    print_table([*header, "prove and audit s", "reason"], rows(parser.parse_args().degrees))
