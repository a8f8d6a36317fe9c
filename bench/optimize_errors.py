"""Errors of kernels beside those of eager PyTorch, both against float64: ``python -m bench.optimize --errors``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import rewright as rw
from bench import attention
from bench.tables import print_table
from rewright.optimize.running.targets import TORCH

DTYPES = {str(t).removeprefix("torch."): t for t in TORCH.values() if t.is_floating_point and t is not torch.float64}


def main(options: argparse.Namespace) -> None:
    """Print one row for each module, dtype and length, with the worst output over all seeds at each scale."""
    scales = options.scales or [1.0, 3.0, 10.0, 30.0]
    print(f"kernels for {options.target or 'the machine'} / eager: largest error against float64\n")
    worst: list[float] = []

    def rows() -> Iterator[Sequence[object]]:
        for name in options.modules:
            for kind in options.dtypes:
                for length in options.lengths:
                    shape = (length, options.heads or 2, options.width)
                    cells = _cells(name, DTYPES[kind], shape, scales, options.seeds, options.target)
                    worst.extend(mine / own if own else float(mine > 0) for mine, own in cells)
                    yield name, kind, length, *(f"{mine:.1e} / {own:.1e}" for mine, own in cells)

    with torch.no_grad():
        print_table(("module", "dtype", "S", *(f"scale {s:g}" for s in scales)), rows())
    above = sum(ratio > 1 for ratio in worst)
    print(f"\nabove eager's error: {above} of {len(worst)}, at most {max(worst):.2f} times")


def _cells(
    name: str, dtype: torch.dtype, shape: tuple[int, int, int], scales: Sequence[float], seeds: int, target: Any
) -> list[tuple[float, float]]:
    """For each scale the errors of kernels and of eager, of the output where the first is worst beside the second."""
    module = attention.MODULES[name]
    found = rw.optimize(
        module, attention.inputs(name, *shape, dtype, "cpu", 1.0), target=target, floor=False, remember=False
    )
    if found.runner is None:
        return [(math.inf, math.nan)] * len(scales)
    cells: list[tuple[float, float]] = []
    for scale in scales:
        mine, own = [0.0], [0.0]
        for seed in range(seeds):
            given = attention.inputs(name, *shape, dtype, "cpu", scale, seed)
            exact = _tensors(module(*(t.double() for t in given)))
            mine = _larger(mine, _errors(found, given, exact))
            own = _larger(own, _errors(module, given, exact))
        cells.append(max(zip(mine, own, strict=True), key=lambda pair: pair[0] / (pair[1] or 1e-30)))
    return cells


def _errors(function: Callable[..., Any], given: attention.Tensors, exact: Sequence[torch.Tensor]) -> list[float]:
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
