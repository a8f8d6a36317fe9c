"""Figures from data files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the extra rewright[docs]")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_all_figures_are_drawn_as_svg_and_pdf(tmp_path: Path) -> None:
    from bench.draw import main

    points = [
        {"family": family, "degree": degree, "layers": layers, "seconds": 1.5, "status": status, "laws": {"add": 3}}
        for family, status in (("gpt", "proved"), ("llama", "unknown"))
        for degree in (2, 8)
        for layers in (1, 8)
    ]
    failed = {"family": "gpt", "degree": 4, "layers": 1, "status": "failed", "error": "no file"}
    (tmp_path / "scaling.json").write_text(json.dumps({"captures": "made up", "points": [*points, failed]}))
    program = {"program": "llama", "phases": {"capture": 1.0, "lift ranks": 0.5}, "laws": {"add": 2, "(no law)": 1}}
    (tmp_path / "uses.json").write_text(json.dumps({"programs": [program, {"program": "x", "status": "failed"}]}))
    main([str(tmp_path)])
    for name in ("time", "degree", "depth", "laws"):
        assert (tmp_path / f"{name}.svg").read_text().lstrip().startswith("<?xml")
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
