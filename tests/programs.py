"""Small sequential programs and their parallel versions, written by hand; shared by the tests.

Every function returns the sequential graph and the programs of all ranks with the placements of inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.placement import Mesh, Placement, RankProgram, place
from rewright.ir.types import DType, SourceSpan, TensorType

F32, I64, BOOL = DType.F32, DType.I64, DType.BOOL
Pair = tuple[Graph, RankProgram]


class Builder(GraphBuilder):
    """A graph builder with the few composites that the programs below need; every node gets its own source line."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.line = 0

    def add(self, op: Operator, *operands: int, span: SourceSpan | None = None) -> int:
        self.line += 1
        return super().add(op, *operands, span=span or SourceSpan(f"{self.name}.py", self.line, "forward"))

    def tensor(self, name: str, shape: tuple[int, ...], dtype: DType = F32) -> int:
        return self.input(name, ops.Input(name, TensorType(shape, dtype)))

    def full(self, value: float | int, like: int) -> int:
        return self.add(ops.Constant(self.type(like), (value,)))

    def matmul(self, x: int, weight: int) -> int:
        return self.add(ops.DotGeneral((), (), (self.type(x).rank - 1,), (0,)), x, weight)

    def spread(self, x: int, like: int, *dimensions: int) -> int:
        return self.add(ops.BroadcastInDim(self.type(like).shape, dimensions), x)

    def reduce(self, x: int, *dimensions: int, kind: str = "sum") -> int:
        return self.add(ops.Reduce(kind, dimensions), x)

    def all_reduce(self, x: int, world: int, kind: str = "sum") -> int:
        return self.add(ops.AllReduce(kind, (tuple(range(world)),)), x)

    def take_rows(self, table: int, rows: int) -> int:
        """Rows of a matrix by a vector of indices, as StableHLO's gather."""
        width = self.type(table).shape[1]
        return self.add(ops.Gather((1,), (0,), (), (), (0,), 1, (1, width)), table, rows)


