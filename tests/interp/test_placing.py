"""Scattering a tensor over ranks and recognising how ranks hold one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.interp.placing import compare, cut, fitting, scatter
from rewright.ir.placement import Mesh, place

MESH = Mesh((("dp", 2), ("tp", 3)))
PLACEMENTS = ["Replicate()", "Shard(0)", "Shard(1)", "Partial(sum)"]


@given(
    placements=st.tuples(st.sampled_from(PLACEMENTS), st.sampled_from(PLACEMENTS)),
    shape=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    seed=st.integers(0, 100),
)
def test_what_was_scattered_fits_its_placement(placements: tuple[str, str], shape: tuple[int, int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    value = generator.standard_normal(shape)
    placement = place(shape, MESH, placements)
    held = scatter(value, placement, MESH, generator)
    assert [tensor.shape for tensor in held] == [placement.local_shape(rank) for rank in range(MESH.size)]
    difference = compare(value, held, placement, MESH)
    assert difference is None or difference.is_rounding


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_partial_under_an_extreme(reduction: str) -> None:
    generator = np.random.default_rng(0)
    value = generator.standard_normal((4, 5))
    placement = place((4, 5), MESH, (f"Partial({reduction})",) * 2)
    held = scatter(value, placement, MESH, generator)
    combined = np.max(held, 0) if reduction == "max" else np.min(held, 0)
    np.testing.assert_array_equal(combined, value)
    assert all((tensor != value).any() for tensor in held)


@pytest.mark.parametrize(
    "texts", [("Replicate()", "Shard(1)"), ("Partial(sum)", "Shard(0)"), ("Shard(0)", "Shard(0)"), ("Replicate()",) * 2]
)
def test_the_placement_is_recognised(texts: tuple[str, str]) -> None:
    generator = np.random.default_rng(0)
    value = generator.standard_normal((12, 6))
    placement = place((12, 6), MESH, texts)
    assert fitting([value], [scatter(value, placement, MESH, generator)], MESH) == placement


def test_values_that_fit_nothing() -> None:
    generator = np.random.default_rng(0)
    assert (
        fitting([generator.standard_normal((6,))], [[generator.standard_normal((6,)) for _ in range(6)]], MESH) is None
    )


def test_strided_runs() -> None:
    value = np.arange(12).reshape(6, 2)
    assert cut(value, (((0, 1), (4, 2)), ((0, 2),))).tolist() == [[0, 1], [8, 9], [10, 11]]


def test_the_largest_difference_has_a_global_index() -> None:
    value = np.zeros((6, 2))
    value[5, 1] = 1.0
    mesh = Mesh((("tp", 2),))
    placement = place((6, 2), mesh, ("Shard(0)",))
    held = scatter(value, placement, mesh, np.random.default_rng(0))
    held[1] = held[1] + np.array([[0, 0], [0, 0.5], [0, 0]])
    found = compare(value, held, placement, mesh)
    assert found is not None
    assert (found.index, found.sequential, found.distributed, found.rank) == ((4, 1), 0.0, 0.5, 1)


def test_nothing_is_close_to_an_infinity_but_itself() -> None:
    mesh = Mesh.of({"tp": 1})
    everywhere = place((2,), mesh, ["Replicate()"])
    masked = np.array([-np.inf, 1.0])
    same = compare(masked, [masked], everywhere, mesh)
    other = compare(masked, [np.array([0.5, 1.0])], everywhere, mesh)
    assert same is not None
    assert same.is_rounding
    assert other is not None
    assert not other.is_rounding


def test_two_runs_tell_placements_apart_that_fit_one() -> None:
    mesh = Mesh.of({"tp": 2})
    equal, other = np.array([1.0, 1.0]), np.array([1.0, 2.0])
    parts = [[equal[:1], equal[1:]], [other[1:], other[:1]]]
    assert fitting([equal], parts[:1], mesh) is not None
    assert fitting([equal, other], parts, mesh) is None


def test_copies_are_no_addends() -> None:
    """Two ranks that hold the same tensor hold half of twice that tensor, which nobody means."""
    mesh = Mesh.of({"tp": 2})
    local = np.array([1.0, 2.0])
    assert fitting([2 * local], [[local, local]], mesh) is None
    found = fitting([2 * local], [[local, local + 0.5]], mesh)
    assert found is None
    found = fitting([2 * local], [[0.5 * local, 1.5 * local]], mesh)
    assert str(found) == 'Partial("sum")'
