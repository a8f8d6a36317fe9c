"""Errors of kernels beside those of eager PyTorch, both against float64: ``python -m bench.optimize.errors``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from bench.optimize import ours
from bench.optimize.program import Built
from bench.optimize.programs import eviction
from bench.tables import print_table
from rewright.optimize.running.targets import TORCH

DTYPES = {str(t).removeprefix("torch."): t for t in TORCH.values() if t.is_floating_point and t is not torch.float64}


def main() -> None:
    """Print one row for each module, dtype and length, with the worst output over all seeds at each scale."""
    options = _options()
    scales = options.scales
    print(f"kernels for {options.target or 'the machine'} / eager: largest error against float64\n")
    worst: list[float] = []

    def rows() -> Iterator[Sequence[object]]:
        for name in options.modules:
            for kind in options.dtypes:
                for length in options.lengths:
                    shape = (length, options.heads, options.width)
                    cells = _cells(name, DTYPES[kind], shape, scales, options.seeds, options.target)
                    worst.extend(mine / own if own else float(mine > 0) for mine, own in cells)
                    yield name, kind, length, *(f"{mine:.1e} / {own:.1e}" for mine, own in cells)

    with torch.no_grad():
        print_table(("module", "dtype", "S", *(f"scale {s:g}" for s in scales)), rows())
    above = sum(ratio > 1 for ratio in worst)
    print(f"\nabove eager's error: {above} of {len(worst)}, at most {max(worst):.2f} times")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", nargs="+", default=list(eviction.MODULES), choices=list(eviction.MODULES))
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument("--scales", nargs="+", type=float, default=[1.0, 3.0, 10.0, 30.0], help="of the inputs")
    parser.add_argument("--lengths", nargs="+", type=int, default=[16, 101, 300], help="ragged in all tiles")
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=5, help="so many inputs of each kind")
    parser.add_argument("--target", help="cpu, torch, or cuda (without a GPU Triton's interpreter)")
    return parser.parse_args()


def _cells(
    name: str, dtype: torch.dtype, shape: tuple[int, int, int], scales: Sequence[float], seeds: int, target: Any
) -> list[tuple[float, float]]:
    """For each scale the errors of kernels and of eager, of the output where the first is worst beside the second."""
    module = eviction.MODULES[name]
    found = ours.kernels_alone(Built(module, eviction.inputs(name, *shape, dtype, "cpu", 1.0)), target=target)
    if found.runner is None:
        return [(math.inf, math.nan)] * len(scales)
    cells: list[tuple[float, float]] = []
    for scale in scales:
        mine, own = [0.0], [0.0]
        for seed in range(seeds):
            given = eviction.inputs(name, *shape, dtype, "cpu", scale, seed)
            exact = _tensors(module(*(t.double() for t in given)))
            mine = _larger(mine, _errors(found, given, exact))
            own = _larger(own, _errors(module, given, exact))
        cells.append(max(zip(mine, own, strict=True), key=lambda pair: pair[0] / (pair[1] or 1e-30)))
    return cells


def _errors(function: Callable[..., Any], given: eviction.Tensors, exact: Sequence[torch.Tensor]) -> list[float]:
    """The largest error of each output (of conditions the share that differs); infinite where it is not finite."""
    found: list[float] = []
    for mine, expected in zip(_tensors(function(*given)), exact, strict=True):
        if mine.dtype is torch.bool:
            found.append((mine != expected).double().mean().item())
            continue
        known = expected.isfinite()
        error = (mine.double() - expected)[known].abs()
        found.append(error.nan_to_num(math.inf).max().item() if error.numel() else 0.0)
    return found


def _larger(left: Sequence[float], right: Sequence[float]) -> list[float]:
    left = left if len(left) == len(right) else [0.0] * len(right)
    return [max(a, b) for a, b in zip(left, right, strict=True)]


def _tensors(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, tuple) else [value]


if __name__ == "__main__":
    main()
