"""Where tasks are worked on: processes of this machine, or a Ray cluster; one interface for both.

Every task has a process of its own: versions of the code have modules of the same names, and a task that takes a
process down takes no other task with it. Tasks and what becomes of them are plain values, which travel anywhere.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Generic, Protocol, TypeVar, cast

from rewright.ir.errors import RewrightError
from rewright.packages import missing

ATTEMPTS = 3
"""How often a task is given to a worker that dies with it."""
EXECUTORS = ("local", "ray")
"""What :func:`workers_named` knows."""


class Named(Protocol):
    """A task has a name that no other has."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)
R = TypeVar("R")


@dataclass(frozen=True)
class Failure:
    """Nothing came of a task: why, in words, and whether its worker died, so that it may be tried again."""

    why: str
    died: bool = False


_DIED = Failure("its worker died", died=True)


class Workers(Protocol[T, R]):
    """Takes tasks, as many at a time as there is room for, and gives back what became of them."""

    def room(self) -> int:
        """How many more tasks can be taken now."""
        ...

    def start(self, task: T) -> None:
        """Take a task."""
        ...

    def finished(self) -> list[tuple[T, R | Failure]]:
        """Wait for at least one task, and say what became of it."""
        ...

    def close(self) -> None:
        """End what still runs."""
        ...


def run_all(tasks: Sequence[T], workers: Workers[T, R], attempts: int = ATTEMPTS) -> Iterator[tuple[T, R | Failure]]:
    """What became of all tasks, each as soon as it is there; a dead worker's task is tried again.

    A task whose workers died ``attempts`` times has that as its failure.
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
                if not isinstance(outcome, Failure) or not outcome.died:
                    yield task, outcome
                elif tried[task.name] < attempts:
                    waiting.append(task)
                else:
                    died = f"its worker died {attempts} times; give it more memory, or run it by itself"
                    yield task, Failure(died, died=True)
    finally:
        workers.close()


def workers_named(executor: str, jobs: int, work: Callable[[T], R]) -> Workers[T, R]:
    """The executor of a name, with ``jobs`` tasks at a time; raises RewrightError for any other name."""
    if executor not in EXECUTORS:
        raise RewrightError(f"--executor {executor:.40} is none; write {' or '.join(EXECUTORS)}")
    return RayWorkers(work, jobs) if executor == "ray" else LocalWorkers(work, jobs)


@dataclass(frozen=True)
class _Running(Generic[T]):
    task: T
    process: SpawnProcess
    results: Connection


class LocalWorkers(Generic[T, R]):
    """Up to ``count`` processes of this machine at a time."""

    def __init__(self, work: Callable[[T], R], count: int) -> None:
        self._count = count
        self._work = work
        self._running: list[_Running[T]] = []
        self._context: SpawnContext = multiprocessing.get_context("spawn")

    def room(self) -> int:
        """How many more tasks can be taken now."""
        return self._count - len(self._running)

    def start(self, task: T) -> None:
        """Take a task."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_send, args=(self._work, task, theirs), daemon=True)
        process.start()
        theirs.close()
        self._running.append(_Running(task, process, ours))

    def finished(self) -> list[tuple[T, R | Failure]]:
        """Wait for at least one task, and say what became of it."""
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


def _send(work: Callable[[T], object], task: T, results: Connection) -> None:
    results.send((work(task),))
    results.close()


def _received(one: _Running[Any]) -> Any:
    """What a worker sent; the end of the pipe without anything sent is the end of the worker."""
    try:
        sent: object = one.results.recv()
    except (EOFError, OSError):
        sent = None
    one.results.close()
    one.process.join()
    return cast("tuple[object]", sent)[0] if isinstance(sent, tuple) else _DIED


class RayWorkers(Generic[T, R]):
    """The machines of a Ray cluster, or a local one where there is none; needs the extra ``ray``."""

    def __init__(self, work: Callable[[T], R], count: int | None = None, address: str | None = None) -> None:
        try:
            ray: Any = import_module("ray")
        except ModuleNotFoundError:
            raise RewrightError(missing("ray", "--executor ray")) from None
        self._ray: Any = ray
        self._started = not ray.is_initialized()
        if self._started:
            # Workers are told what they need with each task; nothing of this process is sent along.
            own = {} if address else {"num_cpus": count, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level="error", **own)
        self._count = count or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._work: Any = ray.remote(num_cpus=1, max_calls=1, max_retries=0)(work)
        self._running: dict[Any, T] = {}

    def room(self) -> int:
        """How many more tasks can be taken now."""
        return self._count - len(self._running)

    def start(self, task: T) -> None:
        """Take a task."""
        self._running[self._work.remote(task)] = task

    def finished(self) -> list[tuple[T, R | Failure]]:
        """Wait for at least one task, and say what became of it."""
        ready, _ = self._ray.wait(list(self._running), num_returns=1)
        found: list[tuple[T, R | Failure]] = []
        for handle in ready:
            task = self._running.pop(handle)
            try:
                found.append((task, self._ray.get(handle)))
            except self._ray.exceptions.WorkerCrashedError:
                found.append((task, _DIED))
            except self._ray.exceptions.RayError as error:
                said = next(iter(str(error).splitlines()), type(error).__name__)
                found.append((task, Failure(f"Ray could not run it: {said}")))
        return found

    def close(self) -> None:
        """End what still runs."""
        for handle in self._running:
            self._ray.cancel(handle, force=True)
        self._running = {}
        if self._started:
            self._ray.shutdown()
