"""A stack of residual feed-forward layers over two ranks, with faults that are asked for."""

from __future__ import annotations

from collections.abc import Collection

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import SourceSpan
from tests.programs import Builder, Pair

WIDTH, INNER, TOKENS = 4, 8, 3


class Stacked(Builder):
    """Every operator of a layer has the line that it has in all layers, and its layer's module path."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.module = ""

    def add(self, op: ops.Operator, *operands: int, span: SourceSpan | None = None) -> int:
        span = span or SourceSpan(f"{self.name}.py", self.line + 1, "forward", self.module)
        return super().add(op, *operands, span=span)


def stack(layers: int, dropped: Collection[int] = (), scaled: Collection[int] = (), reversed_: int = -1) -> Pair:
    """Layers without their all-reduce, with a constant that is too large, and one with a difference turned round."""
    names = {"x": ((TOKENS, WIDTH), "Replicate()")}
    for layer in range(layers):
        names[f"layers.{layer}.up"] = ((WIDTH, INNER), "Shard(1)")
        names[f"layers.{layer}.down"] = ((INNER, WIDTH), "Shard(0)")

    def program(parts: int) -> Graph:
        own = INNER // parts
        build = Stacked("parallel" if parts > 1 else "sequential")
        x = build.tensor("x", (TOKENS, WIDTH))
        weights = [
            (build.tensor(f"layers.{k}.up", (WIDTH, own)), build.tensor(f"layers.{k}.down", (own, WIDTH)))
            for k in range(layers)
        ]
        for layer, (up, down) in enumerate(weights):
            build.module, build.line = f"layers.{layer}", 100
            y = build.matmul(build.add(ops.Tanh(), build.matmul(x, up)), down)
            build.line = 110
            if parts > 1 and layer not in dropped:
                y = build.all_reduce(y, parts)
            build.line = 120
            factor = 3.0 if parts > 1 and layer in scaled else 0.5
            y = build.add(ops.Multiply(), y, build.full(factor, y))
            order = (y, x) if parts > 1 and layer == reversed_ else (x, y)
            x = build.add(ops.Tanh(), build.add(ops.Subtract(), *order))
        build.output("output", x)
        return build.build()

    mesh = Mesh.of({"tp": 2})
    inputs = {name: place(shape, mesh, [text]) for name, (shape, text) in names.items()}
    outputs = {"output": place((TOKENS, WIDTH), mesh, ["Replicate()"])}
    return program(1), RankProgram((program(2), program(2)), mesh, inputs, outputs)
