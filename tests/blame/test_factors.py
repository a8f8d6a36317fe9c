"""Outputs that are wrong by one number, in words."""

from __future__ import annotations

import numpy as np
import pytest

from rewright.blame.factors import describe_factor, describe_wrong
from rewright.interp.placing import multiple
from rewright.ir.placement import Mesh, place

MESH = Mesh.of({"dp": 2, "tp": 4})


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (2.0, "exactly 2 times too large, and 2 is dp"),
        (0.25, "exactly 1/4 of the right value, and 4 is tp"),
        (8.0, "exactly 8 times too large, and 8 is dp * tp"),
        (-1.0, "exactly right but for the sign"),
        (0.0, "zero everywhere"),
        (3.5, "3.5 times the right value"),
    ],
)
def test_a_factor_is_told_with_the_mesh_axes_that_make_it(factor: float, text: str) -> None:
    assert describe_factor(factor, MESH) == text


def test_axes_of_one_size_are_both_told() -> None:
    assert describe_factor(2.0, Mesh.of({"dp": 2, "tp": 2})) == "exactly 2 times too large, and 2 is dp or tp"


def test_outputs_with_one_factor_are_told_together() -> None:
    names = ["grad:a", "grad:b", "grad:c"]
    assert describe_wrong(names, dict.fromkeys(names, 2.0), MESH).startswith("grad:a and 2 more outputs are exactly 2")
    assert describe_wrong(names, {"grad:a": 2.0}, MESH).endswith("and 2 is dp, and 2 more outputs are wrong")
    assert describe_wrong(names[:2], {}, MESH) == "grad:a and 1 more output are wrong"


def test_what_every_rank_holds_twice() -> None:
    value = np.arange(8.0).reshape(4, 2)
    mesh = Mesh.of({"dp": 2})
    assert multiple(value, [2 * value, 2 * value], mesh) == 2.0
    assert multiple(value, [-value[:2], -value[2:]], mesh) == -1.0
    assert multiple(value, [2 * value, 3 * value], mesh, place((4, 2), mesh, ("Replicate()",))) is None
    assert multiple(value, [value + 1, value + 1], mesh) is None


def test_no_number_makes_another_tensor_of_infinities() -> None:
    value = np.array([1.0, np.inf])
    assert multiple(value, [value, value], Mesh.of({"dp": 2})) is None
