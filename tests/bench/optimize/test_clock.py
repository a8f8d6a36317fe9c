"""Times in turns: who is slow has fewer turns, and one at least."""

from __future__ import annotations

import time

from bench.optimize.clock import in_turns


def test_peers_take_turns_and_a_slow_one_has_what_fits() -> None:
    order: list[str] = []
    calls = {"quick": lambda: order.append("quick"), "slow": lambda: (order.append("slow"), time.sleep(0.05))}
    found = in_turns(calls, 3, 0.02, before=lambda name: None)
    assert order == ["quick", "slow", "quick", "quick", "quick"]
    assert (found["quick"]["runs"], found["slow"]["runs"]) == (3, 1)
    assert 50 <= found["slow"]["best wall"] <= found["slow"]["wall"]
    assert found["slow"]["cpu"] < 50


def test_turns_alternate() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    in_turns(calls, 2, 10.0, before=lambda name: None)
    assert order == ["a", "b"] * 3
