"""Seconds to build, check, write and read large graphs: ``make bench-ir``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TypeVar

from bench.tables import print_table
from rewright import ops
from rewright.ir.digest import digest
from rewright.ir.graph import Graph, GraphBuilder, validate
from rewright.ir.json_form import from_json, to_json
from rewright.ir.text import print_graph
from rewright.ir.types import DType, SourceSpan, TensorType
from rewright.ops.files import parse

SIZES = (3_000, 30_000, 300_000)
Result = TypeVar("Result")


def layers(nodes: int) -> Graph:
    """A chain of linear layers with bias and activation, of about so many nodes."""
    builder = GraphBuilder("chain")
    matrix, vector = TensorType((64, 64), DType.F32), TensorType((64,), DType.F32)
    x = builder.input("x", ops.Input("x", matrix))
    for layer in range(nodes // 6):
        builder.span = SourceSpan("model.py", layer % 100 + 1, "forward", f"layers.{layer}")
        weight = builder.input(f"layers.{layer}.weight", ops.Input(f"layers.{layer}.weight", matrix))
        bias = builder.input(f"layers.{layer}.bias", ops.Input(f"layers.{layer}.bias", vector))
        product = builder.add(ops.DotGeneral((), (), (1,), (1,)), x, weight)
        spread = builder.add(ops.BroadcastInDim((64, 64), (1,)), bias)
        x = builder.add(ops.Tanh(), builder.add(ops.Add(), product, spread))
    builder.output("y", x)
    return builder.build()


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds, and what the work returned."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(nodes: int) -> list[object]:
    """One row of the table."""
    build, graph = timed(lambda: layers(nodes))
    check, _ = timed(lambda: validate(graph))
    write_text, text = timed(lambda: print_graph(graph))
    read_text, _ = timed(lambda: parse(text))
    write_json, data = timed(lambda: json.dumps(to_json(graph)))
    read_json, _ = timed(lambda: from_json(json.loads(data), ops.REGISTRY))
    hashed, _ = timed(lambda: digest(graph))
    return [f"{len(graph):,}", build, check, write_text, read_text, write_json, read_json, hashed]


if __name__ == "__main__":
    header = ["nodes", "build", "validate", "write text", "read text", "write JSON", "read JSON", "hash"]
    print_table(header, (measure(nodes) for nodes in SIZES))
