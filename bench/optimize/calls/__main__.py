"""``python -m bench.optimize.calls``: random calls of many programs against eager PyTorch, as a table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.optimize.alone import Row, alone
from bench.optimize.calls.programs import PROGRAMS
from bench.tables import print_table

TASK = (sys.executable, "-W", "ignore", "-m", "bench.optimize.calls.task")
HEADER = ("program", "door", "calls", "by kernels", "differ", "so does PyTorch's own compiler", "made")
DOORS = ("optimize", "compile", "train")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the calls, print a line for each program and door and each difference; 1 where there is one."""
    options = _options(arguments)
    wanted = [(name, door) for name in options.programs for door in options.doors]
    each = -(-options.calls // len(wanted))
    rows: list[Row] = []

    def cells() -> Iterator[Sequence[str]]:
        with ThreadPoolExecutor(options.workers) as pool:
            for row in pool.map(lambda pair: _row(*pair, each, options), wanted):
                rows.append(row)
                found = row.get("found", {})
                made = ", ".join(f"{v} {k[9:]}" for k, v in sorted(found.items()) if k.startswith("kernels: "))
                bad, theirs = (f"{len(row.get(key, ()))}" for key in ("differences", "theirs"))
                calls, kernels = (f"{found.get(key, 0)}" for key in ("calls", "by kernels"))
                yield row["program"], row["door"], calls, kernels, bad, theirs, made
                for text in _wrong(row):  # at once, since the rest may take hours
                    print(text, file=sys.stderr, flush=True)

    print_table(HEADER, cells())
    total = {key: sum(r.get("found", {}).get(key, 0) for r in rows) for key in ("calls", "by kernels")}
    wrong = [text for row in rows for text in _wrong(row)]
    print(
        f"\n{total['calls']} calls, {total['by kernels']} of them by kernels; {len(wrong)} differ or ended the process"
    )
    print("\n".join(wrong))
    return bool(wrong)


def _row(program: str, door: str, calls: int, options: Any) -> Row:
    asked = {
        "program": program,
        "door": door,
        "calls": calls,
        "each": options.each,
        "seed": f"{options.seed} {door} {program}",
    }
    return {**alone(asked, options.budget, threads=1, command=TASK), "program": program, "door": door}


def _wrong(row: Row) -> list[str]:
    """Each difference of a program, and how its process ended where it did not end by itself."""
    where = f"{row['program']}, {row['door']}: "
    ended = [f"{row['ended']}: {row['said']}"] if "ended" in row else []
    return [where + text for text in (*row.get("differences", ()), *ended)]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.optimize.calls", description=__doc__)
    add = parser.add_argument
    add("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS), metavar="NAME")
    add("--doors", nargs="+", choices=DOORS, default=list(DOORS))
    add("--calls", type=int, default=10_000, help="of all programs together")
    add("--each", type=int, default=12, help="calls of what was made once")
    add("--seed", type=int, default=0)
    add("--budget", type=float, default=900.0, help="seconds by the clock for each program")
    add("--workers", type=int, default=2, help="processes at a time")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
