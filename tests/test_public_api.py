"""`import rewright` is cheap, and the public names are found when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import rewright


def test_importing_brings_in_nothing_heavy() -> None:
    code = "import sys, rewright; print(*[m for m in ('torch', 'numpy', 'z3', 'rich', 'typer') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.parametrize("name", rewright.__all__)
def test_every_public_name_is_callable_and_documented(name: str) -> None:
    value = getattr(rewright, name)
    assert callable(value)
    assert value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'refien'"):
        getattr(rewright, "refien")  # noqa: B009


def test_public_names_are_listed() -> None:
    assert set(rewright.__all__) <= set(dir(rewright))
