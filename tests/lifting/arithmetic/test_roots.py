"""A root times itself is what is under the root, and a number its absolute value, where that is never negative."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.refine import refine
from tests.programs import Builder

Made = Callable[[Builder, int], int]


def squares(build: Builder, x: int) -> int:
    return build.add(ops.Multiply(), x, x)


def squares_of_roots(build: Builder, x: int) -> int:
    return squares(build, build.add(ops.Sqrt(), x))


def absolute(build: Builder, x: int) -> int:
    return build.add(ops.Abs(), x)


def unchanged(build: Builder, x: int) -> int:
    return x


def graph(*steps: Made) -> Graph:
    build = Builder("program")
    value = build.tensor("x", (4,))
    for step in steps:
        value = step(build, value)
    build.output("y", value)
    return build.build()


def proved(left: tuple[Made, ...], right: tuple[Made, ...]) -> bool:
    mesh = Mesh.of({"rank": 1})
    x = {"x": place((4,), mesh, ["Replicate()"])}
    return refine(graph(*left), RankProgram((graph(*right),), mesh, x, {})).status == "proved"


def total(build: Builder, x: int) -> int:
    return build.reduce(x, 0)


def largest(build: Builder, x: int) -> int:
    return build.reduce(x, 0, kind="maximum")


def opposite(build: Builder, x: int) -> int:
    return build.add(ops.Negate(), x)


def cubes(build: Builder, x: int) -> int:
    return build.add(ops.Multiply(), x, squares(build, x))


@pytest.mark.parametrize("made", [(squares,), (squares, total), (absolute,), (absolute, largest), (cubes, squares)])
@pytest.mark.parametrize("law", [squares_of_roots, absolute])
def test_what_is_never_negative(made: tuple[Made, ...], law: Made) -> None:
    assert proved(made, (*made, law))


@pytest.mark.parametrize("made", [(unchanged,), (total,), (cubes,), (squares, opposite), (absolute, opposite, largest)])
@pytest.mark.parametrize("law", [squares_of_roots, absolute])
def test_what_may_be_negative(made: tuple[Made, ...], law: Made) -> None:
    assert not proved(made, (*made, law))
