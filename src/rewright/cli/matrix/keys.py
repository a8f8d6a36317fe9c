"""What a verdict depends on, as one hash: both programs, relations, options, and the version of rewright."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import rewright
from rewright.cli.matrix.table import Task
from rewright.cli.relations import Relations
from rewright.ir.digest import node_digests
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram

_PACKAGES = ("egraph", "frontends", "interp", "ir", "lifting", "ops", "proof", "refine", "rules", "terms")
"""What a verdict is made by: rules, laws, checker and frontends are all source of these."""


def claim_key(task: Task, sequential: Graph, program: RankProgram, given: Relations) -> str:
    """A SHA-256 as hexadecimal text; equal keys have equal verdicts."""
    parts = {
        "engine": engine_digest(),
        "sequential": program_digest(sequential),
        "ranks": [program_digest(graph) for graph in program.graphs],
        "mesh": list(program.mesh.axes),
        "inputs": _placements(program.inputs),
        "outputs": _placements(program.outputs),
        "notes": list(program.notes),
        "relations": given.relations,
        "expect": given.expect,
        "budget": task.budget,
        "audit": task.audit,
        "content": [task.allow_vacuous, task.require_collectives],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def program_digest(graph: Graph) -> str:
    """A SHA-256 over all of a program: every node in order, dead ones and source lines too, names and notes."""
    total = hashlib.sha256()
    for found in node_digests(graph, spans=True):
        total.update(found)
    rest = (list(graph.inputs.items()), list(graph.outputs.items()), sorted(graph.metadata.items()))
    total.update(json.dumps(rest).encode())
    return total.hexdigest()


@cache
def engine_digest() -> str:
    """A SHA-256 over the source that verdicts are made by, and the versions of the solver and of numpy."""
    root = Path(rewright.__file__).parent
    found = hashlib.sha256(f"{version('z3-solver')} {version('numpy')}".encode())
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            found.update(path.relative_to(root).as_posix().encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _placements(table: Mapping[str, Placement]) -> list[tuple[str, str, str]]:
    return sorted((name, str(placement), repr(placement)) for name, placement in table.items())
