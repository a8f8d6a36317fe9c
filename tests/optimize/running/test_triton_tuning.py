"""Tiles are measured once: afterwards the choice is read from disk, as long as it is still one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.optimize.running.triton_tuning import Tiles, recall_or_measure

CHOICES = [Tiles(16, 64), Tiles(32, 128, 8, 3)]


def never() -> Tiles:
    raise AssertionError("measured again")


def test_a_choice_is_measured_once(tmp_path: Path) -> None:
    path = tmp_path / "kernels" / "key.tiles.json"

    assert recall_or_measure(path, CHOICES, lambda: CHOICES[1]) == CHOICES[1]
    assert recall_or_measure(path, CHOICES, never) == CHOICES[1]
    assert [p.name for p in path.parent.iterdir()] == ["key.tiles.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"rows": 16}', '{"rows": 8, "lanes": 64, "warps": 4, "stages": 2}'])
def test_what_is_no_choice_is_measured_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key.tiles.json"
    path.write_text(text)

    assert recall_or_measure(path, CHOICES, lambda: CHOICES[0]) == CHOICES[0]
    assert recall_or_measure(path, CHOICES, never) == CHOICES[0]


def test_what_cannot_be_measured_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        recall_or_measure(tmp_path / "key.tiles.json", CHOICES, never)

    assert not list(tmp_path.iterdir())
