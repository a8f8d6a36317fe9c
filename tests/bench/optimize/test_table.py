"""What is said of rows: ratios, means, who loses and why, and what failed."""

from __future__ import annotations

from typing import Any

import pytest

from bench.optimize import table
from bench.optimize.peers import ALONE, OTHERS, PEERS


def row(name: str, ours: float | None, **more: Any) -> dict[str, Any]:
    times = {"eager": {"wall": 8.0}, "inductor": {"wall": 2.0}}
    times |= {} if ours is None else {ALONE: {"wall": ours}}
    return {"program": name, "family": "norms", "dtype": "float32", "status": "proved", "times": times, **more}


FAST = row("fast", 1.0)
SLOW = row("slow", 4.0, work={"program": 1.0, "plan": 3.0, "ratio": 3.0}, decisions=["products are computed anew"])
CRASHED = row("crashed", None, ended="signal 8 in a call of rewright", said="Floating point exception")
FELL = row("fell", None, status="fallback", reason="the plan is not proved", kernels=2, library=0)


def test_ratios_are_over_eager_and_over_the_best_that_was_measured() -> None:
    assert table.over(SLOW, ("eager",), ALONE, "wall") == 2.0
    assert table.over(SLOW, OTHERS, ALONE, "wall") == 0.5
    assert table.over(CRASHED, OTHERS, ALONE, "wall") is None
    assert table.over(SLOW, OTHERS, ALONE, "cpu") is None


@pytest.mark.parametrize("one", [FAST, SLOW, CRASHED, FELL])
def test_every_row_has_all_cells(one: dict[str, Any]) -> None:
    assert len(table.columns(one, PEERS, "wall")) == len(table.header(PEERS))
    assert len(table.scanned(one)) == len(table.SCANNED)


def test_what_was_not_measured_is_a_dash() -> None:
    cells = dict(zip(table.header(PEERS), table.columns(SLOW, PEERS, "wall"), strict=True))
    assert (cells["sdpa ms"], cells["x best"], cells["floor x best"], cells["work"]) == ("-", "0.50", "-", "3.00")
    assert cells["floor runs"] == "-"


def test_the_end_says_means_losses_with_their_cause_and_failures() -> None:
    lines = list(table.summary([FAST, SLOW, CRASHED, FELL], "wall"))
    assert lines[:2] == [
        "float32: kernels over eager: geometric mean 4.00 of 2; below 0.95 in 0",
        "float32: kernels over the best peer: geometric mean 1.00 of 2; below 0.95 in 1",
    ]
    assert "  slow (float32): 0.50; 3.0 times the program's work; products are computed anew" in lines
    assert "  crashed (float32): signal 8 in a call of rewright (Floating point exception)" in lines
    assert "  fell (float32): the plan is not proved" in lines


def test_errors_beyond_those_of_eager_are_listed() -> None:
    far, near = (row(n, 1.0, **{"error 30": {ALONE: e, "eager": 1e-3}}) for n, e in (("far", 3e-3), ("near", 1.5e-3)))
    lines = list(table.summary([far, near], "wall"))
    assert "  far (float32): error 30: 3.0e-03 and 1.0e-03" in lines
    assert not any("near" in line for line in lines)


def test_a_scan_ends_with_what_is_not_proved_and_what_took_long() -> None:
    long = row("long", None, kernels=1, library=0, seconds={"plan": 2.0, "prove": 4.5})
    lines = list(table.summary_of_scan([long, FELL]))
    assert lines[0] == "proved 1 of 2, 1 of them without a step of a library"
    assert "  fell (float32): fallback: the plan is not proved" in lines
    assert "  long (float32): 6.5 s" in lines
