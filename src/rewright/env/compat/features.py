"""What HloEnv shows to agents: the features of a module with its alternatives, in HloEnv's names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewright.env.features import EDGE_FEATURES, NODE_FEATURES, OPCODES, GraphFeatures

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NodeFeatures:
    """HloEnv's features of nodes."""

    uids: Array
    names: list[str]
    gids: Array
    num_users: Array
    num_operands: Array
    opcodes: Array
    opcode_attrs: list[tuple[int, ...]]
    num_opcode_attrs: Array
    is_alternative: Array
    is_in_fusion: Array
    in_tensor_sizes: Array
    out_tensor_sizes: Array
    has_max_in_tensor: Array
    has_max_out_tensor: Array
    normalized_num_group_inst: Array
    fused_comp_ids: Array


@dataclass(frozen=True)
class EdgeFeatures:
    """HloEnv's features of edges."""

    uids: Array
    srcs: Array
    dsts: Array
    dims: Array
    layouts: Array
    lehmercodes: Array
    types: Array
    dtypes: Array
    sizes: Array

    def get_tensor_size(self, number: int) -> int:
        """Elements that an edge carries."""
        return int(self.sizes[number])


class HloGraph:
    """The features of a module with its alternatives, in HloEnv's names."""

    def __init__(self, features: GraphFeatures) -> None:
        self.features = features
        f = features
        self.in_edge_offsets, self.in_edge_indices = f.in_offsets, f.sources[f.in_edges]
        self.out_edge_offsets, self.out_edge_indices = f.out_offsets, f.targets[f.out_edges]
        self.alternative_indices = f.slots
        self.opcode_attr_counts = np.zeros(2 * len(OPCODES), dtype=np.int64)
        for row, attributes in zip(f.nodes, f.attributes, strict=True):
            self.opcode_attr_counts[2 * row[0]] = max(self.opcode_attr_counts[2 * row[0]], len(attributes))
        self.node_features = _node_features(f)
        self.in_edge_features = _edge_features(f, f.in_edges)
        self.out_edge_features = _edge_features(f, f.out_edges)

    def hash(self) -> int:
        """A number for the features: equal for equal graphs, in every process."""
        f = self.features
        data = b"".join(np.ascontiguousarray(a).tobytes() for a in (f.nodes, f.sources, f.targets, f.edges))
        return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")

    def get_graph_load_errors(self) -> list[str]:
        """Nothing: what cannot be loaded is an error at once."""
        return []


def _column(name: str) -> int:
    return NODE_FEATURES.index(name)


def _node_features(f: GraphFeatures) -> NodeFeatures:
    rows = f.nodes
    sizes_in, sizes_out = rows[:, _column("in_elements")], rows[:, _column("out_elements")]
    counts = np.array([(len(attributes), 0) for attributes in f.attributes], dtype=np.int64)
    return NodeFeatures(
        f.uids,
        f.names,
        rows[:, _column("computation")],
        rows[:, _column("users")],
        rows[:, _column("operands")],
        rows[:, _column("opcode")],
        f.attributes,
        counts,
        rows[:, _column("is_alternative")].astype(bool),
        rows[:, _column("in_fusion")].astype(bool),
        sizes_in,
        sizes_out,
        sizes_in == sizes_in.max(initial=0),
        sizes_out == sizes_out.max(initial=0),
        f.normalized_group,
        np.where(rows[:, _column("in_fusion")] > 0, rows[:, _column("computation")], 0),
    )


def _edge_features(f: GraphFeatures, order: Array) -> EdgeFeatures:
    sources, targets, rows = f.sources[order], f.targets[order], f.edges[order]
    kinds = rows[:, EDGE_FEATURES.index("kind")]
    layouts = f.layouts[order]
    return EdgeFeatures(
        sources << 32 | targets,
        sources,
        targets,
        f.dims[order],
        layouts,
        _lehmer(layouts),
        np.where(kinds == 3, 0, kinds),
        rows[:, EDGE_FEATURES.index("element_type")],
        rows[:, EDGE_FEATURES.index("elements")],
    )


def _lehmer(layouts: Array) -> Array:
    """For each place of a permutation how many smaller entries follow it; 0 beyond the rank."""
    later = np.triu(np.ones((layouts.shape[1], layouts.shape[1]), dtype=bool), 1)
    smaller = (layouts[:, None, :] < layouts[:, :, None]) & (layouts[:, None, :] >= 0) & later
    return smaller.sum(axis=2)
