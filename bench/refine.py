"""Seconds to capture, to prove and to audit full-size models by phase, and memory: ``make bench-refine``.

The audit is that of a fresh checker, which proves every lemma itself; ``again`` is a second one that finds them in its
store. ``--all-ranks`` traces ranks one by one, instead of one trace of all and one of the last.

``python -m bench.refine 8b 405b/2`` takes some sizes only. Each program runs in a process of its own, so that the
memory is its own. ``405b/2`` is the same shape with two layers: what a further layer costs is the difference by the
number of further layers.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

from bench.programs import Pair, captured
from bench.tables import print_table
from rewright.proof.checker import audit
from rewright.refine import refine
from rewright.refine.verdict import Verdict

PROGRAMS = (
    ("llama", "dtensor", "8b", 8, False),
    ("llama", "dtensor", "8b", 8, True),
    ("llama", "dtensor_sp_loss", "8b", 8, True),
    ("llama", "dtensor", "70b", 8, False),
    ("llama", "dtensor", "405b", 8, False),
    ("llama", "dtensor", "405b/2", 8, True),
    ("llama", "dtensor", "405b/16", 8, True),
    ("llama", "dtensor", "405b", 8, True),
)
PHASES = ("relate inputs", "walk graphs", "lift sequential", "lift ranks", "relate outputs")


def measure(name: str, plan: str, size: str, degree: int, backward: bool, all_ranks: bool) -> list[object]:
    """One row: nodes, seconds by phase, status, and the peak of memory in GB."""
    pair = captured(name, plan, size, degree, backward, all_ranks=all_ranks)
    start = time.perf_counter()
    verdict = refine(pair.sequential, pair.distributed)
    total = time.perf_counter() - start
    nodes = verdict.stats.sequential_nodes, verdict.stats.rank_nodes
    audits = audited(verdict, pair)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [
        *(f"{count:,}" for count in nodes),
        pair.sequential_seconds,
        pair.distributed_seconds,
        *(verdict.stats.seconds.get(phase, 0.0) for phase in PHASES),
        total,
        verdict.status,
        *audits,
        peak,
    ]


def audited(verdict: Verdict, pair: Pair) -> list[float]:
    """Seconds to write the certificate, to audit it, and to audit it again."""
    lemmas: set[str] = set()
    found: list[float] = []
    start = time.perf_counter()
    certificate = verdict.certificate
    found.append(time.perf_counter() - start)
    for _ in range(2):
        start = time.perf_counter()
        if certificate is not None:
            audit(certificate, pair.sequential, pair.distributed, lemmas)
        found.append(time.perf_counter() - start)
    return found


def in_own_process(arguments: tuple[str, str, str, int, bool], all_ranks: bool) -> list[object]:
    """The row of a program, measured by a process of its own."""
    command = [sys.executable, "-m", "bench.refine", json.dumps([*arguments, all_ranks])]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    name, plan, size, degree, backward = arguments
    head = [f"{name} {size}", plan, degree, "forward + backward" if backward else "forward"]
    return [*head, *(json.loads(run.stdout) if run.returncode == 0 else ["failed"])]


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("["):
        print(json.dumps(measure(*json.loads(sys.argv[1]))))
    else:
        captures = ["capture model s", "capture ranks s"]
        phases = [f"{phase} s" for phase in PHASES]
        header = [
            "model",
            "plan",
            "ranks",
            "program",
            "nodes",
            "rank nodes",
            *captures,
            *phases,
            "prove s",
            "status",
            "write down s",
            "audit s",
            "again s",
            "GB",
        ]
        sizes, all_ranks = [word for word in sys.argv[1:] if word != "--all-ranks"], "--all-ranks" in sys.argv
        print_table(header, (in_own_process(p, all_ranks) for p in PROGRAMS if not sizes or p[2] in sizes))
