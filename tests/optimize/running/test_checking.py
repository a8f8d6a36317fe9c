"""Runs against float64: what counts as wrong, and what 16 bits cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

import rewright as rw
from rewright.ir.types import DType
from rewright.optimize.running import checking
from rewright.optimize.running.checking import check, compare, own_outputs, with_a_row_out
from tests.optimize.programs import normal


def test_a_number_is_a_tensor_without_axes() -> None:
    def program(x: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x / temperature, -1)

    args = normal(7, 33), torch.tensor(0.7)
    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(*args), program(*args))


def test_no_finite_number_stands_where_there_is_none() -> None:
    nothing, finite, infinite = (np.array([v]) for v in (np.nan, 1.0, -np.inf))

    assert "a number" in compare(finite, nothing, nothing, DType.F32)[1]
    assert not compare(infinite, nothing, nothing, DType.F32)[1]
    assert "not finite" in compare(infinite, finite, finite, DType.F32)[1]


def test_the_logarithm_of_an_empty_sum_is_that_of_pytorch() -> None:
    def program(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        j = torch.arange(x.shape[-1])[None]
        return torch.logsumexp(x.masked_fill(j >= lengths[:, None], float("-inf")), -1)

    args = normal(5, 61), torch.tensor([0, 1, 7, 60, 61])
    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(*args), program(*args))


def test_what_half_precision_cannot_hold_is_no_error_of_a_kernel() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = x @ w
        return torch.tanh(h) * h * h

    args = normal(9, 16, dtype=torch.float16), normal(16, 16, seed=1, dtype=torch.float16)
    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved", found.reason


def test_the_programs_own_dtypes_say_where_it_overflows() -> None:
    graph = rw.capture(lambda x: x * x, (normal(2, dtype=torch.float16),))
    large = torch.tensor([300.0, 10.0], dtype=torch.float16)

    assert own_outputs(graph, {"x": large})["output"].tolist() == [float("inf"), 100.0]
    assert check(graph, lambda given: {"output": given["x"] * given["x"]}).passed
    assert not check(graph, lambda given: {"output": given["x"] * given["x"] * 1.01}).passed


def test_a_mask_keeps_everything_from_one_row() -> None:
    """Its maximum is the mask's own number, and whatever a kernel makes of that is seen."""
    keep = np.ones((2, 3, 4), dtype=bool)

    found = with_a_row_out(keep)

    assert not found[0, 0].any() and found[0, 1:].all() and found[1].all() and keep.all()
    assert with_a_row_out(np.ones((1, 4), dtype=bool)).all()  # the only row is as it was drawn


