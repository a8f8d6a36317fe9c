"""Claims in processes: results stream in, a dead worker's claim is tried again, and harms no other."""

from __future__ import annotations

import os
from pathlib import Path

from rewright.cli.matrix.workers import LocalWorkers, run_all
from tests.cli.matrix.claims import die, die_once, echo, task


def test_every_claim_has_a_process_of_its_own(tmp_path: Path) -> None:
    tasks = [task(name, tmp_path) for name in "abc"]
    found = list(run_all(tasks, LocalWorkers(2, echo)))
    assert sorted(outcome.name for outcome in found) == ["a", "b", "c"]
    processes = {outcome.document["process"] for outcome in found}
    assert len(processes) == 3
    assert os.getpid() not in processes


def test_a_claim_whose_worker_died_is_tried_again(tmp_path: Path) -> None:
    found = list(run_all([task("a", tmp_path), task("b", tmp_path)], LocalWorkers(2, die_once)))
    assert sorted(outcome.name for outcome in found) == ["a", "b"]
    assert [outcome.error for outcome in found] == ["", ""]


def test_one_that_always_dies_is_an_error_and_the_others_are_done(tmp_path: Path) -> None:
    tasks = [task(name, tmp_path) for name in ("bad", "a", "b")]
    found = {outcome.name: outcome for outcome in run_all(tasks, LocalWorkers(1, die), attempts=2)}
    assert found["bad"].error.startswith("its worker died 2 times")
    assert found["a"].error == found["b"].error == ""


def test_nothing_runs_on_where_the_reader_stops(tmp_path: Path) -> None:
    workers = LocalWorkers(2, echo)
    outcomes = run_all([task(name, tmp_path) for name in "abcd"], workers)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert workers.room() == 2
