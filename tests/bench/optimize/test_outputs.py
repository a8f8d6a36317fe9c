"""Errors: over the largest magnitude, by share where numbers are whole, and infinite where something is not finite."""

from __future__ import annotations

import math

import torch

from bench.optimize.outputs import error, tensors

NAN, INF = math.nan, math.inf


def doubles(*values: float) -> list[torch.Tensor]:
    return [torch.tensor(values, dtype=torch.float64)]


def test_an_error_is_relative_to_the_largest_magnitude() -> None:
    assert error(doubles(1.0, -3.5), doubles(1.0, -4.0)) == 0.125
    assert error([*doubles(2.0), *doubles(1.0)], [*doubles(2.0), *doubles(2.0)]) == 0.5


def test_of_whole_numbers_the_share_that_differs_counts() -> None:
    assert error([torch.tensor([1, 2, 3, 4])], [torch.tensor([1, 2, 3, 5])]) == 0.25


def test_what_is_not_finite_has_to_be_so_in_the_same_places() -> None:
    assert error(doubles(NAN, 1.0), doubles(NAN, 1.0)) == 0.0
    assert error(doubles(1.0, 1.0), doubles(INF, 1.0)) == INF
    assert error(doubles(NAN, 1.0), doubles(2.0, 1.0)) == INF
    assert error(doubles(INF), doubles(-INF)) == INF


def test_other_outputs_than_expected_are_an_error() -> None:
    assert error(doubles(1.0), [*doubles(1.0), *doubles(1.0)]) == INF
    assert error(doubles(1.0, 1.0), doubles(1.0)) == INF


def test_the_tensors_of_a_result_are_found_in_its_containers() -> None:
    one, two = torch.zeros(1), torch.ones(2)
    assert tensors({"a": (one, 3), "b": [two, None]}) == [one, two]
