"""``python -m bench.kernel.own [--budget SECONDS] [NAME ...]``: what optimize prints in Triton, against the program."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from importlib import metadata

import rewright as rw
from bench.kernel.rows import normal
from rewright.ir.errors import RewrightError
from rewright.optimize.kernel import Kernel
from rewright.optimize.running.printed import prove_printed
from rewright.optimize.running.triton_tuning import Tiles, small_tiles
from tests.optimize.programs import PROGRAMS


def verdict(name: str, tiles: Callable[[Kernel], Tiles] | None, budget: float) -> str:
    """What the table says of a program with some tiles, of which a proof is looked for so many seconds."""
    program, args = PROGRAMS[name]()
    try:
        found = prove_printed(program, args, tiles=tiles, budget=budget)
    except RewrightError as error:
        return f"error: {str(error)[:70]}"
    return found.status if found.status == "proved" else f"{found.status}: {found.reason[:70]}"


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--budget", type=float, default=10)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    rw.kernel(lambda x: x, lambda x: x, (normal(1),))  # what is imported once
    print(f"triton {metadata.version('triton')}\n")
    print("| program | a GPU's first tiles | small tiles | seconds of CPU |\n|---|---|---|---|")
    for name in PROGRAMS:
        if not asked.names or name in asked.names:
            started = time.process_time()
            found = [verdict(name, tiles, asked.budget) for tiles in (None, small_tiles)]
            print(f"| {name} | {' | '.join(found)} | {time.process_time() - started:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