def test_what_is_rounded_to_16_bits_on_the_way_may_be_as_far_off_as_there() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        best, places = torch.topk(torch.softmax((x @ w).float(), -1), 2, -1)
        return best / best.sum(-1, keepdim=True), places

    args = normal(19, 32, dtype=torch.float16), normal(32, 24, seed=1, dtype=torch.float16)
    graph = rw.capture(program, args)

    def wrong(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        best, places = program(given["x"], given["w"])
        return {"output.0": best * 1.01, "output.1": places}

    assert rw.optimize(program, args, target="torch").status == "proved"
    assert not check(graph, wrong).passed


def test_a_value_that_a_dtype_does_not_hold_may_be_infinite() -> None:
    """The program in fp16 has zeros here, because the variance overflows on the way."""

    def program(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        a, b = (torch.nn.functional.layer_norm(x, (48,)) @ m).chunk(2, -1)
        return a * torch.nn.functional.gelu(b) * b

    args = normal(19, 48, dtype=torch.float16), normal(48, 64, seed=1, dtype=torch.float16)

    assert rw.optimize(program, args, target="torch").status == "proved"


def test_what_is_not_finite_is_wrong_also_where_float32_has_no_digit() -> None:
    exact, lost = np.full(200, 5.0), np.zeros(200)

    assert "not finite" in compare(np.full(200, np.nan), exact, lost, DType.F32)[1]


def shifted(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """Exponentials that nothing keeps below one, and a sum of products of them."""
    weights = torch.exp(x - m)
    return (weights * x).sum(-1) - (weights * m).sum(-1)


def test_what_overflows_in_one_order_is_decided_by_smaller_inputs() -> None:
    graph = rw.capture(shifted, (normal(8, 6), normal(8, 1)))

    def together(inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        x, m = inputs.values()
        found = (torch.exp(x - m) * (x - m)).sum(-1)
        return {"output": torch.where(found > 1e25, float("inf"), found)}

    checked = check(graph, together)

    assert checked.passed, checked.reason
    assert checked.reason != "agrees with float64 on inputs of scale 1 and 30"


def test_what_is_wrong_is_wrong_on_smaller_inputs_too() -> None:
    graph = rw.capture(shifted, (normal(8, 6), normal(8, 1)))

    def wrong(inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        x, m = inputs.values()
        found = (torch.exp(x - m) * (x - m)).sum(-1)
        return {"output": torch.where(found.abs() > 1e3, float("inf"), found)}

    assert "not finite" in check(graph, wrong).reason


def test_masks_are_no_overflow() -> None:
    """Kernels of masked programs are wrong where they are wrong on large inputs alone."""

    def masked(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.masked_fill(torch.ones(8, 8).triu(1).bool(), float("-inf")), -1)

    def added(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + torch.full((8, 8), torch.finfo(torch.float32).min).triu(1), -1)

    for program in (masked, added):

        def wrong(inputs: Mapping[str, torch.Tensor], program: Any = program) -> Mapping[str, torch.Tensor]:
            (x,) = inputs.values()
            return {"output": program(x) * (1.5 if x.abs().max() > 50 else 1)}

        checked = check(rw.capture(program, (normal(8, 8),)), wrong)

        assert not checked.passed
        assert "scale 30" in checked.reason


def statistics(q: torch.Tensor, k: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """What a backward pass begins with: the weights of scores, from the logarithm of a sum that it is given."""
    return torch.exp(q @ k.T - total[:, None]) @ k


def test_a_program_whose_statistics_do_not_fit_its_scores_is_tested_on_smaller_inputs() -> None:
    graph = rw.capture(statistics, (normal(8, 1024), normal(8, 1024, seed=1), normal(8, seed=2)))

    def scaled(inputs: Mapping[str, torch.Tensor], more: float = 1.0) -> Mapping[str, torch.Tensor]:
        q, k, total = inputs.values()
        top = (q @ k.T - total[:, None]).amax(-1, keepdim=True)
        return {"output": (torch.exp(q @ k.T - total[:, None] - top) @ k) * torch.exp(top) * more}

    def early(inputs: Mapping[str, torch.Tensor], more: float = 1.0) -> Mapping[str, torch.Tensor]:
        q, k, total = inputs.values()
        weights = torch.exp((q @ k.T - total[:, None]).double())
        over = weights > 1e31  # as another order of the sum would have it
        return {"output": (torch.where(over, torch.inf, weights) @ k.double()).float() * more}

    assert check(graph, early).passed
    assert check(graph, scaled).passed
    assert not check(graph, lambda inputs: early(inputs, 1.01)).passed


def parity(x: torch.Tensor) -> torch.Tensor:
    """Exact in float32, and decided by the last digits of what is given."""
    return torch.floor(x * 2.0**20) % 2


def test_what_roundings_of_the_inputs_change_is_no_error_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = rw.capture(parity, (normal(256, 64),))

    def rounded(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"output": parity(given["x"] * (1 + 2.0**-23)) if float(given["x"].max()) > 10 else parity(given["x"])}

    assert check(graph, rounded).passed
    monkeypatch.setattr(checking, "NUDGES", 0)
    assert not check(graph, rounded).passed


def chosen(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A choice of the largest, in all but name."""
    return torch.softmax(x @ w * 1e4, -1)


def test_what_roundings_do_not_change_is_one() -> None:
    graph = rw.capture(chosen, (normal(256, 64), normal(64, 64, seed=1)))

    def transposed(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"output": chosen(given["x"], given["w"].T)}

    def without_the_last(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"output": chosen(given["x"][:, :-1], given["w"][:-1])}

    assert not check(graph, transposed).passed
    assert not check(graph, without_the_last).passed


def test_infinities_are_no_roundings() -> None:
    """A row that a mask keeps nothing of is infinite in every draw."""
    graph = rw.capture(lambda x: parity(x).masked_fill(x < 0, float("inf")), (normal(256, 64),))

    def rounded(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        x = given["x"]
        near = x * (1 + 2.0**-23) if float(x.max()) > 10 else x
        return {"output": parity(near).masked_fill(x < 0, float("inf"))}

    def finite(given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"output": parity(given["x"])}

    assert check(graph, rounded).passed
    assert not check(graph, finite).passed