def mlp(world: int, batch: int = 3, hidden: int = 4, inner: int = 8) -> Pair:
    """A column-parallel and a row-parallel linear layer, bias and residual."""

    def program(build: Builder, width: int, parallel: bool) -> None:
        x = build.tensor("x", (batch, hidden))
        up = build.tensor("up.weight", (hidden, width))
        up_bias = build.tensor("up.bias", (width,))
        down = build.tensor("down.weight", (width, hidden))
        down_bias = build.tensor("down.bias", (hidden,))
        wide = build.matmul(x, up)
        wide = build.add(ops.Add(), wide, build.spread(up_bias, wide, 1))
        y = build.matmul(build.add(ops.Tanh(), wide), down)
        if parallel:
            y = build.all_reduce(y, world)
        y = build.add(ops.Add(), y, build.spread(down_bias, y, 1))
        build.output("output", build.add(ops.Add(), x, y))

    shapes = {
        "x": ((batch, hidden), "Replicate()"),
        "up.weight": ((hidden, inner), "Shard(1)"),
        "up.bias": ((inner,), "Shard(0)"),
        "down.weight": ((inner, hidden), "Shard(0)"),
        "down.bias": ((hidden,), "Replicate()"),
    }
    outputs = {"output": ((batch, hidden), "Replicate()")}
    return _pair(
        lambda b: program(b, inner, False), lambda b, rank: program(b, inner // world, True), world, shapes, outputs
    )


def attention(world: int, tokens: int = 4, heads: int = 4, head_size: int = 3, hidden: int = 6) -> Pair:
    """Causal self-attention whose heads are split over the ranks."""

    def program(build: Builder, own: int, parallel: bool) -> None:
        x = build.tensor("x", (tokens, hidden))
        split: list[int] = []
        for name in ("q", "k", "v"):
            flat = build.matmul(x, build.tensor(f"{name}.weight", (hidden, own * head_size)))
            cut = build.add(ops.Reshape((tokens, own, head_size)), flat)
            split.append(build.add(ops.Transpose((1, 0, 2)), cut))
        scores = build.add(ops.DotGeneral((0,), (0,), (2,), (2,)), split[0], split[1])
        scores = build.add(ops.Multiply(), scores, build.full(head_size**-0.5, scores))
        where = TensorType((own, tokens, tokens), I64)
        later = build.add(ops.Compare("GE"), build.add(ops.Iota(where, 1)), build.add(ops.Iota(where, 2)))
        scores = build.add(ops.Select(), later, scores, build.full(-1e9, scores))
        top = build.spread(build.reduce(scores, 2, kind="maximum"), scores, 0, 1)
        weights = build.add(ops.Exponential(), build.add(ops.Subtract(), scores, top))
        weights = build.add(ops.Divide(), weights, build.spread(build.reduce(weights, 2), weights, 0, 1))
        mixed = build.add(ops.DotGeneral((0,), (0,), (2,), (1,)), weights, split[2])
        flat = build.add(ops.Reshape((tokens, own * head_size)), build.add(ops.Transpose((1, 0, 2)), mixed))
        y = build.matmul(flat, build.tensor("o.weight", (own * head_size, hidden)))
        if parallel:
            y = build.all_reduce(y, world)
        build.output("output", build.add(ops.Add(), x, y))

    wide = heads * head_size
    shapes = {"x": ((tokens, hidden), "Replicate()"), "o.weight": ((wide, hidden), "Shard(0)")}
    shapes |= {f"{name}.weight": ((hidden, wide), "Shard(1)") for name in ("q", "k", "v")}
    outputs = {"output": ((tokens, hidden), "Replicate()")}
    return _pair(
        lambda b: program(b, heads, False), lambda b, rank: program(b, heads // world, True), world, shapes, outputs
    )


def vocabulary_embedding(world: int, tokens: int = 5, vocabulary: int = 12, hidden: int = 3, batches: int = 1) -> Pair:
    """A table of token embeddings whose rows are split over the ranks, as Megatron does it, batch by batch."""
    rows, length = vocabulary // world, tokens // batches
    names = ["output", *(f"output.{batch}" for batch in range(1, batches))]

    def parts(build: Builder, ids: int) -> list[int]:
        cuts = ((start, start + length) for start in range(0, tokens, length))
        return [build.add(ops.Slice((a,), (b,), (1,)), ids) for a, b in cuts] if batches > 1 else [ids]

    def sequential(build: Builder) -> None:
        ids = build.tensor("input_ids", (tokens,), I64)
        table = build.tensor("embedding.weight", (vocabulary, hidden))
        for name, part in zip(names, parts(build, ids), strict=True):
            build.output(name, build.take_rows(table, part))

    def of_rank(build: Builder, rank: int) -> None:
        ids = build.tensor("input_ids", (tokens,), I64)
        table = build.tensor("embedding.weight", (rows, hidden))
        for name, part in zip(names, parts(build, ids), strict=True):
            foreign, own = _own_rows(build, part, rank * rows, rows)
            taken = build.take_rows(table, own)
            taken = build.add(ops.Select(), build.spread(foreign, taken, 0), build.full(0.0, taken), taken)
            build.output(name, build.all_reduce(taken, world))

    shapes = {
        "input_ids": ((tokens,), "Replicate()"),
        "embedding.weight": ((vocabulary, hidden), "Shard(0)"),
    }
    return _pair(sequential, of_rank, world, shapes, dict.fromkeys(names, ((length, hidden), "Replicate()")))


def cross_entropy(world: int, tokens: int = 5, vocabulary: int = 12, hidden: int = 3) -> Pair:
    """Mean cross-entropy of a linear head whose vocabulary is split over the ranks."""
    columns = vocabulary // world

    def mean(build: Builder, losses: int) -> int:
        total = build.reduce(losses, 0)
        return build.add(ops.Divide(), total, build.full(float(tokens), total))

    def picked(build: Builder, shifted: int, labels: int) -> int:
        """The entry of each row that the label names."""
        return build.add(ops.Gather((), (1,), (0,), (0,), (1,), 1, (1, 1)), shifted, labels)

    def head(build: Builder, width: int) -> tuple[int, int]:
        x, labels = build.tensor("x", (tokens, hidden)), build.tensor("labels", (tokens,), I64)
        return build.matmul(x, build.tensor("head.weight", (hidden, width))), labels

    def sequential(build: Builder) -> None:
        logits, labels = head(build, vocabulary)
        shifted = build.add(ops.Subtract(), logits, build.spread(build.reduce(logits, 1, kind="maximum"), logits, 0))
        total = build.add(ops.Log(), build.reduce(build.add(ops.Exponential(), shifted), 1))
        build.output("loss", mean(build, build.add(ops.Subtract(), total, picked(build, shifted, labels))))

    def of_rank(build: Builder, rank: int) -> None:
        logits, labels = head(build, columns)
        top = build.all_reduce(build.reduce(logits, 1, kind="maximum"), world, "maximum")
        shifted = build.add(ops.Subtract(), logits, build.spread(top, logits, 0))
        total = build.all_reduce(build.reduce(build.add(ops.Exponential(), shifted), 1), world)
        foreign, own = _own_rows(build, labels, rank * columns, columns)
        target = picked(build, shifted, own)
        target = build.all_reduce(build.add(ops.Select(), foreign, build.full(0.0, target), target), world)
        build.output("loss", mean(build, build.add(ops.Subtract(), build.add(ops.Log(), total), target)))

    shapes = {
        "x": ((tokens, hidden), "Replicate()"),
        "labels": ((tokens,), "Replicate()"),
        "head.weight": ((hidden, vocabulary), "Shard(1)"),
    }
    return _pair(sequential, of_rank, world, shapes, {"loss": ((), "Replicate()")})


def sequence_parallel_norm(world: int, tokens: int = 8, hidden: int = 4, inner: int = 8) -> Pair:
    """A root-mean-square norm on a sequence shard, gathered for a parallel MLP, and the gradient of its weight."""

    def program(build: Builder, own: int, width: int, parallel: bool) -> None:
        everyone = (tuple(range(world)),)
        x, gradient = build.tensor("x", (own, hidden)), build.tensor("upstream", (own, hidden))
        weight = build.tensor("norm.weight", (hidden,))
        total = build.reduce(build.add(ops.Multiply(), x, x), 1)
        square = build.add(ops.Divide(), total, build.full(float(hidden), total))
        scale = build.add(ops.Rsqrt(), build.add(ops.Add(), square, build.full(1e-5, square)))
        normal = build.add(ops.Multiply(), x, build.spread(scale, x, 0))
        y = build.add(ops.Multiply(), normal, build.spread(weight, normal, 1))
        if parallel:
            y = build.add(ops.AllGather(0, everyone), y)
        y = build.add(ops.Tanh(), build.matmul(y, build.tensor("up.weight", (hidden, width))))
        y = build.matmul(y, build.tensor("down.weight", (width, hidden)))
        if parallel:
            y = build.add(ops.ReduceScatter("sum", 0, everyone), y)
        build.output("output", build.add(ops.Add(), x, y))
        of_weight = build.reduce(build.add(ops.Multiply(), gradient, normal), 0)
        build.output("grad:norm.weight", build.all_reduce(of_weight, world) if parallel else of_weight)

    shapes = {
        "x": ((tokens, hidden), "Shard(0)"),
        "upstream": ((tokens, hidden), "Shard(0)"),
        "norm.weight": ((hidden,), "Replicate()"),
        "up.weight": ((hidden, inner), "Shard(1)"),
        "down.weight": ((inner, hidden), "Shard(0)"),
    }
    outputs = {"output": ((tokens, hidden), "Shard(0)"), "grad:norm.weight": ((hidden,), "Replicate()")}
    return _pair(
        lambda b: program(b, tokens, inner, False),
        lambda b, rank: program(b, tokens // world, inner // world, True),
        world,
        shapes,
        outputs,
    )


def exchanged(is_reversed: bool) -> Pair:
    """Rows traded for columns between two ranks, and a sum over whole columns; the parts may be sent in reverse."""

    def whole() -> Graph:
        build = Builder("sequential")
        x = build.tensor("x", (4, 6))
        total = build.add(ops.Reduce("sum", (0,)), build.add(ops.Tanh(), x))
        build.output("total", total)
        return build.build()

    def of_rank() -> Graph:
        build = Builder("parallel")
        x = build.tensor("x", (2, 6))
        chunks = [build.add(ops.Slice((0, start), (2, start + 3), (1, 1)), x) for start in (0, 3)]
        stacked = build.add(ops.Concatenate(0), *(chunks[::-1] if is_reversed else chunks))
        received = build.add(ops.AllToAll(0, 0, ((0, 1),), None, None), stacked)
        build.output("total", build.add(ops.Reduce("sum", (0,)), build.add(ops.Tanh(), received)))
        return build.build()

    mesh = Mesh.of({"sp": 2})
    inputs, outputs = {"x": place((4, 6), mesh, ["Shard(0)"])}, {"total": place((6,), mesh, ["Shard(0)"])}
    return whole(), RankProgram((of_rank(), of_rank()), mesh, inputs, outputs)


ALL: dict[str, Callable[[int], Pair]] = {
    "mlp": mlp,
    "attention": attention,
    "vocabulary_embedding": vocabulary_embedding,
    "cross_entropy": cross_entropy,
    "sequence_parallel_norm": sequence_parallel_norm,
}
"""Every program above by name, each a function of the number of ranks (2 and 4 divide all sizes)."""


def _own_rows(build: Builder, ids: int, start: int, rows: int) -> tuple[int, int]:
    """Which ids belong to other ranks, and the local row of each (0 for foreign ones)."""
    below = build.add(ops.Compare("LT"), ids, build.full(start, ids))
    above = build.add(ops.Compare("GE"), ids, build.full(start + rows, ids))
    foreign = build.add(ops.Or(), below, above)
    local = build.add(ops.Subtract(), ids, build.full(start, ids))
    return foreign, build.add(ops.Select(), foreign, build.full(0, ids), local)


def _pair(
    sequential: Callable[[Builder], None],
    of_rank: Callable[[Builder, int], None],
    world: int,
    inputs: dict[str, tuple[tuple[int, ...], str]],
    outputs: dict[str, tuple[tuple[int, ...], str]],
) -> Pair:
    mesh = Mesh((("tp", world),))
    whole = Builder("sequential")
    sequential(whole)
    graphs: list[Graph] = []
    for rank in range(world):
        build = Builder("parallel")
        of_rank(build, rank)
        graphs.append(build.build())

    def placed(table: dict[str, tuple[tuple[int, ...], str]]) -> dict[str, Placement]:
        return {name: place(shape, mesh, (text,)) for name, (shape, text) in table.items()}

    return whole.build(), RankProgram(tuple(graphs), mesh, placed(inputs), placed(outputs))
