"""Bugs in how parameters are loaded: ranks that hold each other's shard, or all the same one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench.mutants.model import Mutant
from rewright.ir.placement import AxisRuns, Placement, RankProgram


def loading_bugs(program: RankProgram) -> Iterator[Mutant]:
    """For every sharded float input: two ranks with swapped shards, and a rank with the shard of its neighbour."""
    for name, placement in program.inputs.items():
        holders = [rank for rank, graph in enumerate(program.graphs) if name in graph.inputs]
        other = next((r for r in holders[1:] if _may_hold(placement, holders[0], r)), None)
        if other is None or not _is_float(program, name):
            continue
        first = holders[0]
        runs = list(placement.runs)
        runs[first], runs[other] = runs[other], runs[first]
        yield _mutant(program, name, runs, (first, other), "swapped_shards", "hold each other's shard of")
        runs = list(placement.runs)
        runs[other] = runs[first]
        yield _mutant(program, name, runs, (first, other), "stale_shard", "hold the same shard of")


def _may_hold(placement: Placement, left: int, right: int) -> bool:
    """Whether two ranks hold different shards of one shape."""
    shapes = placement.local_shape(left), placement.local_shape(right)
    return placement.runs[left] != placement.runs[right] and shapes[0] == shapes[1]


def _is_float(program: RankProgram, name: str) -> bool:
    graph = next(graph for graph in program.graphs if name in graph.inputs)
    return graph.nodes[graph.inputs[name]].type.dtype.is_float


def _mutant(
    program: RankProgram, name: str, runs: list[tuple[AxisRuns, ...]], ranks: tuple[int, int], kind: str, what: str
) -> Mutant:
    site = {rank: program.graphs[rank].inputs[name] for rank in ranks}
    changed = replace(program.inputs[name], runs=tuple(runs))
    mutated = replace(program, inputs={**program.inputs, name: changed})
    span = program.graphs[ranks[0]].nodes[site[ranks[0]]].span
    return Mutant(kind, f"ranks {ranks[0]} and {ranks[1]} {what} {name}", ranks, span, site, site, mutated)
