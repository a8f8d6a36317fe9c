"""Tiles are skipped exactly where the mask absorbs them, for any condition on indices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rewright as rw
from rewright.ir.types import DType
from rewright.optimize.phases import variants
from rewright.optimize.scalars.expressions import Table
from rewright.optimize.scalars.values import vanishes
from rewright.terms.index import variable
from tests.optimize.programs import PROGRAMS, attention, normal, places

conditions = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-20, 20), st.sampled_from(["ge", "lt"]))


@settings(max_examples=6)
@given(st.lists(conditions, min_size=1, max_size=2), st.booleans())
def test_random_masks_give_the_same_values(parts: list[tuple[int, int, int, str]], every: bool) -> None:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        kept = [((a * i + b * j) >= c) if way == "ge" else ((a * i + b * j) < c) for a, b, c, way in parts]
        allowed = kept[0]
        for other in kept[1:]:
            allowed = (allowed & other) if every else (allowed | other)
        return attention(q, k, v, torch.where(allowed | (j == 0), 0.0, float("-inf")))[1]

    args = tuple(normal(1, 1, 70, 16, seed=s) for s in range(3))

    found = rw.optimize(program, args, target="torch", allow="tested", verify=False, budget=1.0)

    torch.testing.assert_close(found(*args), program(*args), rtol=1e-5, atol=1e-5)


def skips(program: object, args: tuple[torch.Tensor, ...]) -> int:
    plan = rw.optimize(program, args, target="torch", verify=False).plan
    assert plan is not None
    return sum(len(variants(plan.table, sweep).skip) for kernel in plan.kernels for sweep in kernel.sweeps)


def test_an_infinite_mask_skips_and_a_large_number_does_not() -> None:
    def program(fill: float) -> object:
        def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            i, j = places(q.shape[-2], k.shape[-2])
            return attention(q, k, v, torch.where(j <= i, 0.0, fill))[1]

        return run

    args = tuple(normal(1, 1, 40, 16, seed=s) for s in range(3))

    assert skips(program(float("-inf")), args) == 1
    assert skips(program(-1e9), args) == 0


def test_where_nothing_is_masked_the_weights_of_a_product_are_the_exponentials_that_are_summed() -> None:
    program, args = PROGRAMS["causal"]()
    plan = rw.optimize(program, args, target="torch", verify=False).plan
    assert plan is not None
    kernel = next(k for k in plan.kernels if k.features is not None)

    found = variants(plan.table, kernel.sweeps[0])

    assert found.plain is not None
    bodies = found.plain[1].bodies
    ((weight, _),) = [running.factors for running, _ in bodies if running.factors is not None]
    assert any(body is weight for _, body in bodies)


def test_rows_without_keys_are_nan_as_in_the_program() -> None:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        return attention(q, k, v, torch.where(j < i - 3, 0.0, float("-inf")))[1]

    args = tuple(normal(1, 1, 40, 16, seed=s) for s in range(3))

    found = rw.optimize(program, args, allow="tested", floor=False, remember=False)

    torch.testing.assert_close(found(*args), program(*args), equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "expected"), [("sum", True), ("maximum", False)])
def test_a_zero_is_absorbed_by_a_sum_and_not_by_a_maximum(kind: str, expected: bool) -> None:
    table = Table()
    place = table.index(variable("r0_8"))
    condition = table.plain("at_least_zero", (place,))
    zero = table.constant(0.0, DType.F32)
    body = table.apply("select", condition, zero, table.load(0, (place,), DType.F32))

    assert vanishes(table, kind, body, {condition: True}) is expected
    assert not vanishes(table, kind, body, {condition: False})
