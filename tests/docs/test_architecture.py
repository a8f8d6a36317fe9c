"""The page about the house says of each package what the package says of itself."""

from __future__ import annotations

import pytest

from bench.rooms import PAGE, SOURCE, floors, table


def test_the_table_of_rooms_is_that_of_the_docstrings() -> None:
    """``make rooms`` writes it."""
    assert table() in PAGE.read_text()


def test_every_package_has_a_floor() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert packages <= {name for floor in floors() for name in floor}


@pytest.mark.parametrize("package", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")))
def test_a_package_says_what_to_read_first(package: str) -> None:
    assert "Read " in (SOURCE / package / "__init__.py").read_text().partition('"""')[2].partition('"""')[0]
