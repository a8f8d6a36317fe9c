"""Damaged files give a verdict or one line, whatever is wrong with them: never a traceback, never a hang."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.frontends.hlo import proto
from rewright.frontends.hlo.text import parse
from tests.frontends.graph_json.captures import Gpt, write
from tests.frontends.hlo import modules
from tests.frontends.mutations import encoded, mutated_bytes, mutated_json, mutated_text

PATIENCE = 60.0
"""Seconds that no file may take; a hang takes longer on any machine."""
SMALL = Gpt(2, 1, sequence=4, batch=1, heads=2, size=2, vocabulary=4)
Damage = Callable[[Path, random.Random], list[str]]


def table(relations: dict[str, str]) -> str:
    return "[relations]\n" + "\n".join(f'"{name}" = "{placement}"' for name, placement in relations.items()) + "\n"


def captured(folder: Path, draw: random.Random) -> list[str]:
    """A capture of two ranks, one of the three documents damaged as JSON, as text or as compressed bytes."""
    sequential = Gpt(1, 1, SMALL.sequence, SMALL.batch, SMALL.heads, SMALL.size, SMALL.vocabulary).documents()
    documents = [*sequential, *SMALL.documents()]
    hit, how = draw.randrange(3), draw.random()
    files: list[str] = []
    for place, document in enumerate(documents):
        changed = mutated_json(document, draw) if place == hit and how < 0.7 else document
        contents = encoded(changed)
        name = "json.gz" if how > 0.9 else "json"
        if place == hit and 0.7 <= how < 0.9:
            contents = mutated_text(contents.decode(), draw).encode()
        contents = gzip.compress(contents, mtime=0) if how > 0.9 else contents
        if place == hit and how > 0.9:
            contents = mutated_bytes(contents, draw)
        (folder / f"{place}.{name}").write_bytes(contents)
        files.append(str(folder / f"{place}.{name}"))
    (folder / "r.toml").write_text(table(SMALL.relations()))
    return [*files, "--relations", str(folder / "r.toml")]


def hlo(folder: Path, draw: random.Random) -> list[str]:
    """A module over two devices, damaged as text or as bytes."""
    form = draw.choice(["hlo", "pb"])
    for name, degree in (("s", 1), ("d", 2)):
        text = modules.llama(degree)
        path = folder / f"{name}.{form}"
        hit = draw.random() < 0.6
        if form == "hlo":
            path.write_text(mutated_text(text, draw) if hit else text)
        else:
            contents = proto.write(parse(text))
            path.write_bytes(mutated_bytes(contents, draw) if hit else contents)
    (folder / "r.toml").write_text(table(modules.relations(2, 1)))
    return [str(folder / f"s.{form}"), str(folder / f"d.{form}"), "--relations", str(folder / "r.toml")]


def relations(folder: Path, draw: random.Random) -> list[str]:
    """Modules that are right with a damaged file of relations."""
    (folder / "s.hlo").write_text(modules.llama(1))
    (folder / "d.hlo").write_text(modules.llama(2))
    (folder / "r.toml").write_text(mutated_text(table(modules.relations(2, 1)), draw))
    return [str(folder / "s.hlo"), str(folder / "d.hlo"), "--relations", str(folder / "r.toml")]


def check(damage: Damage, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refine a damaged file as the command line does, with a budget."""
    arguments = damage(folder, random.Random(seed))
    capsys.readouterr()
    started = time.monotonic()
    status = run(["refine", *arguments, "--budget", "2"])
    printed = capsys.readouterr()
    assert time.monotonic() - started < PATIENCE, seed
    assert "Traceback" not in printed.err, (seed, printed.err)
    if status == 3:
        assert len(printed.err.strip().splitlines()) == 1, (seed, printed.err)
    else:
        assert status in (0, 1, 2), seed
        assert printed.out.startswith(("PROVED", "REFUTED", "UNKNOWN")), seed


@pytest.mark.parametrize(
    ("damage", "count"),
    [
        (captured, 10),
        (hlo, 50),
        (relations, 40),
        pytest.param(captured, 30, marks=pytest.mark.long),
        pytest.param(hlo, 150, marks=pytest.mark.long),
        pytest.param(relations, 120, marks=pytest.mark.long),
    ],
)
def test_hundreds_of_damaged_files(
    damage: Damage, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(count):
        check(damage, seed, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "count"), [(captured, 2_000), (hlo, 5_000), (relations, 3_000)])
def test_ten_thousand_damaged_files(
    damage: Damage, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(1_000_000, 1_000_000 + count):
        check(damage, seed, tmp_path, capsys)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    """Names and texts of a capture stay text."""
    (document,) = Gpt(1).documents()
    harmful = f"__import__('pathlib').Path({str(tmp_path / 'harm')!r}).touch()"
    for node in document["nodes"]:
        node["loc"] = node["nn"] = harmful
    document["nodes"][0]["shape"] = [{"sym": harmful}]
    folder = write(tmp_path / "capture", [document])
    assert run(["show", str(folder)]) == 3
    assert not (tmp_path / "harm").exists()
