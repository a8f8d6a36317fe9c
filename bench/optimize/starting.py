"""What a process pays until its first call is done, and a later one: ``python -m bench.optimize.starting``."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.tables import print_table

HEADER = ("program", "process", "import torch", "beyond it", "runs")
Example = tuple[Callable[..., Any], tuple[Any, ...]]


def causal() -> Example:
    """Causal attention of 512 tokens, as it is written out."""
    import torch

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(512, 512, dtype=torch.bool).triu(1)
        return torch.softmax((q @ k.transpose(-1, -2) / 8).masked_fill(mask, float("-inf")), -1) @ v

    return run, tuple(torch.randn(1, 8, 512, 64) for _ in range(3))


def mlp() -> Example:
    """A feed-forward block."""
    import torch

    layers = torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)
    return torch.nn.Sequential(*layers).eval(), (torch.randn(64, 256),)


def norm() -> Example:
    """A layer normalisation."""
    import torch

    return torch.nn.LayerNorm(1024).eval(), (torch.randn(512, 1024),)


def encoder() -> Example:
    """An encoder layer of PyTorch."""
    import torch

    return torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).eval(), (torch.randn(2, 128, 256),)


EXAMPLES = {f.__name__: f for f in (causal, mlp, norm, encoder)}


def main() -> None:
    """Print a row for each process of each program: one with an empty cache, and later ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", nargs="+", default=list(EXAMPLES), choices=list(EXAMPLES))
    parser.add_argument("--later", type=int, default=3, help="processes after the first one")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside is not None:
        print(json.dumps(_started(options.inside)))
        return
    print("seconds of the processor, all threads of it; Python's own bytecode is kept as it is by default\n")
    print_table(HEADER, _rows(options.programs, options.later))


def _rows(programs: Sequence[str], later: int) -> Iterator[Sequence[object]]:
    for name in programs:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(1 + later):
                yield name, number + 1, *_process(name, Path(folder))


def _process(name: str, folder: Path) -> tuple[float, float, str]:
    """Seconds of a process whose caches are in a folder, and what ran."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(folder), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-W", "ignore", "-m", "bench.optimize.starting", "--inside", name]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    torch_, beyond, runs = json.loads(done.stdout.splitlines()[-1])
    return torch_, beyond, runs


def _started(name: str) -> tuple[float, float, str]:
    """In a process of its own: seconds of ``import torch``, those from then on to the first result, and what ran."""
    begun = time.process_time()
    import torch

    imported = time.process_time()
    function, args = EXAMPLES[name]()
    made = time.process_time()
    import rewright as rw

    with torch.no_grad():
        fast = rw.optimize(function, args)
        fast(*args)
    return imported - begun, time.process_time() - made, f"{fast.status}, {fast.runs}"


if __name__ == "__main__":
    main()
