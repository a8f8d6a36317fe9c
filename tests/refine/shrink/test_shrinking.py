"""Programs at captured sizes and at small ones are the same programs: right ones agree, wrong ones do not."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch

import rewright as rw
from bench.mutants import Mutant, generate
from rewright import ops
from rewright.ir.graph import Graph, validate
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import TensorType
from rewright.refine.twin.twin import Twin, make_twin
from tests.programs import (
    I64,
    Builder,
    Pair,
    attention,
    cross_entropy,
    mlp,
    sequence_parallel_norm,
    vocabulary_embedding,
)

FULL_SIZE: dict[str, Callable[[int], Pair]] = {
    "mlp": lambda world: mlp(world, batch=8192, hidden=4096, inner=14336),
    "attention": lambda world: attention(world, tokens=8192, heads=32, head_size=128, hidden=4096),
    "vocabulary_embedding": lambda world: vocabulary_embedding(world, tokens=8192, vocabulary=128256, hidden=4096),
    "cross_entropy": lambda world: cross_entropy(world, tokens=8192, vocabulary=128256, hidden=4096),
    "sequence_parallel_norm": lambda world: sequence_parallel_norm(world, tokens=8192, hidden=4096, inner=14336),
}
"""The shapes of Llama 3.1 8B."""


def shrunk(pair: Pair) -> Twin:
    twin = make_twin(*pair, largest=200_000)
    assert not isinstance(twin, Unsupported), twin
    assert twin.shrunk
    return twin


def shapes(twin: Twin) -> dict[str, tuple[object, ...]]:
    return {name: twin.sequential.nodes[p].type.shape for name, p in twin.sequential.inputs.items()}


@pytest.mark.parametrize("name", FULL_SIZE)
@pytest.mark.parametrize("world", [2, 8])
def test_full_size_programs_agree_at_small_sizes(name: str, world: int) -> None:
    pair = FULL_SIZE[name](world)
    twin = shrunk(pair)
    for graph, original in zip((twin.sequential, *twin.program.graphs), (pair[0], *pair[1].graphs), strict=True):
        validate(graph)
        assert [node.op.name for node in graph.nodes] == [node.op.name for node in original.nodes]
        assert [node.operands for node in graph.nodes] == [node.operands for node in original.nodes]
    result = twin.compare()
    assert result.agrees is True
    assert result.placements.keys() == pair[1].outputs.keys()


def test_what_divides_what_is_kept() -> None:
    found = shapes(shrunk(FULL_SIZE["attention"](8)))
    heads = found["q.weight"][1]
    assert isinstance(heads, int)
    assert heads % 8 == 0
    assert heads < 4096
    assert found["o.weight"] == (heads, found["x"][1])


@pytest.mark.parametrize("name", FULL_SIZE)
def test_mutants_are_wrong_at_small_sizes_where_they_are_wrong_at_all(name: str) -> None:
    """The programs at tiny sizes, which need no shrinking, say which mutants are wrong."""
    sequential, program = FULL_SIZE[name](4)
    tiny = {
        "mlp": mlp,
        "attention": attention,
        "vocabulary_embedding": vocabulary_embedding,
        "cross_entropy": cross_entropy,
        "sequence_parallel_norm": sequence_parallel_norm,
    }[name](4)

    def outcomes(pair: Pair, largest: int) -> dict[tuple[str, str, str], bool | None]:
        found: dict[tuple[str, str, str], bool | None] = {}
        for mutant in generate(pair[1]):
            twin = make_twin(pair[0], mutant.program, largest=largest)
            assert not isinstance(twin, Unsupported), mutant.description
            found[key(mutant)] = twin.compare().agrees
        return found

    def key(mutant: Mutant) -> tuple[str, str, str]:
        return mutant.kind, mutant.description, str(mutant.site)

    small, full = outcomes(tiny, 1 << 30), outcomes((sequential, program), 200_000)
    # Other axes happen to have equal sizes at tiny size, so there are some mutants more.
    common = small.keys() & full.keys()
    assert len(common) > 12
    assert {k: full[k] for k in common} == {k: small[k] for k in common}


def both(sequential: Builder, ranks: list[Builder], inputs: dict[str, str], outputs: dict[str, str]) -> Pair:
    mesh = Mesh((("tp", len(ranks)),))
    graph = sequential.build()

    def placed(table: dict[str, str], where: dict[str, int]):
        return {n: place(graph.nodes[where[n]].type.shape, mesh, (text,)) for n, text in table.items()}

    program = RankProgram(
        tuple(rank.build() for rank in ranks), mesh, placed(inputs, graph.inputs), placed(outputs, graph.outputs)
    )
    return graph, program


def test_an_uneven_shard_that_is_padded_for_the_gather() -> None:
    sequential = Builder("sequential")
    sequential.output("y", sequential.add(ops.Tanh(), sequential.tensor("x", (4096, 512))))
    ranks = []
    for own in (1366, 1366, 1364):
        build = Builder("rank")
        x = build.add(ops.Tanh(), build.tensor("x", (own, 512)))
        zero = build.add(ops.Constant(build.type(x).with_shape(()), (0.0,)))
        padded = build.add(ops.Pad((0, 0), (1366 - own, 0), (0, 0)), x, zero)
        whole = build.add(ops.AllGather(0, ((0, 1, 2),)), padded)
        build.output("y", build.add(ops.Slice((0, 0), (4096, 512), (1, 1)), whole))
        ranks.append(build)
    twin = shrunk(both(sequential, ranks, {"x": "Shard(0)"}, {"y": "Replicate()"}))
    assert shapes(twin)["x"][1] == 5
    assert twin.program.inputs["x"].local_shape(0) > twin.program.inputs["x"].local_shape(2)
    assert twin.compare().agrees is True


def test_labels_that_are_shifted_by_one() -> None:
    """The last logits predict nothing, the first label is predicted by nothing."""
    sequential = Builder("sequential")

    def program(build: Builder, tokens: int) -> int:
        ids, table = build.tensor("input_ids", (tokens,), I64), build.tensor("table", (32000, 256))
        rows = build.take_rows(table, ids)
        first = build.add(ops.Slice((0, 0), (tokens - 1, 256), (1, 1)), rows)
        last = build.add(ops.Slice((1, 0), (tokens, 256), (1, 1)), rows)
        return build.reduce(build.add(ops.Multiply(), first, last), 0, 1)

    sequential.output("loss", program(sequential, 4000))
    ranks = []
    for _ in range(2):
        build = Builder("rank")
        loss = program(build, 4000)
        build.output("loss", loss)
        ranks.append(build)
    twin = shrunk(
        both(sequential, ranks, {"input_ids": "Replicate()", "table": "Replicate()"}, {"loss": "Replicate()"})
    )
    assert shapes(twin)["input_ids"] == (12,)
    assert twin.compare().agrees is True


def test_heads_against_tokens_by_all_to_all() -> None:
    """Ulysses: from a shard of the sequence with all heads to a shard of the heads with all tokens."""
    world, tokens, heads, size = 4, 8192, 32, 128

    sequential = Builder("sequential")
    x = sequential.tensor("x", (tokens, heads, size))
    total = sequential.reduce(sequential.add(ops.Tanh(), x), 0)
    sequential.output("y", total)
    ranks = []
    for _ in range(world):
        build = Builder("rank")
        x = build.add(ops.Tanh(), build.tensor("x", (tokens // world, heads, size)))
        moved = build.add(ops.AllToAll(1, 0, (tuple(range(world)),)), x)
        build.output("y", build.reduce(moved, 0))
        ranks.append(build)
    twin = shrunk(both(sequential, ranks, {"x": "Shard(0)"}, {"y": "Shard(0)"}))
    assert twin.compare().agrees is True


def test_positions_of_a_sequence_shard() -> None:
    """Each rank adds where its shard starts; the constants scale with the sequence."""
    world, tokens = 4, 8192

    def causal(build: Builder, own: int, start: int) -> None:
        scores = build.tensor("scores", (own, tokens))
        integer = TensorType((own, tokens), I64)
        row = build.add(ops.Iota(integer, 0))
        if start:
            row = build.add(ops.Add(), row, build.full(start, row))
        allowed = build.add(ops.Compare("GE"), row, build.add(ops.Iota(integer, 1)))
        build.output("y", build.add(ops.Select(), allowed, scores, build.full(0.0, scores)))

    sequential = Builder("sequential")
    causal(sequential, tokens, 0)
    ranks = [Builder("rank") for _ in range(world)]
    for rank, build in enumerate(ranks):
        causal(build, tokens // world, rank * tokens // world)
    pair = both(sequential, ranks, {"scores": "Shard(0)"}, {"y": "Shard(0)"})
    assert shrunk(pair).compare().agrees is True
    wrong = [m for m in generate(pair[1]) if m.kind == "shifted_bound"]
    assert wrong
    for mutant in wrong:
        assert shrunk((pair[0], mutant.program)).compare().agrees is False, mutant.description


def test_digits_of_positions_are_kept() -> None:
    """Every other block of rows: which one is a bit of the position, and a rank knows what it has."""
    world, tokens, block = 4, 8192, 2048

    sequential = Builder("sequential")
    x = sequential.tensor("x", (tokens, 4096))
    row = sequential.add(ops.Iota(TensorType((tokens, 4096), I64), 0))
    bit = sequential.add(ops.And(), row, sequential.full(block, row))
    is_even = sequential.add(ops.Compare("EQ"), bit, sequential.full(0, row))
    sequential.output("y", sequential.add(ops.Select(), is_even, x, sequential.full(0.0, x)))
    ranks = [Builder("rank") for _ in range(world)]
    for rank, build in enumerate(ranks):
        x = build.tensor("x", (block, 4096))
        build.output("y", build.add(ops.Multiply(), x, build.full(float(rank % 2 == 0), x)))
    twin = shrunk(both(sequential, ranks, {"x": "Shard(0)"}, {"y": "Shard(0)"}))
    assert shapes(twin)["x"][0] == tokens
    assert twin.compare().agrees is True


def test_fused_projections_of_unequal_width() -> None:
    """Queries, keys and values from one matrix: 32 heads and twice 8, of which each rank holds its part."""
    world, tokens, hidden, size = 4, 64, 2048, 64

    def program(build: Builder, heads: int, groups: int) -> None:
        x = build.tensor("x", (tokens, hidden))
        flat = build.matmul(x, build.tensor("w", (hidden, (heads + 2 * groups) * size)))
        ends = [0, heads * size, (heads + groups) * size, (heads + 2 * groups) * size]
        parts = []
        for low, high in pairwise(ends):
            part = build.add(ops.Slice((0, low), (tokens, high), (1, 1)), flat)
            parts.append(build.add(ops.Reshape((tokens, (high - low) // size, size)), part))
        for name, part in zip("qkv", parts, strict=True):
            build.output(name, part)

    sequential = Builder("sequential")
    program(sequential, 32, 8)
    ranks = [Builder("rank") for _ in range(world)]
    for build in ranks:
        program(build, 8, 2)
    graph, program_ = both(sequential, ranks, {"x": "Replicate()"}, dict.fromkeys("qkv", "Shard(1)"))
    runs = tuple((((0, hidden),), ((512 * r, 512), (2048 + 128 * r, 128), (2560 + 128 * r, 128))) for r in range(world))
    strided = replace(program_.inputs["x"], runs=runs, printed=("Shard(1)",))
    pair = graph, replace(program_, inputs={**program_.inputs, "w": strided})
    twin = shrunk(pair)
    assert twin.compare().agrees is True
    assert shapes(twin)["x"] == (5, 5)


def test_what_cannot_shrink_is_said() -> None:
    build = Builder("flat")
    x = build.tensor("x", (3000, 7000))
    build.output("y", build.add(ops.Reshape((2100, 10000)), x))
    pair = both(build, [build, build], {"x": "Replicate()"}, {"y": "Replicate()"})
    twin = make_twin(*pair, largest=1000)
    assert isinstance(twin, Unsupported)
    assert "shrinking them consistently leaves" in twin.why


@pytest.mark.parametrize("name", FULL_SIZE)
def test_expectations_are_given_at_captured_sizes(name: str) -> None:
    sequential, program = FULL_SIZE[name](4)
    twin = shrunk((sequential, replace(program, outputs={})))
    assert twin.compare(expect=program.outputs).agrees is True
    wrong = {
        output: place(sequential.nodes[p].type.shape, program.mesh, ("Partial(sum)",))
        for output, p in sequential.outputs.items()
    }
    assert twin.compare(expect=wrong).agrees is False


WINDOW = 512
Mask = Callable[[Any, Any], Any]


def _places() -> torch.Tensor:
    return torch.arange(4096, dtype=torch.float32)


def _totals() -> torch.Tensor:
    return torch.ones(4096).cumsum(0)


WINDOWS: dict[str, Mask] = {
    "a place": lambda i, j: j > i - WINDOW,
    "a distance": lambda i, j: j + (WINDOW - 1) >= i,
    "less than": lambda i, j: i - j < WINDOW,
    "floats": lambda i, j: i.float() - j.float() < float(WINDOW),
    "places as floats": lambda i, j: _places()[:, None] - _places() < float(WINDOW),
    "float sums of ones": lambda i, j: _totals()[:, None] - _totals() < float(WINDOW),
    "half a float": lambda i, j: (i - j).float() * 0.5 < WINDOW / 2,
}


def windowed(mask: Mask) -> Graph:
    def program(x: torch.Tensor) -> torch.Tensor:
        i, j = torch.arange(4096)[:, None], torch.arange(4096)[None]
        return torch.where(mask(i, j), x, 0.0).sum(-1)

    return rw.capture(program, (torch.empty(4096, 4096, device="meta"),))


def alone(graph: Graph) -> RankProgram:
    """A program of one rank that holds everything."""
    found = rw.ranks([graph], {"rank": 1})
    whole = {name: place(graph.nodes[p].type.shape, found.mesh, ("Replicate()",)) for name, p in graph.inputs.items()}
    made = {name: place(graph.nodes[p].type.shape, found.mesh, ("Replicate()",)) for name, p in graph.outputs.items()}
    return replace(found, inputs=whole, outputs=made)


@pytest.mark.parametrize("left", WINDOWS)
@pytest.mark.parametrize("right", WINDOWS)
def test_one_window_in_other_words_is_one_window_at_small_sizes_too(left: str, right: str) -> None:
    """Before, -512 and 512.0 kept their values where 511 became smaller, and equal programs were refuted."""
    twin = make_twin(windowed(WINDOWS[left]), alone(windowed(WINDOWS[right])), largest=1 << 16)

    if isinstance(twin, Unsupported):
        assert "too many to execute" in twin.why and ("float" in left or "float" in right)
    else:
        assert twin.compare(trials=1).agrees


@pytest.mark.parametrize("left", ["a place", "a distance", "less than"])
def test_another_window_is_another_one_at_small_sizes_too(left: str) -> None:
    other = windowed(lambda i, j: i - j < WINDOW - 1)
    twin = make_twin(windowed(WINDOWS[left]), alone(other), largest=1 << 16)

    assert not isinstance(twin, Unsupported) and twin.shrunk
    assert not twin.compare(trials=1).agrees
