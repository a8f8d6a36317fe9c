"""Whatever a program depends on besides values of tensors changes between two calls, and so does what is returned."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random, random
from typing import Any

import einops
import pytest
import torch
from torch.utils import _pytree as pytree

import rewright as rw
from tests.optimize.calls.dependencies import CASES
from tests.optimize.programs import normal

X, OWN = normal(4, 8), Random(0)


def same(one: Any, other: Any) -> bool:
    """Whether two returned values have one structure, equal dtypes, strides and values."""
    (left, first), (right, second) = pytree.tree_flatten(one), pytree.tree_flatten(other)
    if first != second:
        return False
    for a, b in zip(left, right, strict=True):
        if type(a) is not type(b):
            return False
        if isinstance(a, torch.Tensor):
            if a.dtype != b.dtype or a.stride() != b.stride() or a.shape != b.shape:
                return False
            if not torch.allclose(a.double(), b.double(), atol=1e-5, equal_nan=True):
                return False
        elif a != b:
            return False
    return True


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_no_call_has_values_of_another(name: str) -> None:
    program, args, changes = CASES[name]()
    found = rw.optimize(program, args, target="torch", verify=False)
    assert found.status == "proved", found.reason

    with torch.no_grad():
        before = program(*args)
        assert same(found(*args), before) and not found.notes
        for what, change in changes.items():
            change()
            expected = program(*args)
            assert same(found(*args), expected), (what, found.notes)


def test_arguments_that_are_no_tensors_are_part_of_a_call() -> None:
    def program(x: torch.Tensor, scale: Any, flags: dict[str, Any], *rest: Any) -> torch.Tensor:
        y = x * scale if flags["on"] else x
        for part in rest:
            y = y + (part if part is not None else 1)
        return torch.softmax(y, -1)

    x = normal(8, 8)
    found = rw.optimize(program, (x, 2.0, {"on": True}, None), target="torch", verify=False)
    assert found.status == "proved", found.reason
    calls: list[tuple[Any, ...]] = [
        (x, 2.0, {"on": True}, None),
        (x, 3.0, {"on": True}, None),
        (x, 2.0, {"on": False}, None),
        (x, 2.0, {"on": 1}, None),
        (x, 2, {"on": True}, None),
        (x, 2.0, {"on": True}, 5),
        (x, 2.0, {"on": True}, x),
        (x, 2.0, {"on": True}, normal(8, seed=7)),
        (x, x, {"on": True}, None),
        (x, torch.tensor(3.0), {"on": True}, None),
        (x, 2.0, {"on": True}),
        (x.double(), 2.0, {"on": True}, None),
        (x.t(), 2.0, {"on": True}, None),
        (x[:, :4], 2.0, {"on": True}, None),
    ]
    with torch.no_grad():
        for call in calls:
            assert same(found(*call), program(*call)), call


def test_how_arguments_lie_in_memory_is_part_of_a_call() -> None:
    program, args, _ = CASES["a_metadata_branch"]()
    found = rw.optimize(program, args, target="torch", verify=False)
    (x,) = args

    with torch.no_grad():
        for value in (x, x.t(), torch.nn.Parameter(x), x[:, ::1], x.t().contiguous().t()):
            assert same(found(value), program(value))


def test_a_kind_of_call_with_the_same_graph_runs_on_the_same_kernels() -> None:
    state = {"unread": 0}

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x if state["unread"] >= 0 else -x, -1)

    x = normal(3, 8)
    found = rw.optimize(program, (x,), target="torch", verify=False)
    state["unread"] = 1

    assert same(found(x), program(x)) and not found.notes
    state["unread"] = -1
    assert same(found(x), program(x)) and found.notes == ["state['unread'] was 0 and is -1: the original program ran"]


def test_a_program_that_keeps_a_state_in_python_runs_as_it_is() -> None:
    seen: list[int] = []

    def program(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return torch.softmax(x, -1) * len(seen)

    found = rw.optimize(program, (normal(3, 8),), target="torch", verify=False)

    assert found.status == "fallback" and "a call changes seen, which kernels do not" in found.reason


@pytest.mark.parametrize("what", ["random.random", "time.time", "os.getenv", "print", "torch.is_grad_enabled"])
def test_functions_that_depend_on_more_than_they_are_given_are_named(what: str) -> None:
    import os
    import random
    import time

    def program(x: torch.Tensor) -> torch.Tensor:
        if what == "random.random":
            return torch.softmax(x * random.random(), -1)
        if what == "time.time":
            return torch.softmax(x * time.time(), -1)
        if what == "os.getenv":
            return torch.softmax(x * len(os.getenv("HOME") or ""), -1)
        if what == "print":
            print()
        return torch.softmax(x if torch.is_grad_enabled() else -x, -1)

    found = rw.optimize(program, (normal(3, 8),), target="torch", verify=False)

    assert found.status == "fallback" and "calls of the program may differ" in found.reason


def drawn_in_training(x: torch.Tensor, training: bool = False) -> torch.Tensor:
    return torch.softmax(x * (random() if training else 2.0), -1)


def test_a_generator_that_is_not_drawn_from_is_no_state_of_a_program() -> None:
    found = rw.optimize(drawn_in_training, (X,), target="torch", verify=False)
    assert found.status == "proved", found.reason
    assert same(found(X), drawn_in_training(X))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.softmax(x * random(), -1),
        lambda x: torch.softmax(x * OWN.gauss(0, 1), -1),
        lambda x: torch.softmax(x * partial(random)(), -1),
        lambda x: torch.softmax(x * next(iter(random, None)), -1),
        lambda x: torch.softmax(x * next(iter(OWN.random, None)), -1),
    ],
)
def test_a_generator_that_is_drawn_from_is_one(program: Callable[[torch.Tensor], torch.Tensor]) -> None:
    found = rw.optimize(program, (X,), target="torch", verify=False)
    assert found.status == "fallback"
    assert "random" in found.reason.lower()


def test_axes_named_as_einops_names_them() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        heads = einops.rearrange(x, "n (h d) -> h n d", h=2)
        means = einops.reduce(heads, "h (n k) d -> h n d", "mean", k=2)
        return torch.softmax(heads @ einops.repeat(means, "h n d -> h d (n k)", k=3), -1)

    found = rw.optimize(program, (X,), target="torch", verify=False)
    assert found.status == "proved", found.reason
    assert same(found(X), program(X)) and not found.notes
