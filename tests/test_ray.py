"""The same on a local Ray: ``make ray``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.workers import Failure, RayWorkers, run_all
from tests.cli.matrix.test_command import programs
from tests.env.modules import LOOP, RATES
from tests.jobs import die, die_once, jobs

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("ray", reason="needs the extra rewright[ray]")
        root = str(Path(__file__).parents[1])
        source = str(Path(root) / "src")
        own = {"env_vars": {"PYTHONPATH": f"{source}:{root}"}}
        found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", runtime_env=own)
        yield
        found.shutdown()


def test_a_task_whose_worker_died_is_tried_again(tmp_path: Path) -> None:
    found = [outcome for _, outcome in run_all(jobs(["a", "b"], tmp_path), RayWorkers(die_once, 2))]
    assert sorted(map(str, found)) == ["a", "b"]


def test_one_that_always_dies_is_a_failure(tmp_path: Path) -> None:
    tasks = jobs(["bad", "a"], tmp_path)
    found = {job.name: outcome for job, outcome in run_all(tasks, RayWorkers(die, 2), attempts=2)}
    assert isinstance(found["bad"], Failure)
    assert found["bad"].why.startswith("its worker died 2 times")
    assert found["a"] == "a"


def test_a_matrix_has_the_same_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = programs(tmp_path)
    status = run(["refine", "--matrix", str(matrix), "--executor", "ray", "--jobs", "2"])
    assert status == 1
    assert "2 claims: 1 proved, 1 refuted; 0 as before" in capsys.readouterr().out


def test_rollouts_end_where_they_end_in_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    for name, text in (("rates", RATES), ("loop", LOOP)):
        (tmp_path / f"{name}.hlo").write_text(text)
    line = ["env", "bench", str(tmp_path), "--agents", "always-first", "--names", "algsimp", "--jobs", "2"]
    said: list[str] = []
    for executor in ("ray", "local"):
        assert run([*line, "--executor", executor, "--json"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
