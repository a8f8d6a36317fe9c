"""The plugin of pytest: claims as assertions, and as fixtures of a user's own tests."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import rewright
from rewright.frontends.files import save
from rewright.ir.errors import RewrightError
from rewright.pytest_plugin import NotProved, assert_equivalent, assert_refines
from tests.programs import mlp
from tests.refine.stacks import stack


def test_a_proof_is_returned() -> None:
    sequential, program = stack(2)
    assert assert_refines(sequential, program, expect={"output": "Replicate()"}).status == "proved"


def test_programs_may_be_files(tmp_path: Path) -> None:
    sequential, program = stack(2)
    save(sequential, tmp_path / "s.json")
    save(program, tmp_path / "r.json")
    assert assert_refines(tmp_path / "s.json", str(tmp_path / "r.json")).status == "proved"
    with pytest.raises(RewrightError, match="several ranks"):
        assert_refines(tmp_path / "r.json", tmp_path / "r.json")


def test_the_message_of_a_failure_is_the_report() -> None:
    sequential, program = stack(2, dropped=[0])
    with pytest.raises(NotProved) as failure:
        assert_refines(sequential, program)
    assert isinstance(failure.value, AssertionError)
    assert failure.value.verdict.status == "refuted"
    assert str(failure.value).startswith("REFUTED: ")
    assert "insert all_reduce over tp" in str(failure.value)


def test_unknown_fails_too() -> None:
    with pytest.raises(NotProved, match="budget"):
        assert_refines(*mlp(2), budget=1e-9)


def test_a_function_of_ranks_needs_a_mesh() -> None:
    with pytest.raises(RewrightError, match="needs a mesh"):
        assert_refines(stack(1)[0], lambda mesh: None)


def test_modules_and_functions_are_captured() -> None:
    torch = pytest.importorskip("torch", reason="captures need the extra rewright[torch]")
    layer, x = torch.nn.Linear(4, 4), torch.zeros(2, 4)
    with pytest.raises(NotProved, match="nothing is distributed"):
        assert_refines((layer, (x,)), lambda mesh: (layer, (x,)), mesh={"tp": 2})
    held = {"weight": "Replicate()", "bias": "Replicate()", "input": "Replicate()"}
    verdict = assert_refines((layer, (x,)), lambda mesh: (layer, (x,)), mesh={"tp": 2}, relations=held)
    assert verdict.relation["output"].placement == "Replicate()"


def test_implementations_are_compared_where_that_is_there() -> None:
    graph = stack(1)[0]
    if not hasattr(rewright, "equiv"):
        with pytest.raises(RewrightError, match="has no equiv"):
            assert_equivalent(graph, graph)
        pytest.skip("this version has no equiv")
    assert assert_equivalent(graph, graph).status == "proved"


def test_pytest_finds_the_plugin() -> None:
    found = [point.value for point in entry_points(group="pytest11") if point.name == "rewright"]
    if not found:
        pytest.skip("rewright is not installed, or was before it had a plugin")
    assert found == ["rewright.pytest_plugin"]


def test_fixtures_in_tests_of_a_user(tmp_path: Path) -> None:
    sequential, program = stack(2, dropped=[0])
    save(sequential, tmp_path / "s.json")
    save(program, tmp_path / "r.json")
    (tmp_path / "test_claim.py").write_text(
        "def test_claim(assert_refines):\n    assert_refines('s.json', 'r.json')\n"
        "def test_there(assert_equivalent):\n    assert callable(assert_equivalent)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    plugin = ["-p", "no:rewright", "-p", "rewright.pytest_plugin"]
    run = subprocess.run(
        [*command, *plugin, "test_claim.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "REFUTED" in run.stdout
    assert "repair          insert all_reduce over tp" in run.stdout


def test_starting_pytest_imports_nothing_heavy() -> None:
    code = "import sys, rewright.pytest_plugin; print([m for m in ('torch', 'numpy', 'z3') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
