"""One process for XLA serves all tests of the environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rewright.env.session import Session

pytest.importorskip("jax")
pytest.importorskip("gymnasium")


@pytest.fixture(scope="session")
def xla() -> Iterator[Session]:
    """A session with XLA."""
    with Session() as session:
        yield session
