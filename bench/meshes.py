"""Training steps on large meshes: captured in part, proved for all ranks, and the proof audited.

``make bench-meshes`` prints the table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from bench.tables import print_table
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.checker import audit
from rewright.refine import Verdict, refine
from zoo.steps import MESHES

COLUMNS = ["step", "mesh", "ranks", "nodes", "nodes of all ranks", "status", "outputs", "capture s", "prove s"]
COLUMNS += ["write down s", "audit s", "lemmas"]


def rows(names: Sequence[str]) -> Iterator[list[object]]:
    """One row for each step of that name."""
    for name in names:
        step = MESHES[name]
        start = time.perf_counter()
        whole, program = capture(*step.sequential()), capture_ranks(step.parallel, step.mesh)
        middle = time.perf_counter()
        verdict = refine(whole, program, step.relations)
        proved = time.perf_counter()
        nodes = [f"{len(whole):,}", f"{sum(map(len, program.graphs)):,}"]
        mesh = " x ".join(f"{axis} {size}" for axis, size in step.mesh.items())
        found = [verdict.status, len(verdict.relation), middle - start, proved - middle]
        yield [name, mesh, len(program.graphs), *nodes, *found, *_audited(verdict, whole, program)]


def _audited(verdict: Verdict, whole: Graph, program: RankProgram) -> list[object]:
    """Seconds to write a proof down, seconds to audit it, and how many lemmas the checker proved."""
    start = time.perf_counter()
    certificate = verdict.certificate
    if certificate is None:
        return ["", "", ""]
    written = time.perf_counter()
    found = audit(certificate, whole, program)
    return [written - start, time.perf_counter() - written, found.proved]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MESHES, []], default=[])
    print_table(COLUMNS, rows(parser.parse_args().names or list(MESHES)))
