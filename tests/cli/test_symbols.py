"""Symbolic sizes on the command line."""

from __future__ import annotations

import pytest

from rewright.cli.symbols import parse_symbols
from rewright.ir.errors import RewrightError


def test_axes_by_argument() -> None:
    assert parse_symbols(["input_ids=batch, sequence", "mask=batch,_,sequence"]) == {
        "input_ids": {0: "batch", 1: "sequence"},
        "mask": {0: "batch", 2: "sequence"},
    }


@pytest.mark.parametrize("text", ["input_ids", "=batch", "x=", "x=2", "x=batch,,s"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RewrightError, match="for example input_ids=batch,sequence"):
        parse_symbols([text])


def test_an_argument_twice() -> None:
    with pytest.raises(RewrightError, match="x is given twice"):
        parse_symbols(["x=b", "x=s"])
