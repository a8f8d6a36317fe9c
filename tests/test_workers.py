"""Tasks in processes: results stream in, a dead worker's task is tried again, and harms no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rewright.ir.errors import RewrightError
from rewright.workers import Failure, LocalWorkers, run_all, workers_named
from tests.jobs import die, die_once, echo, jobs


def test_every_task_has_a_process_of_its_own(tmp_path: Path) -> None:
    found = {job.name: process for job, process in run_all(jobs(["a", "b", "c"], tmp_path), LocalWorkers(echo, 2))}
    assert sorted(found) == ["a", "b", "c"]
    assert len(set(found.values())) == 3
    assert os.getpid() not in found.values()


def test_a_task_whose_worker_died_is_tried_again(tmp_path: Path) -> None:
    found = [outcome for _, outcome in run_all(jobs(["a", "b"], tmp_path), LocalWorkers(die_once, 2))]
    assert sorted(map(str, found)) == ["a", "b"]


def test_one_that_always_dies_is_a_failure_and_the_others_are_done(tmp_path: Path) -> None:
    tasks = jobs(["bad", "a", "b"], tmp_path)
    found = {job.name: outcome for job, outcome in run_all(tasks, LocalWorkers(die, 1), attempts=2)}
    assert isinstance(found["bad"], Failure)
    assert found["bad"].why.startswith("its worker died 2 times")
    assert (found["a"], found["b"]) == ("a", "b")


def test_nothing_runs_on_where_the_reader_stops(tmp_path: Path) -> None:
    workers = LocalWorkers(echo, 2)
    outcomes = run_all(jobs(["a", "b", "c", "d"], tmp_path), workers)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert workers.room() == 2


def test_an_executor_that_is_none() -> None:
    with pytest.raises(RewrightError, match="write local or ray"):
        workers_named("cluster", 1, echo)
