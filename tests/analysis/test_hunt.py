"""Random pairs of programs that differ at special values: what is proved without a condition is equal there too."""

from __future__ import annotations

from bench.hunt_values import hunt


def test_no_pair_is_proved_that_differs_at_special_values() -> None:
    found, wrong = hunt(7_000_000, 300)
    assert wrong == []
    assert found["agree, proved"] > 20
    assert found["differ, proved under conditions"] + found["differ, not proved"] > 60
