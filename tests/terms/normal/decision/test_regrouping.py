"""Sums and maxima over every k-th element, put together again."""

from __future__ import annotations

import pytest
import torch

import rewright as rw
from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from rewright.rules import Tensor, exp, floats, log, maximum, natural, rsqrt, rule, size
from rewright.rules.verdict import judge
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

INFINITY = float("inf")
m, n = size("m"), size("n")
X, Y = floats("X", 2 * n), floats("Y", 2 * n)
V, s, t = floats("V", n), natural("s"), natural("t")
W = floats("W", m, n + 1)
Z, M = floats("Z", 3 * n), floats("M", m, 2 * n)


def every(tensor: Tensor, step: int, first: int) -> Tensor:
    """Every element from the first one on, this many apart, along the last axis."""
    rank = tensor.rank
    start, strides = (0,) * (rank - 1) + (first,), (1,) * (rank - 1) + (step,)
    return tensor.slice(start, tensor.shape, strides)


SAME: dict[str, tuple[Tensor, Tensor]] = {
    "two": (every(X, 2, 0).sum(0) + every(X, 2, 1).sum(0), X.sum(0)),
    "three": (every(Z, 3, 0).sum(0) + every(Z, 3, 1).sum(0) + every(Z, 3, 2).sum(0), Z.sum(0)),
    "products": (
        (every(X, 2, 0) * every(Y, 2, 0)).sum(0) + (every(X, 2, 1) * every(Y, 2, 1)).sum(0),
        (X * Y).sum(0),
    ),
    "rows": (every(M, 2, 0).sum(0, 1) + every(M, 2, 1).sum(0, 1), M.sum(0, 1)),
    "under a root": (
        rsqrt((every(X, 2, 0) * every(X, 2, 0)).sum(0) + (every(X, 2, 1) * every(X, 2, 1)).sum(0) + 1.0),
        rsqrt((X * X).sum(0) + 1.0),
    ),
    "the last term under a logarithm": (
        log(exp(W.slice((0, 0), (m, n))).sum(1) + exp(W.slice((0, n), (m, n + 1))).sum(1)).sum(0),
        log(exp(W).sum(1)).sum(0),
    ),
    "a maximum of what stands between": (V.pad(-INFINITY, s, t, 1).max(0), V.max(0)),
    "of what stands apart": (V.pad(-INFINITY, s, 0, t).max(0), V.max(0)),
    "a maximum": (maximum(every(X, 2, 0).max(0), every(X, 2, 1).max(0)), X.max(0)),
}
DIFFERENT: dict[str, tuple[Tensor, Tensor]] = {
    "one of them twice": (every(X, 2, 0).sum(0) + every(X, 2, 0).sum(0), X.sum(0)),
    "two of three": (every(Z, 3, 0).sum(0) + every(Z, 3, 1).sum(0), Z.sum(0)),
    "crossed": (
        (every(X, 2, 0) * every(Y, 2, 1)).sum(0) + (every(X, 2, 1) * every(Y, 2, 0)).sum(0),
        (X * Y).sum(0),
    ),
    "the last term twice": (
        log(exp(W).sum(1) + exp(W.slice((0, n), (m, n + 1))).sum(1)).sum(0),
        log(exp(W).sum(1)).sum(0),
    ),
    "a maximum with zeros between": (V.pad(0.0, 0, 0, 1).max(0), V.max(0)),
    "a maximum without its last": (V.pad(-INFINITY, 0, -1, 1).max(0), V.max(0)),
    "the larger of two of three": (maximum(every(Z, 3, 0).max(0), every(Z, 3, 1).max(0)), Z.max(0)),
}


@pytest.mark.parametrize("name", SAME)
def test_every_kth_term_and_the_others_are_all(name: str) -> None:
    assert judge(rule("dealt out", "left = right", *SAME[name])).status == "proved"


@pytest.mark.parametrize("name", DIFFERENT)
def test_some_of_them_are_not(name: str) -> None:
    assert judge(rule("dealt out", "left = right", *DIFFERENT[name])).status == "refuted"


@pytest.mark.parametrize(("rest", "status"), [(4, "proved"), (5, "unknown"), (0, "unknown")])
def test_the_largest_of_pages_is_that_of_whole_pages_and_a_rest(rest: int, status: str) -> None:
    """Of 36 elements in pages of 16, two whole ones and four elements of the third."""

    def at_once(x: torch.Tensor, pages: torch.Tensor) -> torch.Tensor:
        return x[pages].flatten()[:36].amax() * 2.0

    def page_by_page(x: torch.Tensor, pages: torch.Tensor) -> torch.Tensor:
        whole = x[pages[:2]].amax()
        return (torch.maximum(whole, x[pages[2:]][0, :rest].amax()) if rest else whole) * 2.0

    args = (torch.randn(5, 16), torch.tensor([4, 0, 2]))
    left, right = (rw.capture(f, args, validate=False) for f in (at_once, page_by_page))
    facts = GraphBuilder()
    given = facts.input("pages", ops.Input("pages", TensorType((3,), DType.I64)))
    facts.output("from", rb.compare(facts, "GE", given, rb.splat_like(facts, 0, given)))
    facts.output("to", rb.compare(facts, "LT", given, rb.splat_like(facts, 5, given)))
    assert prove(Claim(left, right, facts=facts.build()), 10.0).status == status
