"""The file of claims: what it says, and what is wrong with it in one sentence."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewright.cli.matrix.table import read_tasks
from rewright.ir.errors import RewrightError

MATRIX = """
[models.llama]
sequential = "llama.py:sequential"
distributed = "llama.py:parallel"
relations = "relations-{mesh}.toml"
backward = true

[models.saved]
sequential = "saved.json"
distributed = ["{ranks}/r0.json", "{ranks}/r1.json"]
meshes = ["small"]
versions = ["new"]
budget = 5

[meshes]
small = "tp=2"
large = "dp=2,tp=4"

[versions]
old = "old"
new = "."
"""


def written(folder: Path, text: str) -> Path:
    (folder / "old").mkdir(exist_ok=True)
    path = folder / "matrix.toml"
    path.write_text(text)
    return path


def test_claims_are_models_times_meshes_times_versions(tmp_path: Path) -> None:
    tasks = read_tasks(written(tmp_path, MATRIX))
    assert [task.name for task in tasks] == [
        "llama / small / old",
        "llama / small / new",
        "llama / large / old",
        "llama / large / new",
        "saved / small / new",
    ]
    assert tasks[2].axes == (("dp", 2), ("tp", 4))
    assert tasks[2].relations == "relations-large.toml"
    assert tasks[2].backward
    assert tasks[2].folder == str((tmp_path / "old").resolve())
    assert tasks[4].distributed == ("2/r0.json", "2/r1.json")
    assert tasks[4].budget == 5.0


def test_meshes_and_versions_may_be_left_out(tmp_path: Path) -> None:
    text = '[models.a]\nsequential = "s.json"\ndistributed = "r.json"\n'
    (task,) = read_tasks(written(tmp_path, text))
    assert (task.name, task.axes, task.folder) == ("a", (), str(tmp_path.resolve()))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[models.llama]", "[model.llama]", "'model' is no table of a matrix"),
        ("backward = true", 'backward = "yes"', "models.llama.backward is 'yes'"),
        ("backward = true", "backwards = true", "'backwards' says nothing of a model; did you mean 'backward'"),
        ("relations-{mesh}", "relations-{size}", "has a name in braces that is none of"),
        ("relations-{mesh}", "relations-{mesh.__class__}", "has a name in braces"),
        ('"tp=2"', '"tp"', "meshes.small"),
        ('"old"', '"gone"', "versions.old is 'gone', which is no folder"),
        ('meshes = ["small"]', 'meshes = ["smal"]', "there is no 'smal'"),
        ("budget = 5", "budget = -1", "budget is -1"),
        ('sequential = "saved.json"', "sequential = 3", "models.saved.sequential"),
        ("[meshes]", "[meshes", "is no TOML"),
    ],
)
def test_what_is_wrong_is_named(before: str, after: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RewrightError) as error:
        read_tasks(written(tmp_path, MATRIX.replace(before, after)))
    assert message in str(error.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(place=st.integers(0, len(MATRIX) - 1), insert=st.text(max_size=3), cut=st.integers(0, 12))
def test_damaged_files_are_refused_or_read(place: int, insert: str, cut: int, tmp_path: Path) -> None:
    """Never anything but RewrightError."""
    path = written(tmp_path, "")
    path.write_text(MATRIX[:place] + insert + MATRIX[place + cut :], encoding="utf-8", errors="replace")
    with suppress(RewrightError):
        read_tasks(path)
