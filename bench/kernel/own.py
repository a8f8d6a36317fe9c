"""``python -m bench.kernel.own [NAME ...]``: the Triton kernels that optimize prints, against the program."""

from __future__ import annotations

import sys
import time
from importlib import metadata

import rewright as rw
from bench.kernel.rows import normal
from rewright.ir.errors import RewrightError
from rewright.optimize.running.printed import prove_printed
from tests.optimize.programs import PROGRAMS


def line(name: str) -> str:
    """What the table says of a program."""
    program, args = PROGRAMS[name]()
    started = time.process_time()
    try:
        found = prove_printed(program, args, budget=10)
        status = found.status if found.status == "proved" else f"{found.status}: {found.reason[:110]}"
        runs = found.runs
    except RewrightError as error:
        status, runs = f"error: {str(error)[:110]}", 0
    return f"| {name} | {status} | {runs} | {time.process_time() - started:.1f} |"


def main() -> int:
    rw.kernel(lambda x: x, lambda x: x, (normal(1),))  # what is imported once
    print(f"triton {metadata.version('triton')}\n")
    print("| program | verdict | runs | seconds of CPU |\n|---|---|---|---|")
    for name in PROGRAMS:
        if not sys.argv[1:] or name in sys.argv[1:]:
            print(line(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
