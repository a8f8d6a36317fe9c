"""The same on a local Ray: ``make ray``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.cli.matrix.workers import RayWorkers, run_all
from tests.cli.matrix.claims import die, die_once, task
from tests.cli.matrix.test_command import programs

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("ray", reason="needs the extra rewright[ray]")
        root = str(Path(__file__).parents[3])
        source = str(Path(root) / "src")
        own = {"env_vars": {"PYTHONPATH": f"{source}:{root}"}}
        found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", runtime_env=own)
        yield
        found.shutdown()


def test_a_claim_whose_worker_died_is_tried_again(tmp_path: Path) -> None:
    found = list(run_all([task("a", tmp_path), task("b", tmp_path)], RayWorkers(2, die_once)))
    assert sorted(outcome.name for outcome in found) == ["a", "b"]
    assert [outcome.error for outcome in found] == ["", ""]


def test_one_that_always_dies_is_an_error(tmp_path: Path) -> None:
    tasks = [task(name, tmp_path) for name in ("bad", "a")]
    found = {outcome.name: outcome for outcome in run_all(tasks, RayWorkers(2, die), attempts=2)}
    assert found["bad"].error.startswith("its worker died 2 times")
    assert found["a"].error == ""


def test_a_matrix_has_the_same_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = programs(tmp_path)
    status = run(["refine", "--matrix", str(matrix), "--executor", "ray", "--jobs", "2"])
    assert status == 1
    assert "2 claims: 1 proved, 1 refuted; 0 as before" in capsys.readouterr().out
