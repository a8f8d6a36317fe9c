"""Times in turns: who is slow has fewer turns, and one at least."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.optimize import clock
from bench.optimize.clock import in_turns


def test_peers_take_turns_and_a_slow_one_has_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    now = [0.0]

    def call(name: str, seconds: float) -> None:
        order.append(name)
        now[0] += seconds

    times = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0] / 2)
    monkeypatch.setattr(clock, "time", times)

    found = in_turns(
        {"quick": lambda: call("quick", 0.001), "slow": lambda: call("slow", 0.05)}, 3, 0.02, before=lambda name: None
    )

    assert order == ["quick", "slow", "quick", "quick", "quick"]
    assert (found["quick"]["runs"], found["slow"]["runs"]) == (3, 1)
    assert found["slow"] == pytest.approx({"wall": 50, "best wall": 50, "cpu": 25, "best cpu": 25, "runs": 1})


def test_everyone_has_a_turn_in_each_round_and_the_order_changes() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    in_turns(calls, 8, 10.0, before=lambda name: None)
    rounds = [order[k : k + 3] for k in range(0, len(order), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len({tuple(one) for one in rounds}) > 3, "nobody always comes after the same one"
