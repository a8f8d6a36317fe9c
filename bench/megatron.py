"""Megatron-core's GPT on ranks against the same model on one: a part of ``make zoo``, or ``python -m bench.megatron``.

Loss over the split vocabulary and every gradient, after Megatron's own reduction of those that are addends. Rows with
dropout draw by Megatron's own tracker of random states. The last rows have label smoothing, which is taken over the
local vocabulary in megatron-core 0.16.1 (Megatron-LM #737).
``--degrees 2,4`` chooses degrees.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

from bench.programs import Pair
from bench.tables import print_table
from bench.zoo import twin
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.errors import RewrightError
from rewright.refine import refine
from zoo import megatron_core
from zoo.megatron_core import GPT, MODELS

DROPPING: dict[str, dict[str, Any]] = {
    "gpt, dropout": MODELS["gpt"],
    "llama, dropout": MODELS["llama"],
    "llama, dropout, recomputed": {**MODELS["llama"], "recomputed": True},
}
COLUMNS = ["model", "plan", "degree", "program", "nodes of all ranks", "status", "evidence", "outputs", "twin"]
COLUMNS += ["capture s", "prove s", "audit s", "reason"]


def captured(gpt: GPT, *, sequence: bool, backward: bool) -> Pair:
    """The model on one rank and on as many as it is made for."""
    with megatron_core.on_cpu():
        start = time.perf_counter()
        whole = capture_ranks(megatron_core.sequential(gpt, backward=backward), {"tp": 1}).graphs[0]
        middle = time.perf_counter()
        build = megatron_core.parallel(gpt, sequence=sequence, backward=backward)
        program = capture_ranks(build, {"tp": gpt.degree})
        return Pair(whole, program, middle - start, time.perf_counter() - middle)


def row(name: str, gpt: GPT, *, sequence: bool, backward: bool) -> list[object]:
    """One row of the table."""
    plan = "TP and SP" if sequence else "TP"
    head: list[object] = [name, plan, gpt.degree, "forward + backward" if backward else "forward"]
    try:
        pair = captured(gpt, sequence=sequence, backward=backward)
        start = time.perf_counter()
        verdict = refine(pair.sequential, pair.distributed, audit=True)
        seconds = time.perf_counter() - start
    except RewrightError as error:
        return [*head, "", "error", "", "", "", "", "", "", str(error)]
    reason = "" if verdict.status == "proved" else verdict.reason
    if verdict.status == "refuted" and verdict.findings:
        first = verdict.findings[0]
        reason = f"{first.kind} at {first.distributed}: {first.message}"
    checked = verdict.stats.seconds.get("audit", 0.0)
    nodes = sum(len(graph) for graph in pair.distributed.graphs)
    found = [nodes, verdict.status, str(verdict.evidence), len(verdict.relation), "" if gpt.dropout else twin(pair)]
    return [*head, *found, pair.sequential_seconds + pair.distributed_seconds, seconds - checked, checked, reason]


def rows(names: Sequence[str], degrees: Sequence[int]) -> Iterator[list[object]]:
    """All rows, as they are measured."""
    for name, fields in MODELS.items():
        for degree in degrees if not names or name in names else ():
            for sequence in (False, True):
                for backward in (False, True):
                    yield row(name, GPT(degree, **fields), sequence=sequence, backward=backward)
    for name, fields in DROPPING.items():
        for degree in degrees if not names or "dropout" in names else ():
            for sequence in (False, True):
                yield row(name, GPT(degree, dropout=0.1, **fields), sequence=sequence, backward=True)
    for degree in degrees if not names or "smoothing" in names else ():
        gpt = GPT(degree, smoothing=0.1, **MODELS["llama"])
        yield row("llama, label smoothing", gpt, sequence=False, backward=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models of the zoo, dropout or smoothing")
    parser.add_argument("--degrees", default="2,4", type=lambda text: [int(part) for part in text.split(",")])
    options = parser.parse_args()
    print_table(COLUMNS, rows(options.names, options.degrees))
