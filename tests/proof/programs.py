"""Small programs for certificates: layers that repeat, messages, addends, sorted rows, symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewright import ops
from rewright.ir.dims import Dim, symbol
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from tests.programs import ALL, Builder, Pair, exchanged

F32 = DType.F32
WORLD = 2
GROUP = (tuple(range(WORLD)),)


def deep(layers: int = 4, hidden: int = 3, inner: int = 4) -> Pair:
    """Layers of one kind: the first ones are proved, the others repeat them."""

    def program(width: int, parallel: bool) -> Graph:
        build = Builder("deep")
        x = build.tensor("x", (2, hidden))
        for layer in range(layers):
            up = build.tensor(f"{layer}.up", (hidden, width))
            down = build.tensor(f"{layer}.down", (width, hidden))
            y = build.matmul(build.add(ops.Tanh(), build.matmul(x, up)), down)
            x = build.add(ops.Add(), x, build.all_reduce(y, WORLD) if parallel else y)
        build.output("output", x)
        return build.build()

    mesh = Mesh.of({"tp": WORLD})
    inputs = {"x": place((2, hidden), mesh, ["Replicate()"])}
    for layer in range(layers):
        inputs[f"{layer}.up"] = place((hidden, inner), mesh, ["Shard(1)"])
        inputs[f"{layer}.down"] = place((inner, hidden), mesh, ["Shard(0)"])
    outputs = {"output": place((2, hidden), mesh, ["Replicate()"])}
    graphs = tuple(program(inner // WORLD, True) for _ in range(WORLD))
    return program(inner, False), RankProgram(graphs, mesh, inputs, outputs)


def addends() -> Pair:
    """An input of which ranks hold addends and an output of which they do."""
    sequential = Builder("sequential")
    x, w = sequential.tensor("x", (2, 4)), sequential.tensor("w", (4, 4))
    sequential.output("y", sequential.matmul(x, w))
    sequential.output("z", sequential.matmul(x, w))

    def of_rank() -> Graph:
        build = Builder("parallel")
        x, w = build.tensor("x", (2, 4)), build.tensor("w", (4, 4))
        build.output("y", build.matmul(x, w))
        build.output("z", build.add(ops.ReduceScatter("sum", 1, GROUP), build.matmul(x, w)))
        return build.build()

    mesh = Mesh.of({"tp": WORLD})
    inputs = {"x": place((2, 4), mesh, ["Partial(sum)"]), "w": place((4, 4), mesh, ["Replicate()"])}
    outputs = {"y": place((2, 4), mesh, ["Partial(sum)"]), "z": place((2, 4), mesh, ["Shard(1)"])}
    return sequential.build(), RankProgram((of_rank(), of_rank()), mesh, inputs, outputs)


def messages() -> Pair:
    """Two stages of a pipeline, the result broadcast, and what was shifted around and back."""
    sequential = Builder("sequential")
    x = sequential.tensor("x", (2, 3))
    y = sequential.add(ops.Sine(), sequential.add(ops.Tanh(), x))
    sequential.output("y", y)
    sequential.output("z", sequential.add(ops.Tanh(), x))

    def first() -> Graph:
        build = Builder("first")
        h = build.add(ops.Tanh(), build.tensor("x", (2, 3)))
        build.add(ops.Send(1, 7), h)
        build.output("y", build.add(ops.CollectiveBroadcast(1, GROUP), h))
        around = build.add(ops.CollectivePermute(((0, 1), (1, 0))), h)
        build.output("z", build.add(ops.CollectivePermute(((0, 1), (1, 0))), around))
        return build.build()

    def second() -> Graph:
        build = Builder("second")
        x = build.tensor("x", (2, 3))
        h = build.add(ops.Recv(0, 7, TensorType((2, 3), F32)))
        build.output("y", build.add(ops.CollectiveBroadcast(1, GROUP), build.add(ops.Sine(), h)))
        around = build.add(ops.CollectivePermute(((0, 1), (1, 0))), build.add(ops.Tanh(), x))
        build.output("z", build.add(ops.CollectivePermute(((0, 1), (1, 0))), around))
        return build.build()

    mesh = Mesh.of({"pp": WORLD})
    everywhere = {name: place((2, 3), mesh, ["Replicate()"]) for name in ("x", "y", "z")}
    outputs = {name: everywhere[name] for name in ("y", "z")}
    return sequential.build(), RankProgram((first(), second()), mesh, {"x": everywhere["x"]}, outputs)


def sorted_rows() -> Pair:
    """Rows that are sorted where they are, and joined afterwards."""

    def program(rows: int, parallel: bool) -> Graph:
        build = Builder("sorted")
        y = build.add(ops.Sort(1, True, "values"), build.tensor("x", (rows, 2)))
        build.output("y", build.add(ops.AllGather(0, GROUP), y) if parallel else y)
        return build.build()

    mesh = Mesh.of({"dp": WORLD})
    inputs, outputs = {"x": place((4, 2), mesh, ["Shard(0)"])}, {"y": place((4, 2), mesh, ["Replicate()"])}
    return program(4, False), RankProgram((program(2, True), program(2, True)), mesh, inputs, outputs)


def any_batch() -> Pair:
    """A batch of any size, split over the ranks, and its mean."""
    batch = symbol("batch")

    def program(rows: Dim, parallel: bool) -> Graph:
        build = Builder("batch")
        x = build.input("x", ops.Input("x", TensorType((rows, 3), F32)))
        y = build.matmul(build.add(ops.Tanh(), x), build.tensor("w", (3, 2)))
        total = build.reduce(y, 0)
        build.output("y", y)
        build.output("total", build.all_reduce(total, WORLD) if parallel else total)
        return build.build()

    mesh = Mesh.of({"dp": WORLD})
    inputs = {"x": place((2 * batch, 3), mesh, ["Shard(0)"]), "w": place((3, 2), mesh, ["Replicate()"])}
    outputs = {"y": place((2 * batch, 2), mesh, ["Shard(0)"]), "total": place((2,), mesh, ["Replicate()"])}
    return program(2 * batch, False), RankProgram((program(batch, True), program(batch, True)), mesh, inputs, outputs)


def traded() -> Pair:
    """Rows traded for columns."""
    return exchanged(False)


def two_axes() -> Pair:
    """A mesh of two axes: rows over one, columns of the weight over the other."""
    sequential = Builder("sequential")
    sequential.output("y", sequential.matmul(sequential.tensor("x", (4, 3)), sequential.tensor("w", (3, 4))))
    build = Builder("parallel")
    build.output("y", build.matmul(build.tensor("x", (2, 3)), build.tensor("w", (3, 2))))
    mesh = Mesh.of({"dp": 2, "tp": 2})
    inputs = {
        "x": place((4, 3), mesh, ["Shard(0)", "Replicate()"]),
        "w": place((3, 4), mesh, ["Replicate()", "Shard(1)"]),
    }
    outputs = {"y": place((4, 4), mesh, ["Shard(0)", "Shard(1)"])}
    return sequential.build(), RankProgram((build.build(),) * 4, mesh, inputs, outputs)


def rows_of_maxima() -> Pair:
    """Every rank takes maxima of its columns as a row of its own; the rows are gathered and read as one vector."""
    sequential = Builder("sequential")
    sequential.output("y", sequential.add(ops.Reduce("maximum", (0,)), sequential.tensor("x", (6, 8))))
    build = Builder("parallel")
    own = build.add(ops.Reduce("maximum", (0,)), build.tensor("x", (6, 4)))
    rows = build.add(ops.AllGather(0, GROUP), build.add(ops.Reshape((1, 4)), own))
    build.output("y", build.add(ops.Reshape((8,)), rows))
    mesh = Mesh.of({"tp": WORLD})
    inputs, outputs = {"x": place((6, 8), mesh, ["Shard(1)"])}, {"y": place((8,), mesh, ["Replicate()"])}
    return sequential.build(), RankProgram((build.build(), build.build()), mesh, inputs, outputs)


def turned_pairs() -> Pair:
    """Neighbours of a row turned against each other and put back in between each other; a rank has whole pairs."""

    def program(width: int) -> Graph:
        build = Builder("pairs")
        x, zero = build.tensor("x", (3, width)), build.add(ops.Constant(TensorType((), F32), (0.0,)))
        odd = build.add(ops.Slice((0, 1), (3, width), (1, 2)), x)
        even = build.add(ops.Slice((0, 0), (3, width), (1, 2)), x)
        first = build.add(ops.Pad((0, 0), (0, 1), (0, 1)), build.add(ops.Negate(), odd), zero)
        second = build.add(ops.Pad((0, 1), (0, 0), (0, 1)), even, zero)
        build.output("y", build.add(ops.Tanh(), build.add(ops.Add(), first, second)))
        return build.build()

    mesh = Mesh.of({"tp": WORLD})
    inputs, outputs = ({name: place((3, 8), mesh, ["Shard(1)"])} for name in "xy")
    return program(8), RankProgram(tuple(program(4) for _ in range(WORLD)), mesh, inputs, outputs)


def chosen_weights(positions: int = 5) -> Pair:
    """The weights of the largest scores of a row: by position without a look-up, and as the ranks look them up.

    With fewer positions than scores, those of the others are zero in the model.
    """

    def program(rows: int, looked_up: bool) -> Graph:
        build = Builder("chosen")
        scores, weights = build.tensor("scores", (rows, 5)), build.tensor("weights", (5,))
        places = build.add(ops.TopK(2, "indices"), scores)
        if looked_up:
            build.output("y", build.add(ops.Gather((), (0,), (), (), (0,), 2, (1,)), weights, places))
            return build.build()
        shape = (rows, 2, positions)
        wide = build.add(ops.BroadcastInDim(shape, (0, 1)), places)
        here = build.add(ops.Compare("EQ"), wide, build.add(ops.Iota(TensorType(shape, DType.I64), 2)))
        own = build.add(ops.BroadcastInDim(shape, (2,)), build.add(ops.Slice((0,), (positions,), (1,)), weights))
        zero = build.full(0.0, own)
        build.output("y", build.reduce(build.add(ops.Select(), here, own, zero), 2))
        return build.build()

    mesh = Mesh.of({"dp": WORLD})
    inputs = {"scores": place((4, 5), mesh, ["Shard(0)"]), "weights": place((5,), mesh, ["Replicate()"])}
    outputs = {"y": place((4, 2), mesh, ["Shard(0)"])}
    return program(4, False), RankProgram(tuple(program(2, True) for _ in range(WORLD)), mesh, inputs, outputs)


def routed_by_table(experts: int = 3) -> Pair:
    """Gates of experts that a table has for every token: in the model by a product with ones and zeros.

    What the model looks up says that tokens have a row in the table, and, as a token may be counted from the end, only
    with that that what is in the table is the number of an expert. With fewer ``experts`` the model leaves some out.
    """

    def program(rows: int, looked_up: bool) -> Graph:
        build = Builder("table")
        tokens = build.input("tokens", ops.Input("tokens", TensorType((rows,), DType.I64)))
        table = build.input("table", ops.Input("table", TensorType((6, 2), DType.I64)))
        gates = build.tensor("gates", (rows, 3))
        one = build.add(ops.BroadcastInDim((rows, 1), (0,)), tokens)
        embedded = ops.Gather((1,), (0,), (), (), (0,), 1, (1, 2))
        build.output("x", build.add(embedded, build.tensor("embedding", (6, 2)), one))
        counted = build.add(ops.Add(), tokens, build.full(6, tokens))
        is_below = build.add(ops.Compare("LT"), tokens, build.full(0, tokens))
        row = build.add(ops.Select(), is_below, counted, tokens)
        chosen = build.add(embedded, table, build.add(ops.BroadcastInDim((rows, 1), (0,)), row))
        own = ops.Gather((), (1,), (0,), (0,), (1,), 2, (1, 1))
        looked = build.add(own, gates, build.add(ops.BroadcastInDim((rows, 2, 1), (0, 1)), chosen))
        build.output("gates of experts", looked)
        if looked_up:
            build.output("y", looked)
            return build.build()
        shape = (rows, 2, experts)
        wide = build.add(ops.BroadcastInDim(shape, (0, 1)), chosen)
        here = build.add(ops.Compare("EQ"), wide, build.add(ops.Iota(TensorType(shape, DType.I64), 2)))
        first = build.add(ops.Slice((0, 0), (rows, experts), (1, 1)), gates)
        product = build.add(
            ops.Multiply(), build.add(ops.Convert(F32), here), build.add(ops.BroadcastInDim(shape, (0, 2)), first)
        )
        build.output("y", build.reduce(product, 2))
        return build.build()

    mesh = Mesh.of({"dp": WORLD})
    sizes = {"tokens": (4,), "gates": (4, 3), "table": (6, 2), "embedding": (6, 2)}
    cut = {"tokens", "gates"}
    inputs = {n: place(size, mesh, ["Shard(0)" if n in cut else "Replicate()"]) for n, size in sizes.items()}
    outputs = {name: place((4, 2), mesh, ["Shard(0)"]) for name in ("x", "gates of experts", "y")}
    return program(4, False), RankProgram(tuple(program(2, True) for _ in range(WORLD)), mesh, inputs, outputs)


PROGRAMS: dict[str, Callable[[], Pair]] = {
    **{name: (lambda make=make: make(WORLD)) for name, make in ALL.items()},
    "deep": deep,
    "rows_of_maxima": rows_of_maxima,
    "addends": addends,
    "messages": messages,
    "sorted_rows": sorted_rows,
    "any_batch": any_batch,
    "traded": traded,
    "two_axes": two_axes,
    "turned_pairs": turned_pairs,
    "chosen_weights": chosen_weights,
    "routed_by_table": routed_by_table,
}
"""Every program here and of ``tests.programs``, by name."""


def unplaced(pair: Pair) -> Pair:
    """The same programs, of whose inputs and outputs the capture knows nothing."""
    return pair[0], replace(pair[1], inputs={}, outputs={})
