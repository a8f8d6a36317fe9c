"""Pairs of small programs that are equal, with a certificate that uses each kind of evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

import rewright as rw
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.equiv.engine import equiv
from rewright.interp.program import run
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.proof.rewriting.evidence import Checked
from tests.equiv.rewrites import test_byte_tables as byte_tables
from tests.equiv.rewrites import test_fillings as masked_fill
from tests.equiv.rewrites import test_gather_to_sum as gathered
from tests.equiv.rewrites import test_integer_tables as integer_tables
from tests.equiv.rewrites import test_local as clamps
from tests.equiv.rewrites import test_mask_values as mask_values
from tests.equiv.rewrites import test_orders as rounds
from tests.equiv.rewrites import test_picked as chosen
from tests.equiv.rewrites import test_places as scattered

Tensor = torch.Tensor
SECONDS = 1.0
X, W = torch.zeros(3, 4), torch.zeros(4)


@dataclass
class Case:
    """Two programs that are equal, and their certificate."""

    left: Graph
    right: Graph
    certificate: EquivalenceCertificate
    checked: Checked


def _capture(function: Callable[..., Any], *arguments: Tensor) -> Graph:
    return rw.capture(function, arguments)


def _pair(left: Callable[..., Any], right: Callable[..., Any], *arguments: Tensor) -> tuple[Graph, Graph]:
    return _capture(left, *arguments), _capture(right, *arguments)


def _rotary(x: Tensor, *, held: bool) -> Tensor:
    inverse = torch.tensor([1.0, 1e4**-0.5]) if held else 1e4 ** (-torch.arange(2) / 2)
    angles = torch.arange(3)[:, None] * inverse
    return x * torch.cat([angles.cos(), angles.sin()], -1)


def _masked(x: Tensor, value: float) -> Tensor:
    return torch.softmax((x @ x.T).masked_fill(torch.ones(3, 3).triu(1).bool(), value), -1) @ x


def _norm(x: Tensor, w: Tensor, *, eps: float, divides: bool) -> Tensor:
    root = torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return x / root * w if divides else x * (1 / root) * w


PAIRS: dict[str, Callable[[], tuple[Graph, Graph]]] = {
    "halves": lambda: _pair(lambda x, w: torch.tanh(x / 2) + w * 2, lambda x, w: torch.tanh(x * 0.5) + (w + w), X, W),
    "given": lambda: _pair(lambda x: torch.relu(torch.exp(x) + 1) * 2, lambda x: torch.exp(x) * 2 + 2, X),
    "masks": lambda: _pair(lambda x: _masked(x, -1e9), lambda x: _masked(x, -math.inf), X),
    "rounded": lambda: _pair(
        lambda x, w: _norm(x, w, eps=1e-6, divides=True),
        lambda x, w: _norm(x, w, eps=9.999999974752427e-07, divides=False), X, W,
    ),
    "scaled": lambda: _pair(
        lambda x: (x @ x.T / math.sqrt(8)).softmax(-1), lambda x: ((x * 8**-0.25) @ (x * 8**-0.25).T).softmax(-1), X
    ),
    "rotary": lambda: _pair(lambda x: _rotary(x, held=True), lambda x: _rotary(x, held=False), X),
    "buckets": lambda: _pair(
        integer_tables.attention(lambda: integer_tables.cut_off(integer_tables.apart())),
        integer_tables.attention(integer_tables.written_out),
        torch.zeros(2, *integer_tables.apart().shape),
        torch.zeros(64, 2),
    ),
    "codes": lambda: (
        byte_tables.program(byte_tables.first, byte_tables.second, torch.uint8),
        byte_tables.program(lambda w: w % 16, lambda w: (w & 240).float() / 16, torch.uint8),
    ),
    "signed": lambda: (
        byte_tables.program(byte_tables.signed, byte_tables.second, torch.int8),
        byte_tables.program(lambda w: (w.int() + 8) % 16 - 8, byte_tables.second, torch.int8),
    ),
    "growing": lambda: _pair(
        lambda x: torch.softmax(x, -1).topk(2).indices, lambda x: (3 * x + 1).topk(2).indices, X
    ),
    "fillings": lambda: (masked_fill.routed(0.0), masked_fill.routed(-math.inf)),
    "infinite": lambda: (
        mask_values.attention(mask_values.filled(-1e9)), mask_values.attention(mask_values.added(-1e4 - 1))
    ),
    "orders": lambda: _pair(
        lambda x: (100 * x / rounds.largest(x)).round().clamp(-8, 7),
        lambda x: (100 * x / torch.maximum(x.amax(-1), -x.amin(-1))[:, None]).clamp(-8, 7).round(), X,
    ),
    "picked": lambda: _pair(chosen.written, chosen.looked_up, X),
    "marked": lambda: _pair(chosen.written, chosen.filled, X),
    "placed": lambda: _pair(scattered.written, scattered.each, scattered.LOGITS),
    "rows": lambda: (gathered.program(gathered.over_all), gathered.program(gathered.looked_up)),
    "floors": lambda: _pair(clamps.two_passes, clamps.norm("product"), *clamps.ARGUMENTS),
}  # fmt: skip


@cache
def case(name: str) -> Case | None:
    """A pair with its certificate; None where it is not proved."""
    left, right = PAIRS[name]()
    found = equiv(left, right, explain=False)
    certificate = found.certificate if found.status == "proved" else None
    return Case(left, right, certificate, Checked(SECONDS)) if isinstance(certificate, EquivalenceCertificate) else None


def inputs_of(graph: Graph, seed: int) -> dict[str, Any]:
    """Inputs of a program."""
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for name, position in graph.inputs.items():
        kind = graph.nodes[position].type
        shape = tuple(int(str(n)) for n in kind.shape)
        if kind.dtype.is_float:
            found[name] = random.normal(size=shape) * 2
        else:
            low, high = (0, 2) if kind.dtype.value == "i1" else (0, 256) if kind.dtype.is_unsigned else (-128, 128)
            found[name] = random.integers(low, high, shape).astype({"i1": bool}.get(kind.dtype.value, np.int64))
    return found


def differ(one: Graph, other: Graph) -> bool:
    """Whether two programs over the same inputs compute plainly other numbers."""
    for seed in range(3):
        given = inputs_of(one, seed)
        try:
            with np.errstate(all="ignore"):
                found = [list(run(graph, given).values()) for graph in (one, other)]
        except (RewrightError, ArithmeticError, ValueError, IndexError):
            return False
        for a, b in zip(*found, strict=True):
            if a.shape != b.shape or not np.allclose(a, b, rtol=1e-2, atol=1e-2, equal_nan=True):
                return True
    return False
