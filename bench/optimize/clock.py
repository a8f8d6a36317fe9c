"""Times of functions that take turns, so that a busy machine is busy for all of them."""

from __future__ import annotations

import fcntl
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

Call = Callable[[], Any]


def timed(call: Call) -> tuple[float, float]:
    """Milliseconds by the clock and of the processor, all threads of it, that one call takes."""
    wait()
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wait()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


def wait() -> None:
    """Until a GPU, where there is one, has done what was asked of it."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextmanager
def device_to_itself(device: str) -> Generator[None]:
    """With no other process of the benchmark that takes times on a GPU, where several programs run side by side."""
    if device == "cpu":
        yield
        return
    with (Path(tempfile.gettempdir()) / "rewright-bench.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def in_turns(
    calls: Mapping[str, Call], rounds: int, seconds: float, *, before: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """The median and the best time of each function by both clocks, from rounds in which every one has its turn.

    Args:
        calls: functions that have run before.
        rounds: how many; a slow function has as many turns as fit into its share of the time, and one at least.
        seconds: for all of them.
        before: is told whose turn it is.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    turns: dict[str, int] = {}
    for name, call in calls.items():
        before(name)
        once = timed(call)
        turns[name] = min(rounds, int(1e3 * seconds / len(calls) / max(once[0], 1e-3)) - 1)
        found[name] = [once] if turns[name] < 1 else []  # otherwise it was for warming up
    for turn in range(rounds):
        # In another order each time: who comes after one that reads the same memory finds it in the cache.
        for name in random.Random(turn).sample(list(calls), len(calls)):
            if turn < turns[name]:
                before(name)
                found[name].append(timed(calls[name]))
    return {name: _summary(pairs) for name, pairs in found.items()}


def _summary(pairs: list[tuple[float, float]]) -> dict[str, float]:
    wall, cpu = zip(*pairs, strict=True)
    return {
        "wall": statistics.median(wall),
        "best wall": min(wall),
        "cpu": statistics.median(cpu),
        "best cpu": min(cpu),
        "runs": len(pairs),
    }
