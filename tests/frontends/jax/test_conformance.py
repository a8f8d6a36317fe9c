"""Functions of JAX on edge values: a seventeenth of what ``make conformance-jax`` runs."""

import warnings

import pytest

pytest.importorskip("jax")

from bench.conformance_jax import WRONG, cases, judge


@pytest.mark.parametrize("every", [85, pytest.param(17, marks=pytest.mark.long)])
def test_captured_graphs_compute_what_jax_computes(every: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of casts and of overflow
        outcomes = [judge(case) for case in cases()[::every]]
    assert not [str(one) for one in outcomes if one.kind in WRONG]
    assert sum(one.kind == "equal" for one in outcomes) > 0.9 * len(outcomes)


def test_there_are_cases_enough() -> None:
    every = cases()
    assert len(every) >= 2_000
    assert len({case.name for case in every}) >= 150
