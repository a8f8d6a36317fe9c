"""The seven modules of ``programs.eviction`` over lengths and scales: ``python -m bench.optimize.lengths``.

On a GPU where there is one. All peers run in one process on the same inputs.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bench.optimize import ours
from bench.optimize.program import Built
from bench.optimize.programs import eviction
from rewright.optimize.api import Optimized

HEADER = (
    "module",
    "scale",
    "peer",
    "ms",
    "ratio to eager",
    "peak MB",
    "max error",
    "finite",
    "found in s",
    "search, proof",
    "proof",
)


def main() -> None:
    """Measure what the options ask for, and print a table."""
    options = _options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    length = options.length or (4096 if device == "cuda" else 1024)
    dtype = torch.float16 if device == "cuda" else torch.float32
    threads = torch.get_num_threads()
    print(f"{device}, S = {length}, {options.heads} heads of {options.width}, {dtype}, {threads} threads\n")
    best: list[float] = []
    print("| " + " | ".join(HEADER) + " |\n" + "|---" * len(HEADER) + "|", flush=True)
    with torch.no_grad():
        for name in options.modules:
            for scale in options.scales:
                best += _module(options, name, scale, length, dtype, device)
    if best:
        print(f"\ngeometric mean over the best of eager and torch.compile: {statistics.geometric_mean(best):.2f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="+", default=list(eviction.MODULES), choices=list(eviction.MODULES))
    parser.add_argument("--peers", nargs="+", default=["eager", "inductor", "sdpa", "flex", "rewright"])
    parser.add_argument("--scales", nargs="+", type=float, default=[1.0, 3.0], help="of the inputs")
    parser.add_argument("--length", type=int)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--runs", type=int, default=5, help="the median of so many is printed")
    parser.add_argument(
        "--json", type=Path, help="a file that gets every row as a line of JSON, for bench.optimize.draw"
    )
    return parser.parse_args()


def _module(
    options: argparse.Namespace, name: str, scale: float, length: int, dtype: torch.dtype, device: str
) -> list[float]:
    """One module at one scale by all peers; the ratio of ours to the best compiler, where both ran."""
    given = eviction.inputs(name, length, options.heads, options.width, dtype, device, scale)
    exact = _exact(name, given)
    times: dict[str, float] = {}
    for peer in options.peers:
        started = time.monotonic()
        function = _peer(peer, name, given)
        if function is None:
            continue
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        result = function(*given)
        found = time.monotonic() - started
        times[peer] = _time(function, given, options.runs, device)
        error, finite = _error(result, exact)
        ratio = times.get("eager", math.nan) / times[peer]
        cells = (
            name,
            f"{scale:g}",
            peer,
            f"{times[peer]:.2f}",
            f"{ratio:.2f}",
            f"{_peak(device):.0f}",
            f"{error:.1e}",
            finite,
            f"{found:.1f}",
            _searched(function),
            _proof(function),
        )
        print("| " + " | ".join(cells) + " |", flush=True)
        if options.json is not None:
            row = {"module": name, "scale": scale, "peer": peer, "length": length, "ms": times[peer]}
            with options.json.open("a") as file:
                file.write(json.dumps({**row, "megabytes": _peak(device), "error": error}) + "\n")
    others = [times[p] for p in ("eager", "inductor") if p in times]
    return [min(others) / times["rewright"]] if others and "rewright" in times else []


def _peer(peer: str, name: str, given: eviction.Tensors) -> Callable[..., Any] | None:
    module = eviction.MODULES[name]
    if peer == "eager":
        return module
    if peer == "inductor":
        torch._dynamo.reset()
        return torch.compile(module, dynamic=False)
    if peer == "sdpa":
        return eviction.fused(name)
    if peer == "flex":
        return eviction.flex(name, given[0]) if name in eviction.FLEX else None
    found = ours.kernels_alone(Built(module, given))
    if found.runner is None:
        print(f"{name}: {found.reason}")
        return None
    return found


def _proof(function: Callable[..., Any]) -> str:
    """How a plan of ours is known to be right."""
    if not isinstance(function, Optimized):
        return ""
    return "certificate" if function.certificate is not None else function.trust.evidence


def _searched(function: Callable[..., Any]) -> str:
    """Seconds that the search for a plan and its proof took, without code generation and tests."""
    return f"{function.seconds['plan'] + function.seconds['prove']:.2f}" if isinstance(function, Optimized) else ""


def _time(function: Callable[..., Any], given: eviction.Tensors, runs: int, device: str) -> float:
    """The median time in milliseconds."""
    if device == "cuda":
        from triton.testing import do_bench

        return float(do_bench(lambda: function(*given), warmup=100, rep=500, return_mode="median"))
    found: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        function(*given)
        found.append(1e3 * (time.perf_counter() - started))
    return statistics.median(found)


def _peak(device: str) -> float:
    """Peak memory of the process so far, or on a GPU since the last reset."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _exact(name: str, given: eviction.Tensors) -> list[torch.Tensor]:
    """The results in float64, head by head so that they fit into memory."""
    parts: list[tuple[torch.Tensor, ...]] = []
    for head in range(given[0].shape[2]):
        some = [t[:, :, head : head + 1].double() for t in given[:3]]
        some += [t[:, head : head + 1].double() if t.ndim == 4 else t.double() for t in given[3:]]
        result = eviction.MODULES[name](*some)
        parts.append(result if isinstance(result, tuple) else (result,))
    return [torch.cat([p[n] for p in parts], 2 if n == 0 else 1) for n in range(len(parts[0]))]


def _error(result: Any, exact: list[torch.Tensor]) -> tuple[float, str]:
    """The largest error over all results (of conditions the share that differs), and whether all are finite."""
    results = result if isinstance(result, tuple) else (result,)
    worst, finite = 0.0, True
    for mine, expected in zip(results, exact, strict=True):
        if mine.dtype is torch.bool:
            worst = max(worst, (mine != expected).float().mean().item())
            continue
        finite = finite and bool(mine.isfinite().all())
        worst = max(worst, (mine.double() - expected).abs().nan_to_num(0).max().item())
    return worst, "yes" if finite else "no"


if __name__ == "__main__":
    main()
