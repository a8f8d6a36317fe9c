"""What is loaded, and when; and that garbage is collected as before."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from rewright.optimize.loading import load

LOADED = "import sys; from rewright.optimize.api import optimize; print('torch._dynamo' in sys.modules)"


def test_the_package_needs_no_dynamo_before_it_is_called() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


@pytest.fixture
def unloaded() -> str:
    """A small module that is loaded anew."""
    name = "nturl2path"
    sys.modules.pop(name, None)
    return name


def test_garbage_is_collected_after_a_module_is_loaded(unloaded: str) -> None:
    assert gc.isenabled()

    load(unloaded)

    assert unloaded in sys.modules
    assert gc.isenabled() and not gc.get_freeze_count()


def test_what_somebody_froze_stays_frozen(unloaded: str) -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        load(unloaded)
        assert gc.get_freeze_count() > frozen / 2 > 0, "what is freed is not counted, all else is"
    finally:
        gc.unfreeze()


def test_who_collects_nothing_still_collects_nothing(unloaded: str) -> None:
    gc.disable()
    try:
        load(unloaded)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collections_go_on_where_a_module_cannot_be_loaded() -> None:
    with pytest.raises(ModuleNotFoundError):
        load("rewright.no_such_module")

    assert gc.isenabled()
