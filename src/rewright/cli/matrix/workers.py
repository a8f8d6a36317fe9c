"""Where claims are worked on: processes of this machine, or a Ray cluster; one interface for both.

Every claim has a process of its own: versions of the code have modules of the same names, and a claim that takes a
process down takes no other claim with it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Protocol

from rewright.cli.matrix.table import Task
from rewright.cli.matrix.work import Outcome, run_task
from rewright.ir.errors import RewrightError

Work = Callable[[Task], Outcome]
ATTEMPTS = 3
"""How often a claim is given to a worker that dies with it."""


class Workers(Protocol):
    """Takes tasks, as many at a time as there is room for, and gives back what became of them."""

    def room(self) -> int:
        """How many more tasks can be taken now."""
        ...

    def start(self, task: Task) -> None:
        """Take a task."""
        ...

    def finished(self) -> list[tuple[Task, Outcome | None]]:
        """Wait for at least one task; None stands for a worker that died."""
        ...

    def close(self) -> None:
        """End what still runs."""
        ...


def run_all(tasks: Sequence[Task], workers: Workers, attempts: int = ATTEMPTS) -> Iterator[Outcome]:
    """The outcomes of all tasks, each as soon as it is there; a dead worker's task is tried again.

    A task whose workers died ``attempts`` times has that as its error.
    """
    waiting, tried = list(tasks), dict.fromkeys((task.name for task in tasks), 0)
    running = 0
    try:
        while waiting or running:
            while waiting and workers.room() > 0:
                task = waiting.pop(0)
                tried[task.name] += 1
                workers.start(task)
                running += 1
            for task, outcome in workers.finished():
                running -= 1
                if outcome is not None:
                    yield outcome
                elif tried[task.name] < attempts:
                    waiting.append(task)
                else:
                    died = f"its worker died {attempts} times; give it more memory, or prove it by itself"
                    yield Outcome(task.name, error=died)
    finally:
        workers.close()


@dataclass(frozen=True)
class _Running:
    task: Task
    process: SpawnProcess
    results: Connection


class LocalWorkers:
    """Up to ``count`` processes of this machine at a time."""

    def __init__(self, count: int, work: Work = run_task) -> None:
        self._count = count
        self._work = work
        self._running: list[_Running] = []
        self._context: SpawnContext = multiprocessing.get_context("spawn")

    def room(self) -> int:
        """How many more tasks can be taken now."""
        return self._count - len(self._running)

    def start(self, task: Task) -> None:
        """Take a task."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_send, args=(self._work, task, theirs), daemon=True)
        process.start()
        theirs.close()
        self._running.append(_Running(task, process, ours))

    def finished(self) -> list[tuple[Task, Outcome | None]]:
        """Wait for at least one task; None stands for a worker that died."""
        ready = set(wait([one.results for one in self._running]))
        done = [one for one in self._running if one.results in ready]
        self._running = [one for one in self._running if one.results not in ready]
        return [(one.task, _received(one)) for one in done]

    def close(self) -> None:
        """End what still runs."""
        for one in self._running:
            one.process.terminate()
            one.process.join()
            one.results.close()
        self._running = []


def _send(work: Work, task: Task, results: Connection) -> None:
    results.send(work(task))
    results.close()


def _received(one: _Running) -> Outcome | None:
    """What a worker sent; the end of the pipe without anything sent is the end of the worker."""
    try:
        found = one.results.recv()
    except (EOFError, OSError):
        found = None
    one.results.close()
    one.process.join()
    return found if isinstance(found, Outcome) else None


class RayWorkers:
    """The machines of a Ray cluster, or a local one where there is none; needs the extra ``ray``."""

    def __init__(self, count: int | None = None, work: Work = run_task, address: str | None = None) -> None:
        try:
            ray: Any = import_module("ray")
        except ModuleNotFoundError:
            raise RewrightError("--executor ray needs the package ray; pip install 'rewright[ray]'") from None
        self._ray: Any = ray
        self._started = not ray.is_initialized()
        if self._started:
            # Workers are told what they need with each task; nothing of this process is sent along.
            own = {} if address else {"num_cpus": count, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level="error", **own)
        self._count = count or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._work: Any = ray.remote(num_cpus=1, max_calls=1, max_retries=0)(work)
        self._running: dict[Any, Task] = {}

    def room(self) -> int:
        """How many more tasks can be taken now."""
        return self._count - len(self._running)

    def start(self, task: Task) -> None:
        """Take a task."""
        self._running[self._work.remote(task)] = task

    def finished(self) -> list[tuple[Task, Outcome | None]]:
        """Wait for at least one task; None stands for a worker that died."""
        ready, _ = self._ray.wait(list(self._running), num_returns=1)
        found: list[tuple[Task, Outcome | None]] = []
        for handle in ready:
            task = self._running.pop(handle)
            try:
                found.append((task, self._ray.get(handle)))
            except self._ray.exceptions.WorkerCrashedError:
                found.append((task, None))
            except self._ray.exceptions.RayError as error:
                said = next(iter(str(error).splitlines()), type(error).__name__)
                found.append((task, Outcome(task.name, error=f"Ray could not run it: {said}")))
        return found

    def close(self) -> None:
        """End what still runs."""
        for handle in self._running:
            self._ray.cancel(handle, force=True)
        self._running = {}
        if self._started:
            self._ray.shutdown()
