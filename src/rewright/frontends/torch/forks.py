"""Starting processes that are copies of this one."""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

_Answer = TypeVar("_Answer")


def start(workers: Iterable[multiprocessing.process.BaseProcess]) -> None:
    """Start forked processes.

    JAX warns of any fork once it has been used, because its threads do not survive one, and Python from 3.12 on of one
    beside other threads; these processes trace torch programs, and neither call JAX nor wait for other threads.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        warnings.filterwarnings("ignore", r"This process .* is multi-threaded", DeprecationWarning)
        for worker in workers:
            worker.start()


def are_possible() -> bool:
    """Whether this process may be copied: Windows copies none, and a daemon has no children."""
    return "fork" in multiprocessing.get_all_start_methods() and not multiprocessing.current_process().daemon


class Asked(Generic[_Answer]):
    """What a function gives in a copy of this process, which goes on meanwhile; None where that copy fails."""

    def __init__(self, function: Callable[[], _Answer]) -> None:
        context = multiprocessing.get_context("fork")  # closures cannot be sent
        self._receiver, sender = context.Pipe(duplex=False)
        self._worker = context.Process(target=_send, args=(sender, function))
        start([self._worker])
        sender.close()

    def answer(self, seconds: float) -> _Answer | None:
        """The result, waited for as long; None for a copy that is not done then, as one that waits for a lock."""
        try:
            return self._receiver.recv() if self._receiver.poll(seconds) else None
        except EOFError:
            return None

    def end(self) -> None:
        """End the copy, whatever it is doing."""
        self._worker.kill()
        self._worker.join()
        self._receiver.close()


def _send(sender: Any, function: Callable[[], object]) -> None:
    import torch  # a thread pool of the parent does not survive the fork

    torch.set_num_threads(1)
    try:
        sender.send(function())
    except Exception:  # whatever it is, the parent finds out without the copy
        sender.send(None)
    finally:
        sender.close()


def is_refused(error: Exception) -> bool:
    """Whether PyTorch refused a backward pass in the copy of a process that has run one, as builds for CUDA do."""
    return "Autograd-and-Fork" in str(error)


__all__ = ["Asked", "are_possible", "is_refused", "start"]
