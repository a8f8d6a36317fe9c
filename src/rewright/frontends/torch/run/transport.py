"""Ranks that run at the same time, as threads of this process or as forked processes, around one switchboard.

Threads take turns: one runs until it waits for others, so that a run is the same every time and what is global to
the process (random numbers) can be handed from one rank to the next. Processes run freely.
"""

from __future__ import annotations

import multiprocessing
import pickle
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from rewright.frontends.torch import forks
from rewright.frontends.torch.run.exchange import Ask
from rewright.frontends.torch.run.switchboard import Answer, Request, Switchboard
from rewright.ir.errors import CaptureError, RewrightError

Result = TypeVar("Result")
Work = Callable[[int, Ask], Result]
"""What a rank does: called with its number and with the way to ask the others."""


_NO_BACKWARD = (
    "this process has run a backward pass, and PyTorch runs none in copies of it; capture these ranks first, in a "
    "process of its own, or with ranks='threads'"
)


class _Cancelled(BaseException):
    """Unwinds a rank that waits in vain, past every handler of the program."""


@dataclass(frozen=True)
class _Done(Generic[Result]):
    result: Result


@dataclass(frozen=True)
class _Failed:
    error: RewrightError


_Outcome = Request | _Done[Any] | _Failed


def as_threads(work: Work[Result], size: int) -> list[Result]:
    """The results of all ranks, each on a thread of its own; raises what the first of them raised, or a deadlock."""
    seats = [_Seat(work, rank) for rank in range(size)]
    board, ready = Switchboard(), deque[Answer]((rank, None) for rank in range(size))
    results: dict[int, Result] = {}
    try:
        while ready:
            rank, answer = ready.popleft()
            ready += _handle(board, rank, seats[rank].resume(answer), results)
        if len(results) < size:
            raise board.stuck(sorted(results))
    finally:
        for seat in seats:
            seat.cancel()
    return [results[rank] for rank in range(size)]


def _handle(board: Switchboard, rank: int, outcome: _Outcome, results: dict[int, Any]) -> Sequence[Answer]:
    if isinstance(outcome, _Failed):
        raise CaptureError(_NO_BACKWARD) if forks.is_refused(outcome.error) else outcome.error
    if isinstance(outcome, _Done):
        results[rank] = outcome.result
        return []
    return board.submit(rank, outcome)


class _Seat:
    """One rank's thread, which runs only between :meth:`resume` and its next request."""

    def __init__(self, work: Work[Any], rank: int) -> None:
        self._work, self._rank = work, rank
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._answer: Any = None
        self._outcome: _Outcome | None = None
        self._cancelled = False
        self._state = _random_state()
        self._thread = threading.Thread(target=self._run, name=f"rank {rank}", daemon=True)

    def resume(self, answer: Any) -> _Outcome:
        """Let the rank run until it asks for something, ends or fails."""
        outside = _random_state()
        _restore(self._state)
        self._answer = answer
        if not self._thread.is_alive():
            self._thread.start()
        self._go.release()
        self._back.acquire()
        self._state = _random_state()
        _restore(outside)
        assert self._outcome is not None
        return self._outcome

    def cancel(self) -> None:
        """Unwind the rank if it still waits."""
        self._cancelled = True
        if self._thread.is_alive():
            self._go.release()
            self._thread.join()

    def _run(self) -> None:
        self._go.acquire()
        if self._cancelled:
            return
        try:
            with torch.autograd.set_multithreading_enabled(False):
                self._outcome = _Done(self._work(self._rank, self._ask))
        except RewrightError as error:
            self._outcome = _Failed(error)
        except _Cancelled:
            return
        except BaseException as error:  # the scheduler waits for every rank, whatever happens to it
            failed = CaptureError(f"rank {self._rank} ended by {error!r}; correct the program")
            failed.__cause__ = error
            self._outcome = _Failed(failed)
        self._back.release()

    def _ask(self, request: Request) -> Any:
        self._outcome = request
        self._back.release()
        self._go.acquire()
        if self._cancelled:
            raise _Cancelled
        return self._answer


def as_processes(work: Work[Result], size: int) -> list[Result]:
    """The results of all ranks, each in a forked process, for code whose rank is global to its process."""
    context = multiprocessing.get_context("fork")  # build functions are closures, which other methods cannot send
    pipes = [context.Pipe() for _ in range(size)]
    workers = [context.Process(target=_serve, args=(work, rank, pipes[rank][1])) for rank in range(size)]
    forks.start(workers)
    for _, child in pipes:
        child.close()
    try:
        return _served([parent for parent, _ in pipes])
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def _served(parents: Sequence[Connection]) -> list[Any]:
    board, results = Switchboard(), dict[int, Any]()
    waiting: set[int] = set()
    rank_of = {parent: rank for rank, parent in enumerate(parents)}
    while len(results) < len(parents):
        running = [p for p, rank in rank_of.items() if rank not in waiting and rank not in results]
        if not running:
            raise board.stuck(sorted(results))
        for ready in wait(running):
            assert isinstance(ready, Connection)
            rank = rank_of[ready]
            try:
                outcome: _Outcome = pickle.loads(ready.recv_bytes())
            except EOFError:
                raise CaptureError(f"the process of rank {rank} ended without an answer; run it as a thread") from None
            waiting.add(rank)
            for other, answer in _handle(board, rank, outcome, results):
                waiting.discard(other)
                parents[other].send_bytes(pickle.dumps(answer))
    return [results[rank] for rank in range(len(parents))]


def _serve(work: Work[Any], rank: int, parent: Connection) -> None:
    torch.set_num_threads(1)  # a thread pool of the parent does not survive the fork

    def ask(request: Request) -> Any:
        with _disable_current_modes():  # making a tensor again is no operator of the program
            parent.send_bytes(pickle.dumps(request))
            return pickle.loads(parent.recv_bytes())

    try:
        outcome: _Outcome = _Done(work(rank, ask))
    except RewrightError as error:
        outcome = _Failed(error)
    parent.send_bytes(pickle.dumps(outcome))
    parent.close()


def _random_state() -> tuple[Any, Any]:
    return torch.get_rng_state(), random.getstate()


def _restore(state: tuple[Any, Any]) -> None:
    torch.set_rng_state(state[0])
    random.setstate(state[1])
