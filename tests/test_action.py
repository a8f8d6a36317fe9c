"""The GitHub Action: its file, and the script of its one step that is ours, run as a runner would."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rewright.frontends.files import save
from tests.refine.stacks import stack

yaml = pytest.importorskip("yaml", reason="comes with the extra rewright[models]")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


def script_of(action: dict[str, Any]) -> str:
    return str(next(step["run"] for step in action["runs"]["steps"] if step.get("id") == "refine"))


def test_the_file_is_a_composite_action(action: dict[str, Any]) -> None:
    assert action["runs"]["using"] == "composite"
    assert all(step.get("shell") == "bash" for step in action["runs"]["steps"] if "run" in step)
    assert all("description" in entry for entry in (*action["inputs"].values(), *action["outputs"].values()))
    steps = {step["id"] for step in action["runs"]["steps"] if "id" in step}
    used = re.findall(r"steps\.(\w+)\.outputs\.(\w+)", str(action["outputs"]))
    assert {step for step, _ in used} <= steps
    assert all(f'echo "{name}=' in script_of(action) for _, name in used)


def test_inputs_are_never_text_of_a_script(action: dict[str, Any]) -> None:
    """An input that holds a command must not become one."""
    assert all("${{" not in step["run"] for step in action["runs"]["steps"] if "run" in step)


def ran(action: dict[str, Any], folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The script with the variables that a runner sets."""
    command = folder / "bin" / "rewright"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from rewright.__main__ import main; main()" "$@"\n')
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    names = ("MATRIX", "SEQUENTIAL", "DISTRIBUTED", "ARGUMENTS", "CACHE")
    given = {f"REWRIGHT_{name}": inputs.get(name.lower(), "") for name in names}
    paths = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", script_of(action)],
        cwd=folder,
        env={**os.environ, **given, **paths, "PATH": path, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_claim(action: dict[str, Any], tmp_path: Path) -> None:
    sequential, program = stack(2, dropped=[0])
    save(sequential, tmp_path / "s.json")
    save(program, tmp_path / "r.json")
    finished = ran(action, tmp_path, sequential="s.json", distributed="r.json", arguments="--budget 60")
    assert finished.returncode == 1, finished.stderr
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    assert outputs["status"] == "1"
    assert all((tmp_path / outputs[name]).is_file() for name in ("html", "junit", "sarif"))
    assert (tmp_path / "summary").read_text().startswith("### Rewright: 1 refuted")


def test_a_matrix(action: dict[str, Any], tmp_path: Path) -> None:
    sequential, program = stack(2)
    save(sequential, tmp_path / "s.json")
    save(program, tmp_path / "r.json")
    (tmp_path / "m.toml").write_text('[models.a]\nsequential = "s.json"\ndistributed = "r.json"\n')
    finished = ran(action, tmp_path, matrix="m.toml", cache="true")
    assert finished.returncode == 0, finished.stderr
    assert list((tmp_path / ".rewright-cache").glob("*.proof.json.gz"))


def test_text_in_an_input_is_not_run(action: dict[str, Any], tmp_path: Path) -> None:
    finished = ran(
        action, tmp_path, sequential="$(touch hacked)", distributed="; touch hacked", arguments="`touch hacked`"
    )
    assert finished.returncode == 3
    assert not (tmp_path / "hacked").exists()
