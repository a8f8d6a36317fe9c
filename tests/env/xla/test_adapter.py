"""The adapter of jaxlib's private names: what ends a compilation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from rewright.env.xla.adapter import Adapter


class _Failing:
    """A client of XLA that calls what is hooked in and then fails, by itself or because of that."""

    def __init__(self, adapter: Adapter, own: str = "") -> None:
        self.adapter, self.own = adapter, own

    def compile_and_load(self, *_: object) -> None:
        try:
            self.adapter._hook(b"module")
        except Exception as error:
            raise RuntimeError(f"INTERNAL: {self.own or error}") from None


def test_a_failure_of_xla_is_not_taken_for_our_own_stop() -> None:
    adapter: Any = object.__new__(Adapter)
    adapter._xc, adapter._devices, adapter._mode = import_module("jaxlib.xla_client"), None, ""
    adapter._client = _Failing(adapter)
    assert adapter._compile(b"", "capture") is None
    assert adapter._captured == b"module"
    adapter._client = _Failing(adapter, own="out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):
        adapter._compile(b"", "capture")
