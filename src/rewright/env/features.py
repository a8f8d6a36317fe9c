"""A module with its alternatives as arrays: a superset of HloEnv's features.

Nodes are the instructions of all computations, then one node for each slot of alternatives, which stands on the uses
that it concerns. Operand order and multiplicity are kept: an edge for each operand, numbered. Sizes are in elements and
in bytes. Rows of the compressed form (``offsets``) are nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewright.env.alternatives import ROOT, AlternativeGraph
from rewright.env.words import ordered_words
from rewright.frontends.hlo.module import Instruction
from rewright.frontends.hlo.shapes import Shape, element_of

Array = np.ndarray[Any, Any]
OPCODES = ordered_words(
    """parameter constant iota add subtract multiply divide maximum minimum power and or xor not negate abs sign
    exponential exponential-minus-one log log-plus-one logistic tanh tan sine cosine sqrt rsqrt cbrt floor ceil
    round-nearest-afz round-nearest-even remainder compare select clamp convert bitcast bitcast-convert is-finite
    atan2 erf popcnt count-leading-zeros shift-left shift-right-arithmetic shift-right-logical real imag complex
    reduce-precision stochastic-convert broadcast reshape transpose slice concatenate reverse pad copy dynamic-slice
    dynamic-update-slice dynamic-reshape get-dimension-size set-dimension-size gather scatter reduce reduce-window
    select-and-scatter sort topk map dot ragged-dot convolution cholesky triangular-solve fft batch-norm-training
    batch-norm-inference batch-norm-grad rng rng-bit-generator rng-get-and-update-state tuple get-tuple-element call
    fusion while conditional custom-call optimization-barrier domain after-all add-dependency all-reduce all-gather
    reduce-scatter all-to-all collective-permute collective-broadcast all-reduce-start all-reduce-done
    all-gather-start all-gather-done collective-permute-start collective-permute-done async-start async-update
    async-done copy-start copy-done infeed outfeed send send-done recv recv-done partition-id replica-id
    alternatives unknown"""
)
"""Names of operators by their number in the features; numbers of later versions are only added at the end."""
_NUMBER = {name: number for number, name in enumerate(OPCODES)}
RANK = 8
NODE_FEATURES = (
    "opcode", "computation", "in_fusion", "users", "operands", "element_type", "out_elements", "out_bytes",
    "in_elements", "in_bytes", "is_root", "is_alternative", "choices",
)  # fmt: skip
EDGE_FEATURES = ("operand_index", "kind", "element_type", "elements", "bytes")
"""``kind``: 0 outside a fusion, 1 inside, 2 into a called computation, 3 a choice."""


@dataclass(frozen=True)
class GraphFeatures:
    """Arrays over nodes and edges; ``slots`` are the nodes that stand for choices."""

    names: list[str]
    uids: Array
    nodes: Array
    """Integers by node and :data:`NODE_FEATURES`."""
    sources: Array
    targets: Array
    edges: Array
    """Integers by edge and :data:`EDGE_FEATURES`."""
    dims: Array
    """Sizes of what an edge carries, -1 beyond its rank, 8 at most."""
    layouts: Array
    """Minor to major, -1 beyond the rank."""
    slots: Array
    in_offsets: Array
    in_edges: Array
    out_offsets: Array
    out_edges: Array
    normalized_group: Array
    """1 / instructions of the computation, 0 in the entry."""
    attributes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """Integer attributes of each node, as the proto holds them."""


def opcode_number(name: str) -> int:
    """The number of an operator in the features."""
    return _NUMBER.get(name, _NUMBER["unknown"])


def graph_features(graph: AlternativeGraph) -> GraphFeatures:
    """The features of a program with its alternatives."""
    return _Features(graph).run()


@dataclass
class _Features:
    graph: AlternativeGraph
    names: list[str] = field(default_factory=list[str])
    rows: list[list[int]] = field(default_factory=list[list[int]])
    groups: list[float] = field(default_factory=list[float])
    attributes: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    places: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    edges: list[tuple[int, int, int, int, Shape]] = field(default_factory=list[tuple[int, int, int, int, Shape]])

    def run(self) -> GraphFeatures:
        program = self.graph.program
        order = [program.entry, *(name for name in program.computations if name != program.entry)]
        fused = self._fuse()
        for number, name in enumerate(order):
            self._computation(number, name, name in fused)
        for name in order:
            self._operands(name, name in fused)
        slots = self._slots()
        return self._arrays(slots)

    def _fuse(self) -> set[str]:
        found: set[str] = set()
        for computation in self.graph.program.computations.values():
            for instruction in computation.instructions.values():
                if instruction.opcode == "fusion":
                    found.update(instruction.called)
        return found

    def _computation(self, number: int, name: str, fused: bool) -> None:
        computation = self.graph.program.computations[name]
        everything = [computation.instructions, self.graph.pool.get(name, {})]
        share = 0.0 if number == 0 else 1.0 / max(len(computation.instructions), 1)
        for instructions in everything:
            for own, instruction in instructions.items():
                self.places[name, own] = len(self.names)
                self.names.append(f"{name}/{own}")
                self.groups.append(share)
                self.attributes.append(_integer_attributes(instruction))
                users = len(computation.users.get(own, ()))
                self.rows.append(self._row(instruction, number, fused, users, own == computation.root, [*everything]))

    def _row(
        self,
        instruction: Instruction,
        number: int,
        fused: bool,
        users: int,
        root: bool,
        around: list[Mapping[str, Instruction]],
    ) -> list[int]:
        shape = instruction.shape
        inputs = [_find(around, operand).shape for operand in instruction.operands]
        first = next(shape.leaves(), shape)
        return [
            opcode_number(instruction.opcode),
            number,
            int(fused),
            users,
            len(instruction.operands),
            element_of(first).number,
            shape.elements,
            shape.bytes,
            sum(s.elements for s in inputs),
            sum(s.bytes for s in inputs),
            int(root),
            0,
            0,
        ]

    def _operands(self, name: str, fused: bool) -> None:
        computation = self.graph.program.computations[name]
        pool = self.graph.pool.get(name, {})
        for instructions in (computation.instructions, pool):
            for own, instruction in instructions.items():
                target = self.places[name, own]
                for index, operand in enumerate(instruction.operands):
                    source = _find([computation.instructions, pool], operand)
                    shape = source.shape
                    self.edges.append((self.places[name, operand], target, index, int(fused), shape))
                for called in instruction.called:
                    if called in self.graph.program.computations:
                        body = self.graph.program.computations[called]
                        shape = body.result().shape
                        self.edges.append((self.places[called, body.root], target, -1, 2, shape))

    def _slots(self) -> list[int]:
        found: list[int] = []
        for slot in self.graph.slots:
            first = self.graph.alternatives[slot[0]]
            name = first.computation
            pool = self.graph.pool.get(name, {})
            own = self.graph.program.computations[name].instructions
            shape = own[first.value].shape
            place = len(self.names)
            found.append(place)
            self.names.append(f"{name}/alternatives.{len(found) - 1}")
            self.groups.append(0.0)
            self.attributes.append(())
            element = element_of(next(shape.leaves(), shape)).number
            users = {use.user for number in slot for use in self.graph.alternatives[number].uses}
            row = [_NUMBER["alternatives"], 0, 0, len(users), 1 + len(slot), element, shape.elements, shape.bytes]
            self.rows.append([*row, shape.elements, shape.bytes, 0, 1, 1 + len(slot)])
            choices = [first.value, *(self.graph.alternatives[number].replacement for number in slot)]
            for index, choice in enumerate(choices):
                self.edges.append((self.places[name, choice], place, index, 3, _find([own, pool], choice).shape))
            for user in sorted(users - {ROOT}):
                self.edges.append((place, self.places[name, user], -1, 3, shape))
        return found

    def _arrays(self, slots: list[int]) -> GraphFeatures:
        count = len(self.names)
        sources = np.array([e[0] for e in self.edges], dtype=np.int64)
        targets = np.array([e[1] for e in self.edges], dtype=np.int64)
        rows = [[e[2], e[3], element_of(e[4]).number, e[4].elements, e[4].bytes] for e in self.edges]
        edges = np.array(rows, dtype=np.int64).reshape(len(rows), len(EDGE_FEATURES))
        in_offsets, in_edges = _compress(targets, count)
        out_offsets, out_edges = _compress(sources, count)
        return GraphFeatures(
            self.names,
            np.arange(count, dtype=np.int64),
            np.array(self.rows, dtype=np.int64).reshape(count, len(NODE_FEATURES)),
            sources,
            targets,
            edges,
            _pad([e[4].sizes for e in self.edges]),
            _pad([e[4].layout for e in self.edges]),
            np.array(slots, dtype=np.int64),
            in_offsets,
            in_edges,
            out_offsets,
            out_edges,
            np.array(self.groups),
            self.attributes,
        )


def _find(around: list[Mapping[str, Instruction]], name: str) -> Instruction:
    return next(instructions[name] for instructions in around if name in instructions)


def _integer_attributes(instruction: Instruction) -> tuple[int, ...]:
    return tuple(value for number, _, value in instruction.fields if isinstance(value, int) and number > 8)


def _pad(values: list[tuple[int, ...]]) -> Array:
    found = np.full((len(values), RANK), -1, dtype=np.int64)
    for place, entry in enumerate(values):
        found[place, : min(len(entry), RANK)] = entry[:RANK]
    return found


def _compress(rows: Array, count: int) -> tuple[Array, Array]:
    """Edges by row: where each row starts, and the edges in order of rows."""
    order = np.argsort(rows, kind="stable").astype(np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.add.at(offsets, rows + 1, 1)
    return np.cumsum(offsets), order
