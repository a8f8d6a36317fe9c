"""Programs whose ranks trade one axis for another: attention over all tokens of some heads, a mixer of tokens.

Every exchange is a pair of axes, what is cut and what is put together; the right ones are the defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from tests.programs import Builder, Pair


@dataclass(frozen=True)
class Exchange:
    """An all-to-all: the axis that is cut, and the axis along which what arrives is put together."""

    split: int
    concat: int

    def added(self, build: Builder, x: int, world: int) -> int:
        return build.add(ops.AllToAll(self.split, self.concat, (tuple(range(world)),), None, None), x)


def ulysses(
    world: int,
    there: Exchange | None = Exchange(1, 0),
    back: Exchange | None = Exchange(0, 1),
    *,
    tokens: int = 4,
    heads: int = 4,
    width: int = 4,
) -> Pair:
    """Attention with the tokens split over ranks; heads take their place in between, as in DeepSpeed's Ulysses.

    Without an exchange the elements stay where they are.
    """
    hidden = heads * width

    def program(build: Builder, own: int, ranks: int) -> Graph:
        x = build.tensor("x", (own, hidden))
        flat = [build.matmul(x, build.tensor(name, (hidden, hidden))) for name in ("query", "key", "value")]
        split = [build.add(ops.Reshape((own, heads, width)), y) for y in flat]
        if ranks > 1:
            split = [there.added(build, y, ranks) if there else y for y in split]
        query, key, value = split
        scores = build.add(ops.DotGeneral((1,), (1,), (2,), (2,)), query, key)
        weights = build.add(ops.Exponential(), scores)
        weights = build.add(ops.Divide(), weights, build.spread(build.reduce(weights, 2), weights, 0, 1))
        mixed = build.add(ops.Transpose((1, 0, 2)), build.add(ops.DotGeneral((0,), (1,), (2,), (0,)), weights, value))
        if ranks > 1 and back:
            mixed = back.added(build, mixed, ranks)
        rows = build.add(ops.Reshape((own, hidden)), mixed)
        build.output("y", build.add(ops.Add(), x, build.matmul(rows, build.tensor("out", (hidden, hidden)))))
        return build.build()

    shapes = dict.fromkeys(("query", "key", "value", "out"), (hidden, hidden))
    return _split_over_tokens(program, world, tokens, hidden, shapes)


def mixer(
    world: int,
    there: Exchange | None = Exchange(2, 0),
    back: Exchange | None = Exchange(0, 2),
    *,
    tokens: int = 4,
    batch: int = 2,
    width: int = 4,
) -> Pair:
    """``einsum("ts,sbw->tbw", mix, x)`` as torch lowers it, with the tokens split and the features in their place."""

    def program(build: Builder, own: int, ranks: int) -> Graph:
        x = build.tensor("x", (own, batch, width))
        here = there.added(build, x, ranks) if ranks > 1 and there else x
        length, _, features = (int(str(n)) for n in build.type(here).shape)
        mix = build.add(ops.Reshape((1, tokens, tokens)), build.tensor("mix", (tokens, tokens)))
        rows = build.add(ops.Reshape((1, length, batch * features)), here)
        mixed = build.add(ops.DotGeneral((0,), (0,), (2,), (1,)), mix, rows)
        apart = build.add(ops.Reshape((tokens, 1, batch, features)), mixed)
        last = build.add(ops.Reshape((tokens, batch, features)), build.add(ops.Transpose((0, 2, 3, 1)), apart))
        mine = back.added(build, last, ranks) if ranks > 1 and back else last
        build.output("y", build.add(ops.Tanh(), mine))
        return build.build()

    return _split_over_tokens(program, world, tokens, (batch, width), {"mix": (tokens, tokens)})


def _split_over_tokens(
    program: Callable[[Builder, int, int], Graph],
    world: int,
    tokens: int,
    row: int | tuple[int, ...],
    shapes: dict[str, tuple[int, ...]],
) -> Pair:
    mesh = Mesh.of({"sp": world})
    row = (row,) if isinstance(row, int) else row
    cut = place((tokens, *row), mesh, ["Shard(0)"])
    ranks = tuple(program(Builder("ranks"), tokens // world, world) for _ in range(world))
    inputs = {"x": cut} | {name: place(shape, mesh, ["Replicate()"]) for name, shape in shapes.items()}
    return program(Builder("sequential"), tokens, 1), RankProgram(ranks, mesh, inputs, {"y": cut})
