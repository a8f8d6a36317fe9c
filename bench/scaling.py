"""Seconds from files to verdict over degrees and depths, as JSON: ``python -m bench.scaling [FOLDER]``.

Every program is proved by a process of its own, started as a user would start it; the time is that of the whole
process. With a folder of captures (see ``bench.captured``) these are taken, else captures of the same kinds at tiny
sizes: what a proof costs does not depend on sizes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.captured import Case, published
from tests.frontends.graph_json.captures import Gpt, write
from tests.frontends.hlo import modules

DEGREES, DEPTHS = (2, 4, 8), (1, 2, 4, 8)
_PROGRAM = """
import json, sys, tomllib
import rewright
sequential, distributed, relations = sys.argv[1:]
table = tomllib.loads(open(relations).read()).get("relations", {})
verdict = rewright.refine(rewright.load(sequential), rewright.load(distributed), relations=table)
stats = verdict.stats
print(json.dumps({"status": verdict.status, "nodes": stats.sequential_nodes, "rank_nodes": stats.rank_nodes,
                  "phases": stats.seconds, "laws": stats.laws}))
"""


@dataclass(frozen=True)
class Point:
    """A program of a family, at a degree and a depth."""

    family: str
    degree: int
    layers: int
    case: Case


def measure(point: Point, folder: Path) -> dict[str, Any]:
    """What one process says, and how long it took."""
    relations = folder / "relations.toml"
    lines = (f"{json.dumps(name)} = {json.dumps(what)}" for name, what in point.case.relations.items())
    relations.write_text("[relations]\n" + "\n".join(lines) + "\n")
    files = map(str, (point.case.sequential, point.case.distributed, relations))
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", _PROGRAM, *files], capture_output=True, text=True, check=False)
    head = {"family": point.family, "degree": point.degree, "layers": point.layers}
    seconds = time.perf_counter() - start
    if run.returncode:
        return {**head, "status": "failed", "error": run.stderr.strip().splitlines()[-1]}
    return {**head, "seconds": round(seconds, 3), **json.loads(run.stdout)}


def points(folder: Path, captures: Path | None) -> Iterator[Point]:
    """The programs of a folder of captures, or some that are written to a folder."""
    if captures is not None:
        for case in published(captures):
            found = re.fullmatch(r"(\w+)/\D+(\d+)_layer(\d+)", case.name)
            if found is not None:
                family = "llama" if "llama" in found[1] else found[1]
                yield Point(family, int(found[2]), int(found[3]), case)
        return
    for layers in DEPTHS:
        for degree in DEGREES:
            kind = Gpt(degree, layers)
            sequential = write(folder / f"gpt1_{layers}", Gpt(1, layers).documents())
            distributed = write(folder / f"gpt{degree}_{layers}", kind.documents())
            yield Point("gpt", degree, layers, Case("gpt", sequential, distributed, dict(kind.relations())))
        for degree in (2, 4):
            files = [folder / f"llama{count}_{layers}.hlo" for count in (1, degree)]
            for file, count in zip(files, (1, degree), strict=True):
                file.write_text(modules.llama(count, layers))
            yield Point("llama", degree, layers, Case("llama", *files, dict(modules.relations(degree, layers))))


def main(arguments: Sequence[str]) -> None:
    """Print a list of measurements."""
    captures = Path(arguments[0]) if arguments else None
    with tempfile.TemporaryDirectory() as name:
        found = [measure(point, Path(name)) for point in points(Path(name), captures)]
    print(json.dumps({"captures": "published" if captures else "written at tiny sizes", "points": found}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
