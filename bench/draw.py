"""Figures as SVG and PDF, from what ``bench.scaling`` and ``bench.uses`` printed: ``python -m bench.draw FOLDER``.

Reads ``scaling.json`` and ``uses.json`` of the folder, and writes ``time.svg``, ``degree.svg``, ``depth.svg`` and
``laws.svg`` beside them, and the same as PDF.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

PUBLISHED = {"gpt": ((2, 1, 13.6), (8, 8, 174.0)), "llama": ((2, 1, 10.0), (8, 8, 237.0))}
"""Degree, layers and seconds that the system which the captures come from publishes, on 16 cores, inference alone."""
COLOURS = {"gpt": "#0a5dc2", "llama": "#b3541e", "qwen2": "#1a7f37"}
_MOST_LAWS = 40


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as SVG and as PDF, the same bytes for the same data."""
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})


def time_by_program(programs: Sequence[dict[str, Any]], folder: Path) -> None:
    """One bar a program, by phase; the capture apart, because it is the model's code that runs there."""
    shown = [one for one in programs if "phases" in one]
    phases = list(dict.fromkeys(phase for one in shown for phase in one["phases"] if phase != "capture"))
    figure = Figure(figsize=(9, 0.45 * len(shown) + 1.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
    names = [one["program"] for one in shown]
    start = [0.0] * len(shown)
    colours = mpl.colormaps["viridis"].resampled(len(phases) + 1)
    for number, phase in enumerate(phases):
        widths = [one["phases"].get(phase, 0.0) for one in shown]
        left.barh(names, widths, left=start, label=phase, color=colours(number))
        start = [a + b for a, b in zip(start, widths, strict=True)]
    left.invert_yaxis()
    left.set_xlabel("seconds to prove, forward and backward, 2 ranks")
    left.legend(fontsize="small")
    right.barh(names, [one["phases"].get("capture", 0.0) for one in shown], color="#9aa4ae")
    right.set_xlabel("seconds to capture")
    save(figure, folder, "time")


def scaling(points: Sequence[dict[str, Any]], folder: Path, captures: str, *, over: str, by: str, name: str) -> None:
    """Seconds over the degree or the depth, a line for each family and value of the other one."""
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes: Axes = figure.subplots()
    shown = [point for point in points if "seconds" in point]
    words = {"degree": "ranks", "layers": "layers"}
    for family in dict.fromkeys(point["family"] for point in shown):
        own = [point for point in shown if point["family"] == family]
        values = sorted({point[by] for point in own})
        for number, value in enumerate(values):
            line = sorted((p[over], p["seconds"]) for p in own if p[by] == value)
            strength = 0.35 + 0.65 * (number + 1) / len(values)
            label = f"{family}, {_counted(value, words[by])}"
            colour = COLOURS.get(family, "#555555")
            axes.plot(*zip(*line, strict=True), marker="o", color=colour, alpha=strength, label=label)
            open_ = [(p[over], p["seconds"]) for p in own if p[by] == value and p["status"] != "proved"]
            if open_:
                axes.scatter(*zip(*open_, strict=True), marker="o", s=40, color="white", edgecolor=colour, zorder=3)
    for family, found in PUBLISHED.items():
        at = [(degree if over == "degree" else layers, seconds) for degree, layers, seconds in found]
        other = [layers if over == "degree" else degree for degree, layers, _ in found]
        axes.scatter(*zip(*at, strict=True), marker="x", s=60, color=COLOURS[family], label=f"{family}, published")
        for (x, y), value in zip(at, other, strict=True):
            side = {"xytext": (-7, 4), "ha": "right"} if x >= 8 else {"xytext": (7, 4), "ha": "left"}
            axes.annotate(_counted(value, words[by]), (x, y), textcoords="offset points", fontsize="small", **side)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted({*(point[over] for point in shown), 8}), minor=False)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(words[over])
    axes.set_ylabel("seconds, whole process, from files to verdict")
    notes = "hollow: not proved; published times are on 16 cores, inference alone"
    axes.set_title(f"captures {captures}; {notes}", fontsize="small")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize="x-small", ncols=2)
    save(figure, folder, name)


def _counted(number: int, word: str) -> str:
    return f"{number} {word.removesuffix('s') if number == 1 else word}"


def laws(programs: Sequence[dict[str, Any]], folder: Path) -> None:
    """How often each law was used in each program."""
    shown = [one for one in programs if one.get("laws")]
    totals: dict[str, int] = {}
    for one in shown:
        for law, count in one["laws"].items():
            totals[law] = totals.get(law, 0) + count
    names = sorted(totals, key=lambda law: -totals[law])[:_MOST_LAWS]
    table = [[max(one["laws"].get(law, 0), 0) for one in shown] for law in names]
    figure = Figure(figsize=(0.55 * len(shown) + 4, 0.24 * len(names) + 2.2), layout="constrained")
    axes: Axes = figure.subplots()
    most = max((max(row) for row in table if row), default=1)
    masked = [[count or float("nan") for count in row] for row in table]
    image = axes.imshow(masked, aspect="auto", cmap="cividis", norm=LogNorm(1, max(most, 2)))
    axes.set_xticks(range(len(shown)), [one["program"] for one in shown], rotation=60, ha="right", fontsize="small")
    axes.set_yticks(range(len(names)), names, fontsize="small")
    figure.colorbar(image, label="uses")
    save(figure, folder, "laws")


def main(arguments: Sequence[str]) -> None:
    """Draw everything that the folder has data for."""
    folder = Path(arguments[0])
    mpl.rcParams["svg.hashsalt"] = "rewright"
    measured = json.loads((folder / "scaling.json").read_text())
    used = json.loads((folder / "uses.json").read_text())["programs"]
    time_by_program(used, folder)
    points, captures = measured["points"], measured["captures"]
    scaling(points, folder, captures, over="degree", by="layers", name="degree")
    scaling(points, folder, captures, over="layers", by="degree", name="depth")
    depths = {point["layers"] for point in points}
    some = [one for one in points if one.get("laws") and one["layers"] == max(depths)]
    named = [{**one, "program": f"{one['family']}, captured, {one['degree']} ranks"} for one in some]
    laws([*used, *named], folder)
    for name in ("time", "degree", "depth", "laws"):
        print(folder / f"{name}.svg", folder / f"{name}.pdf")


if __name__ == "__main__":
    main(sys.argv[1:])
