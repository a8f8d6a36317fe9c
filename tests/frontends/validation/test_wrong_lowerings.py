"""Lowerings with a mistake put in, each of which the check of a capture finds: what it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.frontends.aten import tables
from rewright.frontends.torch.validation import calls
from rewright.frontends.validation.store import Store
from rewright.ir.errors import CaptureError

Lowering = Callable[..., Any]
Mutation = Callable[[Lowering], Lowering]


def without(name: str) -> Mutation:
    """The attribute is dropped."""

    def mutate(lowering: Lowering) -> Lowering:
        return lambda c, *a, **k: lowering(c, *a, **{key: value for key, value in k.items() if key != name})

    return mutate


def first(count: int) -> Mutation:
    """Attributes after so many arguments are dropped."""
    return lambda lowering: lambda c, *a, **k: lowering(c, *a[:count], **k)


def at(place: int, change: Callable[[Any], Any]) -> Mutation:
    """One argument is changed."""
    return lambda lowering: lambda c, *a, **k: lowering(c, *a[:place], change(a[place]), *a[place + 1 :], **k)


def keyword(name: str, change: Callable[[Any], Any]) -> Mutation:
    return lambda lowering: lambda c, *a, **k: lowering(c, *a, **{**k, name: change(k[name])})


def swapped(left: int = 0, right: int = 1) -> Mutation:
    def mutate(lowering: Lowering) -> Lowering:
        def wrong(c: Any, *a: Any, **k: Any) -> Any:
            given = list(a)
            given[left], given[right] = given[right], given[left]
            return lowering(c, *given, **k)

        return wrong

    return mutate


def like(name: str) -> Mutation:
    """The lowering of another operator."""
    return lambda _: tables.PURE[name]


def next_axis(dim: Any) -> Any:
    return [axis + 1 for axis in dim] if isinstance(dim, list) else dim + 1


def a_tenth(value: float) -> float:
    return value / 10


X, Y, Z = torch.zeros(12, 12), torch.zeros(12, 12), torch.zeros(12, 12)
LABELS = torch.zeros(12, dtype=torch.long)
WRONG: list[tuple[str, Callable[..., Any], tuple[Any, ...], str, Mutation]] = [
    ("alpha of a sum", lambda x, y: torch.add(x, y, alpha=2.5), (X, Y), "aten.add.Tensor", without("alpha")),
    ("operands of a difference", lambda x, y: x - y, (X, Y), "aten.sub.Tensor", swapped()),
    ("operands of a quotient", lambda x, y: x / y, (X, Y), "aten.div.Tensor", swapped()),
    ("axis of a sum", lambda x: x.sum(0), (X,), "aten.sum.dim_IntList", at(1, next_axis)),
    ("axis of a mean", lambda x: x.mean(0), (X,), "aten.mean.dim", at(1, next_axis)),
    ("axis of a softmax", lambda x: x.softmax(0), (X,), "aten._softmax.default", at(1, next_axis)),
    ("axis of a running sum", lambda x: x.cumsum(0), (X,), "aten.cumsum.default", at(1, next_axis)),
    ("axis of a gather", lambda x, i: x.gather(0, i), (X, Y.long()), "aten.gather.default", at(1, next_axis)),
    ("epsilon", lambda x: F.layer_norm(x, (12,)), (X,), "aten.native_layer_norm.default", at(4, a_tenth)),
    ("approximation", lambda x: F.gelu(x, approximate="tanh"), (X,), "aten.gelu.default", without("approximate")),
    ("lower limit", lambda x: x.clamp(-0.5, 0.5), (X,), "aten.clamp.default", at(1, lambda _: None)),
    ("limit", lambda x: F.hardtanh(x, -0.5, 0.5), (X,), "aten.hardtanh.default", at(2, int)),
    ("beta", lambda x: F.softplus(x, 1.5), (X,), "aten.softplus.default", at(1, int)),
    (
        "beta of a product",
        lambda x, y, z: torch.addmm(x, y, z, beta=0.5),
        (X, Y, Z),
        "aten.addmm.default",
        without("beta"),
    ),
    (
        "alpha of a product",
        lambda x, y, z: torch.addmm(x, y, z, alpha=1.5),
        (X, Y, Z),
        "aten.addmm.default",
        keyword("alpha", int),
    ),
    (
        "correction",
        lambda x: x.var(1, correction=2),
        (X,),
        "aten.var.correction",
        keyword("correction", lambda n: n - 1),
    ),
    ("exponent", lambda x: x.abs() ** 2.5, (X,), "aten.pow.Tensor_Scalar", at(1, int)),
    ("branches", lambda x, y, m: torch.where(m, x, y), (X, Y, X > 0), "aten.where.self", swapped(1, 2)),
    ("less or equal", lambda x, y: x < y, (X, Y), "aten.lt.Tensor", like("aten.le.Tensor")),
    ("greater or equal", lambda x: x >= 0.5, (X,), "aten.ge.Scalar", like("aten.gt.Scalar")),
    ("sign of a remainder", lambda x, y: x.remainder(y), (X, Y), "aten.remainder.Tensor", like("aten.fmod.Tensor")),
    (
        "rounding of a quotient",
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        (X, Y),
        "aten.div.Tensor_mode",
        keyword("rounding_mode", lambda _: "trunc"),
    ),
    (
        "factor of products",
        lambda x, y, z: x.addcmul(y, z, value=0.5),
        (X, Y, Z),
        "aten.addcmul.default",
        without("value"),
    ),
    ("weight between", lambda x, y: x.lerp(y, 0.3), (X, Y), "aten.lerp.Scalar", at(2, int)),
    ("diagonal", lambda x: x.triu(1), (X,), "aten.triu.default", first(1)),
    ("order", lambda x: x.sort(descending=True)[0], (X,), "aten.sort.default", first(2)),
    ("largest", lambda x: x.topk(3, largest=False)[0], (X,), "aten.topk.default", first(3)),
    ("filling", lambda x, m: x.masked_fill(m, 0.5), (X, X > 0), "aten.masked_fill.Scalar", at(2, int)),
    ("shift", lambda x: x.roll(3, 1), (X,), "aten.roll.default", at(1, lambda n: [-s for s in n])),
    ("flipped axis", lambda x: x.flip(0), (X,), "aten.flip.default", at(1, next_axis)),
    (
        "ignored label",
        lambda x, i: F.nll_loss(x, i, ignore_index=1),
        (X, LABELS),
        "aten.nll_loss_forward.default",
        at(4, lambda _: -100),
    ),
    (
        "start of a slice",
        lambda x: x.narrow(1, 3, 8),
        (X,),
        "aten.slice.Tensor",
        lambda low: lambda c, x, dim, start, end: low(c, x, dim, start - 1, end - 1),
    ),
    ("selected index", lambda x: x.select(0, 5), (X,), "aten.select.int", at(2, lambda n: n - 1)),
]


@pytest.mark.parametrize(("program", "args", "operator", "mutation"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_lowering_is_found(
    program: Callable[..., Any],
    args: tuple[Any, ...],
    operator: str,
    mutation: Mutation,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(calls, "open_store", lambda framework: Store(tmp_path / "validated.txt", framework))
    table = next(t for t in (tables.PURE, tables.VIEWS, tables.WRITES) if operator in t)
    monkeypatch.setitem(table, operator, mutation(table[operator]))
    with pytest.raises(
        CaptureError, match=f"operator {operator} at test_wrong_lowerings.py:[0-9]+: the capture is not"
    ):
        rw.capture(program, args)
