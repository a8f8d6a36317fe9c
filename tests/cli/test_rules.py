"""``rewright rules``: lists, proofs and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewright.cli.main import run

HEAD = "from rewright.rules import *\nn = size('n')\nA, B = floats('A', n), floats('B', n)\n"


def prove(path: Path, text: str, *more: str) -> int:
    file = path / "mine.py"
    file.write_text(HEAD + text)
    return run(["rules", "prove", str(file), *more])


def test_the_library_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules"]) == 0
    shown = capsys.readouterr().out
    assert "slice-slice: slice(slice(A)) = slice(A)  [proved, move; refine: slice]" in shown
    assert "max-min-is-clamp" in shown


def test_the_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert {"name", "statement", "evidence", "grade", "provenance", "digest", "family", "used"} <= entries[0].keys()
    used = {entry["name"]: entry["used"] for entry in entries}
    assert used["sum-of-sum"] == ["reduce"]
    # The engine is told nothing of conditions on elements.
    assert used["max-min-is-clamp"] is None
    assert sum(laws is not None for laws in used.values()) > len(used) / 2


def test_one_rule_of_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "prove", "row-parallel"]) == 0
    assert capsys.readouterr().out.startswith("proved row-parallel")


def test_a_file_of_true_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(tmp_path, "RULES = [rule('sum', 'A + B = B + A', A + B, B + A)]") == 0
    assert "1 rules: 1 proved" in capsys.readouterr().out


def test_a_wrong_rule_is_refuted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(tmp_path, "RULES = [rule('sum', 'A - B = B - A', A - B, B - A)]") == 1
    assert "at n=1: element [0] is -1 on the left and 1 on the right" in capsys.readouterr().out


def test_what_is_too_hard_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "from rewright.rules.library.sums import DILATION\nRULES = [DILATION]"
    assert prove(tmp_path, text, "--budget", "0.2") == 2
    assert "unknown convolution-of-padded-dilated" in capsys.readouterr().out


def test_one_wrong_rule_decides_the_status(tmp_path: Path) -> None:
    assert prove(tmp_path, "RULES = [rule('a', '', A, A + 0.0), rule('b', '', A, A + 1.0)]") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RULES = [rule('x', '', A + floats('C', n, n), A)]", "mine.py:4: add needs operands of one shape"),
        ("RULES = [rule('x', '', A, B)]", "mine.py:4: rule 'x': 'B' is read, but the left side does not have it"),
        ("RULES = [rule('x', '', A, A.slice(0, n + 1))]", "mine.py:4: slice needs the limit within the axis"),
        ("RULES = []", "mine.py has no rules"),
        ("RULES = [1]", "mine.py has no rules"),
        ("RULES = [rule('x', '', A, A", "was never closed"),
        ("RULES = [rule('x', '', A, A + 0.0, where=[AtMost(n + 1, n)])]", "contradict each other"),
        ("n = size('a__b')", "is no name for a size"),
    ],
    ids=["shape", "unknown input", "range", "empty", "no rule", "cut off", "contradiction", "name"],
)
def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    assert prove(tmp_path, text) == 3
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_name_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "prove", "slice-slic"]) == 3
    assert "did you mean 'slice-slice'?" in capsys.readouterr().err


def test_the_report_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove(tmp_path, "RULES = [rule('sum', '', A - B, B - A)]", "--json") == 1
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["status"] == "refuted"
    assert entry["counterexample"]["sizes"] == {"n": 1}
