"""A process of its own: what it knew before it crashed or did not end is a row that says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.optimize.alone import alone
from bench.optimize.notes import Notes, read_notes

WRITES = """
import json, os, sys, time
def note(**fields):
    with open(sys.argv[1], "a") as file:
        file.write(json.dumps(fields) + chr(10))
note(times={"eager": 2.0}, doing="a call of rewright")
"""


@pytest.mark.parametrize(
    ("rest", "ended", "said"),
    [
        ("os.abort()", "signal 6 in a call of rewright", ""),
        ("time.sleep(60)", "over the budget of 1 s in a call of rewright", ""),
        ("sys.exit('no such thing')", "exit status 1 in a call of rewright", "no such thing"),
    ],
)
def test_what_does_not_end_well_is_a_row(tmp_path: Path, rest: str, ended: str, said: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(WRITES + rest)
    row = alone({}, 1.0, command=(sys.executable, str(script)))
    assert row == {"times": {"eager": 2.0}, "ended": ended, "said": said}


def test_what_ends_well_is_its_notes_and_knows_what_was_asked(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WRITES + "note(asked=json.loads(sys.argv[2]), threads=os.environ['OMP_NUM_THREADS'])")
    row = alone({"program": "causal"}, 20.0, 3, command=(sys.executable, str(script)))
    assert row == {"times": {"eager": 2.0}, "asked": {"program": "causal"}, "threads": "3"}


def test_later_notes_add_to_earlier_ones_and_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    notes.know(first={"eager": 1.0}, status="proved")
    notes.know(first={"inductor": 2.0})
    with notes.path.open("a") as file:
        file.write('{"first": {"rewr')
    assert read_notes(notes.path) == {"first": {"eager": 1.0, "inductor": 2.0}, "status": "proved"}
