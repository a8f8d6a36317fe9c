"""Meshes on the command line."""

from __future__ import annotations

import pytest

from rewright.cli.meshes import parse_mesh
from rewright.ir.errors import RewrightError


def test_axes_keep_their_order() -> None:
    assert parse_mesh("tp=8") == {"tp": 8}
    assert list(parse_mesh("dp=2, tp=4").items()) == [("dp", 2), ("tp", 4)]


@pytest.mark.parametrize("text", ["8", "tp", "tp=", "tp=0", "tp=-1", "tp=two", "=8", "tp=2,,dp=2", ""])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RewrightError, match="write name=size, for example --mesh tp=8"):
        parse_mesh(text)


def test_an_axis_twice() -> None:
    with pytest.raises(RewrightError, match="axis 'tp' is given twice"):
        parse_mesh("tp=2,tp=4")


def test_more_ranks_than_could_be_meant() -> None:
    with pytest.raises(RewrightError, match="1000000 ranks are too many"):
        parse_mesh("dp=1000,tp=1000")
