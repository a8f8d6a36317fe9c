"""``python -m bench.conformance``; see the package."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch

import bench.conformance
from bench.conformance.report import NEEDED, report, supported
from bench.conformance.results import Variant, kept, measured
from bench.conformance.samples import DTYPES, database, name_of

_operators: dict[str, Any] = {}


def _operator(name: str) -> Any:
    """The entry of a variant; each process reads the database once."""
    if not _operators:
        torch.set_num_threads(1)
        _operators.update(database())
    return _operators[name]


def _measured(name: str, dtypes: Sequence[str], most: int | None) -> Variant:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(name, _operator(name), dtypes, most)


def _every(names: list[str], dtypes: Sequence[str], most: int | None, jobs: int) -> Iterator[Variant]:
    run = partial(_measured, dtypes=dtypes, most=most)
    if jobs == 1:
        yield from map(run, names)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(run, names)


def main(
    part: str,
    dtypes: Sequence[str],
    most: int | None,
    keep: Path | None,
    write: Path | None,
    jobs: int,
    finished: bool,
) -> int:
    """Run, print and perhaps write the table; 1 where a sample is wrong or too few variants are supported."""
    _operator("add")
    first, step = map(int, part.split("/"))
    names = list(_operators)[first::step]
    done = {variant.name: variant for variant in kept(keep)}
    names = [name for name in names if name in done] if finished else names
    missing = [name for name in names if name not in done]
    for number, variant in enumerate(_every(missing, dtypes, most, jobs), start=1):
        done[variant.name] = variant
        if keep is not None:
            with keep.open("a") as file:
                file.write(variant.text() + "\n")
        print(f"{number}/{len(missing)} {variant.name}: {variant.state}", file=sys.stderr, flush=True)
    variants = [done[name] for name in names]
    page = "\n".join(report(variants, most, len(_operators))) + "\n"
    print(page)
    if write is not None:
        write.write_text(page)
    wrong = [variant.name for variant in variants if variant.state == "wrong"]
    short = step == 1 and not finished and supported(variants) < NEEDED
    if wrong or short:
        print(f"the gate is not met: wrong {wrong}, {supported(variants)} supported", file=sys.stderr)
    return 1 if wrong or short else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=bench.conformance.__doc__)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--dtypes", default=",".join(name_of(dtype) for dtype in DTYPES))
    parser.add_argument("--most", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--finished", action="store_true", help="run nothing: report what is kept")
    chosen = parser.parse_args()
    sys.exit(
        main(
            chosen.part, chosen.dtypes.split(","), chosen.most, chosen.keep, chosen.write, chosen.jobs, chosen.finished
        )
    )
