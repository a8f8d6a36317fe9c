"""Exit status 3 and one line on stderr for what cannot be run."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rewright.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refin"], "No such command 'refin'. Did you mean 'refine'?"),
        (["refine"], "give a sequential and a distributed program"),
        (["refine", "a.json", "b.json", "--meesh", "tp=2"], "No such option: --meesh"),
        (["refine", "a.json", "b.json", "--mesh", "8"], "write name=size, for example --mesh tp=8"),
        (["refine", "a.json", "b.json", "--budget", "soon"], "Invalid value for '--budget'"),
        (["refine", "a.json", "b.json", "--budget", "-1"], "give a number of seconds above zero"),
        (["refine", "a.json", "b.json", "--relations", "missing.toml"], "cannot read missing.toml"),
        (["refine", "missing.json", "b.json"], "missing.json"),
        (["refine", "model.py", "b.json"], "write model.py:function"),
        (["refine", "a.json", "b.json", "--mesh", "tp=0"], "write name=size, for example --mesh tp=8"),
        (["refine", "a.json", "b.json", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["refine", "a.json", "b.json", "--jobs", "two"], "Invalid value for '--jobs'"),
        (
            ["refine", "a.json", "b.json", "--backward"],
            "--backward says how to capture, and a.json is captured already",
        ),
        (["refine", "a.json", "b.json", "--symbolic", "x=b"], "--symbolic says how to capture"),
        (["refine", "a.json", "b.json", "--symbolic", "x"], "for example input_ids=batch,sequence"),
        (["refine", "a.pkl", "b.pkl"], "a.pkl has no known extension; name a file that ends in .rwt, .json, .json.gz"),
        (["capture", "missing.py:build", "-o", "out.json"], "there is no file missing.py"),
        (["capture", "missing.py:build", "-o", "nowhere/out.json"], "there is no folder nowhere; create it first"),
        (["capture", "missing.py:build", "-o", "out.txt"], "out.txt has no known extension"),
        (["capture", "missing.py:build", "-o", "out.rwt", "--mesh", "tp=2"], "out.rwt: text holds one graph"),
        (["capture", "missing.py:build", "-o", "."], "name a file that ends in"),
        (["capture", "graph.json", "-o", "out.json"], "graph.json names no function of a Python file"),
        (["show", "missing.rwt"], "cannot read missing.rwt: No such file or directory; check the path"),
        (["show", "model.py:build"], "model.py:build is no saved program; save it first with rewright capture"),
    ],
)
def test_bad_usage_is_one_line_and_status_three(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("graph.json", b'{"format": "rewright.graph", "version": 1, "na', "this is no JSON (Unterminated string"),
        ("graph.json", b"", "this is no JSON (Expecting value"),
        ("graph.json", b"\xff\xfe", "it is not UTF-8 text; save the program again"),
        ("graph.json", b"{}", "this is no graph"),
        ("graph.json.gz", gzip.compress(b"{}", mtime=0)[:12], "Compressed file ended"),
        ("graph.json.gz", b"{}", "Not a gzipped file"),
        ("graph.rwt", b'graph "one" {\n  %0 = input {label = "x"} : tensor<2xf32> loc("/mod', "line 2: cannot read"),
        ("graph.rwt", b'graph "one" {\n', "the text ends before the closing }; is the file complete?"),
    ],
)
def test_a_file_that_is_cut_or_something_else(
    name: str, contents: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(contents)
    for arguments in (["show", str(path)], ["refine", str(path), str(path)]):
        assert run(arguments) == 3
        printed = capsys.readouterr()
        assert printed.out == ""
        assert message in printed.err
        assert name in printed.err
        assert len(printed.err.splitlines()) == 1


def test_an_error_of_our_own_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(_: object) -> None:
        raise KeyError("left")

    monkeypatch.setattr("rewright.cli.programs.Source.file", broken)
    assert run(["show", "graph.json"]) == 3
    assert capsys.readouterr().err.endswith("this is a bug of rewright (TypeError); report it with the lines above\n")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["refine", "--help"], ["capture", "-h"]])
def test_help_is_printed_and_is_no_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert "Usage: rewright" in capsys.readouterr().out
