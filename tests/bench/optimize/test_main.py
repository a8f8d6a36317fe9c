"""``python -m bench.optimize``: one program from start to table, and rows that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.optimize.__main__ import main
from bench.optimize.peers import ALONE
from bench.optimize.rows import read_rows

TINY = ["--tiny", "--programs", "rms_norm_residual", "--peers", "eager", ALONE, "--rounds", "2", "--budget", "60"]


def test_a_program_is_measured_once_and_taken_from_the_file_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows" / "optimize.jsonl"
    main([*TINY, "--json", str(file)])
    printed = capsys.readouterr().out
    assert "| rms_norm_residual | norms | float32 | proved | 1 | 0 |" in printed
    assert "kernels over eager: geometric mean" in printed
    (row,) = read_rows(file)
    assert row["times"]["eager"]["runs"] == row["times"][ALONE]["runs"] == 2
    assert row["error 30"][ALONE] < 1e-5
    file.write_text(json.dumps({**row, "status": "kept"}) + "\n")
    main([*TINY, "--json", str(file), "--resume"])
    assert "| rms_norm_residual | norms | float32 | kept |" in capsys.readouterr().out
    assert len(read_rows(file)) == 1
