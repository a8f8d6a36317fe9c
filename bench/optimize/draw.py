"""Figures of fused kernels beside other compilers: ``python -m bench.optimize.draw FOLDER``.

Runs ``bench.optimize.lengths`` for all modules, and for some modules over the length of the sequence with one process
for each peer, so that the peak of memory is its own. Writes ``optimize.jsonl`` and, as SVG and PDF, ``modules`` (time
by module and peer) and ``lengths`` (throughput and memory over the length).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench.draw import save

PEERS = {"eager": "#888888", "inductor": "#b3541e", "sdpa": "#1a7f37", "flex": "#8250df", "rewright": "#0a5dc2"}
Row = dict[str, Any]


def measure(options: argparse.Namespace, file: Path) -> None:
    """Measure everything that the figures show."""
    bench = [sys.executable, "-m", "bench.optimize.lengths", "--json", str(file), "--runs", str(options.runs)]
    bench += ["--heads", str(options.heads), "--scales", "1"]
    subprocess.run([*bench, *(["--length", str(options.length)] if options.length else [])], check=True)
    for length in options.lengths:
        for module in options.modules:
            for peer in PEERS:
                only = ["--modules", module, "--peers", peer, "--length", str(length)]
                subprocess.run([*bench, *only], check=True)


def by_module(rows: Sequence[Row], folder: Path) -> None:
    """Bars of time by module and peer."""
    modules = list(dict.fromkeys(row["module"] for row in rows))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    for place, (peer, colour) in enumerate(PEERS.items()):
        found = [(modules.index(r["module"]), r["ms"]) for r in rows if r["peer"] == peer]
        where = [x + (place - 2) * 0.16 for x, _ in found]
        axes.bar(where, [ms for _, ms in found], 0.15, color=colour, label=peer)
    axes.set_xticks(range(len(modules)), modules)
    axes.set_ylabel("milliseconds")
    axes.legend()
    save(figure, folder, "modules")


def over_length(rows: Sequence[Row], folder: Path) -> None:
    """Queries per second and peak memory over the length, one pair of axes for each module."""
    modules = list(dict.fromkeys(row["module"] for row in rows))
    figure = Figure(figsize=(9, 3.2 * len(modules)), layout="constrained")
    for line, module in zip(figure.subplots(len(modules), 2, squeeze=False), modules, strict=True):
        for peer, colour in PEERS.items():
            own = sorted((r["length"], r) for r in rows if (r["module"], r["peer"]) == (module, peer))
            lengths = [length for length, _ in own]
            line[0].plot(lengths, [1e3 * r["length"] / r["ms"] for _, r in own], "o-", color=colour, label=peer)
            line[1].plot(lengths, [r["megabytes"] for _, r in own], "o-", color=colour, label=peer)
        for axes, what in zip(line, ("queries per second", "peak of the process in MB"), strict=True):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel(f"{module}: sequence length")
            axes.set_ylabel(what)
        line[0].legend()
    save(figure, folder, "lengths")


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Both figures; the rows of the first run are those of all modules."""
    seen: list[tuple[str, str]] = []
    first: list[Row] = []
    for row in rows:
        if (row["module"], row["peer"]) not in seen:
            seen.append((row["module"], row["peer"]))
            first.append(row)
    by_module(first, folder)
    rest = [row for row in rows if not any(row is one for one in first)]
    if rest:
        over_length(rest, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--modules", nargs="+", default=["attn", "gemma2"], help="those that are measured over lengths")
    parser.add_argument("--lengths", nargs="+", type=int, default=[256, 512, 1024, 2048])
    parser.add_argument("--length", type=int, help="of the run of all modules")
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--drawn", action="store_true", help="draw what an earlier run has measured")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    results = chosen.folder / "optimize.jsonl"
    if not chosen.drawn:
        results.unlink(missing_ok=True)
        measure(chosen, results)
    draw([json.loads(line) for line in results.read_text().splitlines()], chosen.folder)
