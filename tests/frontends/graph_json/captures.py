"""Captures in graph-json/1, written for tests: the operators that torch.compile's backends see, at tiny sizes.

The programs are of the kinds that the tests of other systems were captured from (Megatron-LM's GPT with tensor and
sequence parallelism, vLLM's Qwen2); none of their files is copied.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLOAT, LONG, BOOL = "float32", "int64", "bool"
Shape = list[Any]
Json = dict[str, Any]


@dataclass
class Capture:
    """One document as it grows; nodes are named by the operator and a number."""

    rank: int = 0
    nodes: list[Json] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    module: str = "model"

    def node(self, op: str, target: str, args: list[Any], kwargs: Json, shape: Shape | None, dtype: str | None) -> Json:
        stem = target.split(".")[1] if target.count(".") == 2 else target.strip("<>").split()[-1]
        count = self.counts[stem] = self.counts.get(stem, -1) + 1
        name = target if op == "placeholder" else f"{stem}_{count}" if count else stem
        self.nodes.append({
            "id": len(self.nodes), "name": name, "op": op, "target": name if op == "get_attr" else target,
            "args": args, "kwargs": kwargs, "shape": shape, "dtype": dtype, "stride": None, "users": 1,
            "loc": self.place(), "nn": f"L['{self.module}']",
        })  # fmt: skip
        return {"n": len(self.nodes) - 1}

    def place(self) -> str:
        return f"/src/{self.module.partition('[')[0]}.py:{len(self.nodes)}:forward"

    def input(self, name: str, shape: Shape, dtype: str = FLOAT) -> Json:
        return self.node("placeholder", name, [], {}, shape, dtype)

    def call(self, target: str, *args: Any, shape: Shape | None = None, dtype: str = FLOAT, **kwargs: Any) -> Json:
        return self.node("call_function", target, list(args), kwargs, shape, dtype if shape is not None else None)

    def part(self, source: Json, index: int, shape: Shape, dtype: str = FLOAT) -> Json:
        return self.call("<built-in function getitem>", source, index, shape=shape, dtype=dtype)

    def constant(self, dtype: str) -> Json:
        """A scalar whose value is not captured, as ``torch.tensor(0)`` in a model gives it."""
        stem = f"_tensor_constant{self.counts.get('_tensor_constant', 0)}"
        self.counts["_tensor_constant"] = self.counts.get("_tensor_constant", 0) + 1
        self.nodes.append({
            "id": len(self.nodes), "name": stem, "op": "get_attr", "target": stem, "args": [], "kwargs": {},
            "shape": None, "dtype": None, "loc": self.place(), "nn": f"L['{self.module}']",
        })  # fmt: skip
        return self.call("aten.lift_fresh_copy.default", {"n": len(self.nodes) - 1}, shape=[], dtype=dtype)

    def document(self, outputs: list[Json | None]) -> Json:
        inputs = [node["id"] for node in self.nodes if node["op"] == "placeholder"]
        return {
            "format": "graph-json/1", "rank": self.rank, "direction": "fw", "gid": 0, "inputs": inputs,
            "outputs": [outputs], "collectives": [], "symints": {"symbols": [], "nodes": []}, "nodes": self.nodes,
        }  # fmt: skip


@dataclass(frozen=True)
class Gpt:
    """Sizes of a GPT over ``degree`` ranks: sequence, batch, hidden, heads, vocabulary, layers."""

    degree: int = 1
    layers: int = 1
    sequence: int = 24
    batch: int = 2
    heads: int = 24
    size: int = 2
    vocabulary: int = 48
    broken: str = ""

    @property
    def hidden(self) -> int:
        return self.heads * self.size

    def documents(self) -> list[Json]:
        """One document a rank."""
        return [_GptRank(self, rank).build() for rank in range(self.degree)]

    def relations(self) -> dict[str, str]:
        """How the inputs are placed, and one relation of scratch memory that nothing reads."""
        found = {"word": "Shard(0)", "position": "Replicate()", "tokens": "Replicate()", "labels": "Replicate()",
                 "mask": "Replicate()", "empty": "Shard(0)"}  # fmt: skip
        for k in range(self.layers):
            found |= {f"{name}{k}": placement for name, placement in _PLACED.items()}
        return found


_PLACED = {
    "norm_weight": "Replicate()", "norm_bias": "Replicate()", "qkv": "Shard(0)", "qkv_bias": "Shard(0)",
    "proj": "Shard(1)", "proj_bias": "Replicate()", "fc1": "Shard(0)", "fc1_bias": "Shard(0)", "fc2": "Shard(1)",
}  # fmt: skip


class _GptRank:
    def __init__(self, sizes: Gpt, rank: int) -> None:
        self.z, self.rank = sizes, rank
        self.c = Capture(rank)
        self.saved: list[Json | None] = []

    def build(self) -> Json:
        z, c, t = self.z, self.c, self.z.degree
        s, n, h = z.sequence, z.batch, z.hidden
        word = c.input("word", [z.vocabulary // t, h])
        position = c.input("position", [s, h])
        weights = [self._weights(k) for k in range(z.layers)]
        tokens, labels = c.input("tokens", [n, s], LONG), c.input("labels", [n, s], LONG)
        mask = c.input("mask", [n, 1, s, s], BOOL)
        c.module = "embedding"
        x = c.call("aten.add.Tensor", self._embedded(word, tokens), position, shape=[n, s, h])
        x = c.call("aten.transpose.int", x, 0, 1, shape=[s, n, h])
        own = s // t
        if t > 1:
            x = c.call("aten.slice.Tensor", x, 0, self.rank * own, (self.rank + 1) * own, shape=[own, n, h])
        for k in range(z.layers):
            c.module = f"layers[{k}]"
            x = self._layer(x, weights[k], mask)
        c.module = "loss"
        logits = self._product(self._gathered(x), word, z.vocabulary // t)
        loss = self._loss(logits, c.call("aten.transpose.int", labels, 0, 1, shape=[s, n], dtype=LONG))
        return c.document([loss, loss, *self.saved])

    def _weights(self, k: int) -> dict[str, Json]:
        z, h = self.z, self.z.hidden
        wide, own = 4 * h // z.degree, h // z.degree
        shapes: dict[str, Shape] = {
            "norm_weight": [h], "norm_bias": [h], "qkv": [3 * own, h], "qkv_bias": [3 * own], "proj": [h, own],
            "proj_bias": [h], "fc1": [wide, h], "fc1_bias": [wide], "fc2": [h, wide],
        }  # fmt: skip
        return {name: self.c.input(f"{name}{k}", shape) for name, shape in shapes.items()}

    def _filled(self, x: Json, mask: Json, shape: Shape, dtype: str) -> Json:
        return self.c.call("aten.index_put.default", x, [mask], self.c.constant(dtype), shape=shape, dtype=dtype)

    def _outside(self, index: Json, shape: Shape) -> tuple[Json, Json]:
        """Which indices are of another rank's part of the vocabulary, and the indices into the own part."""
        c, part = self.c, self.z.vocabulary // self.z.degree
        low = c.call("aten.lt.Scalar", index, self.rank * part, shape=shape, dtype=BOOL)
        high = c.call("aten.ge.Scalar", index, (self.rank + 1) * part, shape=shape, dtype=BOOL)
        outside = c.call("aten.bitwise_or.Tensor", low, high, shape=shape, dtype=BOOL)
        local = c.call("aten.sub.Tensor", index, self.rank * part, shape=shape, dtype=LONG)
        return outside, self._filled(local, outside, shape, LONG)

    def _embedded(self, word: Json, tokens: Json) -> Json:
        z, c = self.z, self.c
        shape = [z.batch, z.sequence, z.hidden]
        if z.degree == 1:
            return c.call("aten.index.Tensor", word, [tokens], shape=shape)
        outside, local = self._outside(tokens, shape[:2])
        self.saved += [outside, local]
        rows = self._filled(c.call("aten.index.Tensor", word, [local], shape=shape), outside, shape, FLOAT)
        return self._reduced(rows, shape)

    def _reduced(self, x: Json, shape: Shape, kind: str = "sum") -> Json:
        if self.z.degree == 1 or self.z.broken == "all_reduce":
            return x
        moved = self.c.call("_c10d_functional.all_reduce.default", x, kind, "tp", shape=shape)
        return self.c.call("_c10d_functional.wait_tensor.default", moved, shape=shape)

    def _gathered(self, x: Json) -> Json:
        z, c = self.z, self.c
        shape = [z.sequence, z.batch, z.hidden]
        if z.degree == 1:
            return x
        return c.call("_c10d_functional.all_gather_into_tensor.default", x, z.degree, "tp", shape=shape)

    def _scattered(self, x: Json) -> Json:
        z, c = self.z, self.c
        if z.degree == 1:
            return x
        shape = [z.sequence // z.degree, z.batch, z.hidden]
        return c.call("_c10d_functional.reduce_scatter_tensor.default", x, "sum", z.degree, "tp", shape=shape)

    def _product(self, x: Json, weight: Json, width: int) -> Json:
        """``x @ weight.T`` for (sequence, batch, inner) and (width, inner)."""
        c, rows = self.c, self.z.sequence * self.z.batch
        inner = c.nodes[weight["n"]]["shape"][1]
        turned = c.call("aten.t.default", weight, shape=[inner, width])
        flat = c.call("aten.view.default", x, [rows, inner], shape=[rows, inner])
        product = c.call("aten.mm.default", flat, turned, shape=[rows, width])
        shape = [self.z.sequence, self.z.batch, width]
        return c.call("aten.view.default", product, shape, shape=shape)

    def _dropped(self, x: Json, shape: Shape) -> Json:
        drawn = self.c.call("aten.native_dropout.default", x, 0.1, True)
        self.saved.append(self.c.part(drawn, 1, shape, BOOL))
        return self.c.part(drawn, 0, shape)

    def _layer(self, x: Json, w: dict[str, Json], mask: Json) -> Json:
        z, c = self.z, self.c
        local = [z.sequence // z.degree, z.batch, z.hidden]
        epsilon = 1e-3 if z.broken == "epsilon" and z.degree > 1 else 1e-5
        norm = c.call(
            "apex.fused_layer_norm_affine_fwd.default", x, w["norm_weight"], w["norm_bias"], [z.hidden], epsilon
        )
        normed = c.part(norm, 0, local)
        self.saved += [normed, c.part(norm, 1, [local[0] * z.batch])]
        hidden = self._attention(self._gathered(normed), w, mask)
        x = c.call("aten.add.Tensor", x, self._dropped(hidden, local), shape=local)
        self.saved.append(x)
        wide = 4 * z.hidden // z.degree
        shape = [z.sequence, z.batch, wide]
        inner = c.call("aten.add.Tensor", self._product(self._gathered(x), w["fc1"], wide), w["fc1_bias"], shape=shape)
        inner = c.call("aten.gelu.default", inner, shape=shape)
        self.saved.append(inner)
        return c.call("aten.add.Tensor", x, self._scattered(self._product(inner, w["fc2"], z.hidden)), shape=local)

    def _attention(self, x: Json, w: dict[str, Json], mask: Json) -> Json:
        z, c = self.z, self.c
        s, n, heads, size = z.sequence, z.batch, z.heads // z.degree, z.size
        own = heads * size
        joint = c.call("aten.add.Tensor", self._product(x, w["qkv"], 3 * own), w["qkv_bias"], shape=[s, n, 3 * own])
        joint = c.call("aten.view.default", joint, [s, n, heads, 3 * size], shape=[s, n, heads, 3 * size])
        parts = c.call("aten.split_with_sizes.default", joint, [size] * 3, 3)
        query, key, value = (c.part(parts, k, [s, n, heads, size]) for k in range(3))
        flat, flipped = [n * heads, s, size], [n * heads, size, s]
        moved: list[Json] = []
        for part in (query, key, value):
            one = c.call("aten.view.default", part, [s, n * heads, -1], shape=[s, n * heads, size])
            moved.append(c.call("aten.transpose.int", one, 0, 1, shape=flat))
        scratch = c.call("aten.empty.memory_format", [n * heads, s, s], shape=[n * heads, s, s])
        turned = c.call("aten.transpose.int", moved[1], 1, 2, shape=flipped)
        self.saved += [moved[0], turned]
        scores = c.call(
            "aten.baddbmm.default", scratch, moved[0], turned, shape=[n * heads, s, s], beta=0.0, alpha=size**-0.5
        )
        shape = [n, heads, s, s]
        scores = c.call("aten.view.default", scores, shape, shape=shape)
        scores = c.call("aten.masked_fill.Scalar", scores, mask, -10000.0, shape=shape)
        scores = self._dropped(c.call("aten._softmax.default", scores, -1, False, shape=shape), shape)
        scores = c.call("aten.view.default", scores, [n * heads, s, s], shape=[n * heads, s, s])
        found = c.call("aten.bmm.default", scores, moved[2], shape=flat)
        found = c.call("aten.view.default", found, [n, heads, s, size], shape=[n, heads, s, size])
        found = c.call("aten.permute.default", found, [2, 0, 1, 3], shape=[s, n, heads, size])
        found = c.call("aten.view.default", found, [s, n, own], shape=[s, n, own])
        hidden = self._scattered(self._product(found, w["proj"], z.hidden))
        local = [s // z.degree, n, z.hidden]
        return c.call("aten.add.Tensor", hidden, w["proj_bias"], shape=local)

    def _loss(self, logits: Json, labels: Json) -> Json:
        z, c = self.z, self.c
        s, n, part = z.sequence, z.batch, z.vocabulary // z.degree
        largest = c.part(c.call("aten.max.dim", logits, -1), 0, [s, n])
        largest = c.call("aten.unsqueeze.default", self._reduced(largest, [s, n], "max"), -1, shape=[s, n, 1])
        shifted = c.call("aten.sub.Tensor", logits, largest, shape=[s, n, part])
        outside, local = self._outside(labels, [s, n])
        self.saved += [outside, local]
        rows = c.call("aten.arange.start", 0, s * n, shape=[s * n], dtype=LONG)
        table = c.call("aten.view.default", shifted, [-1, part], shape=[s * n, part])
        flat = c.call("aten.view.default", local, [-1], shape=[s * n], dtype=LONG)
        chosen = c.call("aten.index.Tensor", table, [rows, flat], shape=[s * n])
        chosen = self._filled(c.call("aten.view.default", chosen, [s, n], shape=[s, n]), outside, [s, n], FLOAT)
        raised = c.call("aten.exp.default", shifted, shape=[s, n, part])
        total = self._reduced(c.call("aten.sum.dim_IntList", raised, [-1], shape=[s, n]), [s, n])
        self.saved.append(raised)
        loss = c.call("aten.log.default", total, shape=[s, n])
        loss = c.call("aten.sub.Tensor", loss, self._reduced(chosen, [s, n]), shape=[s, n])
        return c.call("aten.mean.default", loss, shape=[])


def write(folder: Path, documents: list[Json]) -> Path:
    """One file a rank in a folder, as others publish them."""
    folder.mkdir(parents=True, exist_ok=True)
    for document in documents:
        contents = json.dumps(document, separators=(",", ":")).encode()
        (folder / f"r{document['rank']}.json.gz").write_bytes(gzip.compress(contents, mtime=0))
    return folder
