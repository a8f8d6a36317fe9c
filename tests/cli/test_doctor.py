"""What is installed, what is not, and what brings it."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from rewright import packages
from rewright.cli import doctor
from rewright.cli.main import run
from rewright.packages import Package, known, missing, package


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with an old jaxlib and no ray, compiler or GPU."""
    before = metadata.version

    def version(name: str) -> str:
        if name == "ray":
            raise metadata.PackageNotFoundError(name)
        return "0.4.1" if name == "jaxlib" else before(name)

    monkeypatch.setattr(packages.metadata, "version", version)
    monkeypatch.setattr(doctor, "compiler", lambda: None)
    monkeypatch.setattr(doctor, "_gpu", lambda: "")


def test_what_is_here_and_what_is_not(
    lacking: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["doctor"]) == 0
    lines = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert {
        "C++ compiler: none",
        f"torch {metadata.version('torch')} >=2.11,<2.15",
        "jaxlib 0.4.1 (!) >=0.10.2,<0.11",
        "refine --matrix --executor ray no: pip install 'ray>=2.50'",
        "optimize, on the CPU no: install g++ or clang++",
        "optimize, on a GPU no: a CUDA device",
        "refine, equiv, capture: PyTorch yes",
    } <= lines


def test_as_json(lacking: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["packages"]["jaxlib"] == {"installed": "0.4.1", "tested": ">=0.10.2,<0.11", "fits": False}
    lacks = {use["what"]: use["lacks"] for use in found["uses"]}
    assert lacks["refine --matrix --executor ray"] == ["pip install 'ray>=2.50'"]


def test_nothing_runs_without_numpy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lacking = Package("no-such-package", package("numpy").wanted, is_needed=True)
    monkeypatch.setattr(doctor, "known", lambda: {**known(), "no-such-package": lacking})
    assert known()["numpy"].is_needed and not known()["torch"].is_needed
    assert run(["doctor"]) == 3


def test_a_missing_package_is_named_with_what_installs_it() -> None:
    assert missing("gymnasium", "env") == (
        "env needs the package gymnasium, which is not installed; run pip install 'gymnasium>=1.2'"
    )
    assert package("some-package").command == "pip install 'some-package'"
    assert {"pytest", "sphinx", "playwright"}.isdisjoint(known())
