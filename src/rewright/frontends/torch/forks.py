"""Starting processes that are copies of this one."""

from __future__ import annotations

import multiprocessing.process
import warnings
from collections.abc import Iterable


def start(workers: Iterable[multiprocessing.process.BaseProcess]) -> None:
    """Start forked processes.

    JAX warns of any fork once it has been used, because its threads do not survive one; these processes trace torch
    programs and never call it.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        for worker in workers:
            worker.start()


def is_refused(error: Exception) -> bool:
    """Whether PyTorch refused a backward pass in the copy of a process that has run one, as builds for CUDA do."""
    return "Autograd-and-Fork" in str(error)


__all__ = ["is_refused", "start"]
