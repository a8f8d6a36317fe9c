"""`import rewright` is cheap, and the public names are found when they are used."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import rewright


def test_importing_brings_in_nothing_heavy() -> None:
    code = "import sys, rewright; print(*[m for m in ('torch', 'numpy', 'z3', 'rich', 'typer') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_proving_needs_no_torch() -> None:
    code = "import sys, rewright; rewright.refine, rewright.load; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize("name", rewright.__all__)
def test_every_public_name_is_callable_and_documented(name: str) -> None:
    value = getattr(rewright, name)
    assert callable(value)
    assert value.__doc__


def test_refine_is_the_function_also_when_its_package_was_imported() -> None:
    importlib.import_module("rewright.refine.verdict")
    assert list(inspect.signature(rewright.refine).parameters) == [
        "sequential",
        "distributed",
        "relations",
        "expect",
        "budget",
        "audit",
        "explain",
        "allow_vacuous",
        "require_collectives",
        "tell",
    ]
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        rewright.refine()  # type: ignore[call-arg]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'refien'"):
        getattr(rewright, "refien")  # noqa: B009


def test_public_names_are_listed() -> None:
    assert set(rewright.__all__) <= set(dir(rewright))


@pytest.mark.parametrize("name", ["equiv", "refine"])
def test_a_package_that_is_called_takes_what_the_function_takes(name: str) -> None:
    """``rewright.equiv`` is a function until the package of that name is imported."""
    package = importlib.import_module(f"rewright.{name}")
    own = inspect.signature(getattr(package, name)).parameters

    assert list(inspect.signature(package).parameters) == list(own)
