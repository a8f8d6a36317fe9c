"""Runs a sequential program and all ranks of a distributed one in float64 and compares every output."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rewright.interp.ranks import run, run_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram, place
from rewright.ir.types import DType
from rewright.ops import Input

Array = NDArray[np.generic]


def random_inputs(graph: Graph, vocabulary: int = 128, seed: int = 0) -> dict[str, Array]:
    """Values for every input: small reals, and token ids over the whole vocabulary."""
    source = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, position in graph.inputs.items():
        op = graph.nodes[position].op
        assert isinstance(op, Input)
        shape = tuple(int(size) for size in op.tensor.shape)  # pyright: ignore[reportArgumentType]
        if op.tensor.dtype is DType.I64:
            few = "token_type" in name or (name == "labels" and len(shape) == 1)
            found[name] = source.integers(0, 2 if few else vocabulary, shape)
        else:
            found[name] = source.normal(size=shape) * 0.3
    return found


def part(value: Array, placement: Placement, rank: int) -> Array:
    """What a rank holds of a global value."""
    for axis, runs in enumerate(placement.runs[rank]):
        chosen = [np.arange(int(start), int(start) + int(length)) for start, length in runs]  # pyright: ignore
        value = np.take(value, np.concatenate(chosen) if chosen else np.zeros(0, int), axis)
    return value


def by_shape(
    name: str, value: Array, graphs: tuple[Graph, ...], program: RankProgram, table: Mapping[str, int]
) -> Placement:
    """The placement of a plain tensor: replicated if the shapes are equal, else chunks of the one axis that differs."""
    local = graphs[0].nodes[table[name]].type.shape
    differing = [axis for axis, (own, whole) in enumerate(zip(local, value.shape, strict=True)) if own != whole]
    assert len(differing) <= 1, f"{name}: {local} of {value.shape}"
    return place(value.shape, program.mesh, [f"Shard({differing[0]})" if differing else "Replicate()"])


def disagreements(sequential: Graph, program: RankProgram, seed: int = 0, vocabulary: int = 128) -> dict[str, float]:
    """The outputs that differ, with the largest error relative to the largest value."""
    values = random_inputs(sequential, vocabulary, seed)
    locals_: list[dict[str, Array]] = []
    for rank, graph in enumerate(program.graphs):
        own: dict[str, Array] = {}
        for name in graph.inputs:
            known = program.inputs.get(name) or by_shape(
                name, values[name], program.graphs, program, program.graphs[0].inputs
            )
            own[name] = part(values[name], known, rank)
        locals_.append(own)
    expected = run(sequential, values).outputs
    found = [execution.outputs for execution in run_ranks(program.graphs, locals_)]
    assert set(found[0]) == set(expected)
    wrong: dict[str, float] = {}
    for name, value in expected.items():
        known = program.outputs.get(name) or by_shape(name, value, program.graphs, program, program.graphs[0].outputs)
        for rank, results in enumerate(found):
            group = program.mesh.group(rank, known.partial)
            own = sum((found[other][name] for other in group), np.zeros(())) if known.partial else results[name]
            want = part(value, known, rank)
            assert own.shape == want.shape, f"{name} on rank {rank}: {own.shape} for {want.shape}"
            if want.size:
                error = float(np.abs(own - want).max() / (np.abs(value).max() + 1e-3))
                wrong |= {name: error} if error > 1e-9 else {}
    return wrong
