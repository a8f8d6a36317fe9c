"""An alarm: two programs that were proved equal compute other numbers. What shows it is kept, to be run again.

    python -m rewright.refine.alarm FOLDER

runs the programs of a bundle on its inputs and prints the element that differs.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewright.interp.ranks import run_ranks
from rewright.ir.errors import RewrightError
from rewright.ops.base import Array
from rewright.ops.files import load_graph, save_graph
from rewright.refine.twin.contest import Contradiction

PREFIX = "alarm: "
_ABOUT = "about.json"


def bundle(found: Contradiction, folder: Path | None = None) -> Path:
    """Write both programs, what every rank is given, and what differs, into a folder of its own; returns its path.

    Args:
        found: inputs that tell programs apart that were proved equal.
        folder: where the bundle is put; the folder of temporary files by default.
    """
    twin = found.twin
    if twin is None:
        raise RewrightError("this contradiction has no programs; run the pair again")
    path = Path(tempfile.mkdtemp(prefix="rewright-alarm-", dir=folder))
    held = twin.rank_values(found.inputs, found.draw.seed, found.draw.trial)
    for name, graph, given in zip(
        _names(len(twin.program.graphs)),
        (twin.sequential, *twin.program.graphs),
        (found.inputs, *held),
        strict=True,
    ):
        save_graph(graph, path / f"{name}.json")
        labels = list(given)
        arrays: dict[str, Any] = {f"input{number}": given[label] for number, label in enumerate(labels)}
        np.savez(path / f"{name}.npz", labels=np.array(labels, dtype=np.str_), **arrays)
    (path / _ABOUT).write_text(json.dumps(_about(found), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _names(ranks: int) -> list[str]:
    return ["sequential", *(f"rank{rank}" for rank in range(ranks))]


def _about(found: Contradiction) -> dict[str, Any]:
    from rewright import __version__

    example = found.example
    return {
        "reason": found.reason,
        "output": example.output,
        "index": list(example.index),
        "sequential": str(example.sequential_value),
        "distributed": str(example.distributed_value),
        "draw": {"kind": found.draw.kind.value, "trial": found.draw.trial, "seed": found.draw.seed},
        "ranks": 0 if found.twin is None else len(found.twin.program.graphs),
        "versions": {"rewright": __version__, "numpy": np.__version__, "python": platform.python_version()},
    }


def rerun(folder: Path) -> tuple[dict[str, Any], list[Mapping[str, Array]]]:
    """What a bundle is about, and the outputs of the sequential program and of every rank on its inputs."""
    about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    names = _names(int(about["ranks"]))
    graphs = [load_graph(folder / f"{name}.json") for name in names]
    given = [_stored_inputs(folder / f"{name}.npz") for name in names]
    first = run_ranks(graphs[:1], given[:1])
    return about, [run.outputs for run in (*first, *run_ranks(graphs[1:], given[1:]))]


def _stored_inputs(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as stored:
        return {str(label): stored[f"input{number}"] for number, label in enumerate(stored["labels"])}


def main(folder: str) -> None:
    """Print what a bundle shows."""
    about, outputs = rerun(Path(folder))
    print(about["reason"])
    name, index = about["output"], tuple(about["index"])
    print(f"{name}{list(index)} of the sequential program: {outputs[0][name][index]}")
    for rank, held in enumerate(outputs[1:]):
        if name in held:
            same = held[name].shape == outputs[0][name].shape
            print(f"{name} of rank {rank}: {held[name][index] if same else held[name]}")


if __name__ == "__main__":
    main(sys.argv[1])
