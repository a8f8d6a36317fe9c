"""The most memory that a call has of PyTorch's allocators at once, beyond what there was before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def peak_of(call: Callable[[], Any], device: str) -> float:
    """Megabytes."""
    return (_on_gpu if device == "cuda" else _on_cpu)(call) / 1e6


def _on_cpu(call: Callable[[], Any]) -> int:
    profiler: Any = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True) as found:
        result = call()
    del result
    events = [e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"]
    total = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        total += event.nbytes()
        most = max(most, total)
    return most


def _on_gpu(call: Callable[[], Any]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
