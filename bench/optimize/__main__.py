"""``python -m bench.optimize``: programs of many families by several compilers, one process a program, as a table.

``--scan`` asks only what is proved, and in what time; ``--backward`` measures forward and gradient.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.optimize import table
from bench.optimize.peers import PEERS
from bench.optimize.programs import FAMILIES, PROGRAMS, chosen
from bench.optimize.rows import Row, Run, rows
from bench.tables import print_table

DTYPES = ("float32", "bfloat16", "float16", "float64")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the options ask for, and print a table with what is to be said of it."""
    options = _options(arguments)
    task = "scan" if options.scan else "gradients" if options.backward else "times"
    size = "large" if options.large else "tiny" if options.tiny else "full"
    run = Run(task, size, options.peers, options.rounds, options.budget, options.threads, options.device)
    families = ["models"] if options.large and options.families is None else options.families
    wanted = [(p, dtype) for p in chosen(families, options.programs) for dtype in options.dtypes]
    if options.backward:
        wanted = [(p, dtype) for p, dtype in wanted if p.backward]
    print(f"{task}, {size} sizes, {options.threads or os.cpu_count()} threads, {options.clock}\n")
    found: list[Row] = []

    def cells() -> Iterator[Sequence[str]]:
        for row in rows(run, wanted, options.json, options.resume, options.workers):
            found.append(row)
            yield table.scanned(row) if options.scan else table.columns(row, options.peers, options.clock)

    print_table(table.SCANNED if options.scan else table.header(options.peers), cells())
    print()
    for line in table.summary_of_scan(found) if options.scan else table.summary(found, options.clock):
        print(line)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.optimize", description=__doc__)
    add = parser.add_argument
    add("--families", nargs="+", choices=list(FAMILIES), help="by default all")
    add("--programs", nargs="+", choices=list(PROGRAMS), metavar="NAME", help="by default all of these families")
    add("--dtypes", nargs="+", choices=DTYPES, default=["float32"])
    add("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    add("--scan", action="store_true", help="capture, plan and proof only, on the target torch")
    add("--backward", action="store_true", help="forward and gradient of the programs where that means something")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--large", action="store_true", help="whole models of 20 to 100 million parameters")
    sizes.add_argument("--tiny", action="store_true", help="the sizes of the tests, of which no time means anything")
    add("--rounds", type=int, default=9, help="turns of each peer")
    add("--budget", type=float, default=240.0, help="seconds by the clock for each program")
    add("--threads", type=int, help="of each program; by default as many as the machine has")
    add("--device", default="cpu", help="where programs run, such as cuda")
    add("--workers", type=int, default=1, help="programs at a time; with more than one, times mean little")
    add("--clock", choices=("wall", "best wall", "cpu", "best cpu"), default="wall", help="median or best, by which")
    add("--json", type=Path, help="a file that every row is added to, as a line")
    add("--resume", action="store_true", help="take the rows that this file has from it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
