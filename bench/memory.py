"""Memory of a process, as the system tells it."""

from __future__ import annotations

import resource
from pathlib import Path

from rewright.env.session import Session
from rewright.ir.errors import RewrightError


def resident(process: int | str = "self") -> int:
    """MiB that a process has in memory now; 0 where it is gone, or the system has no ``/proc``."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS:")), 0)


def of_xla(session: Session) -> int:
    """MiB that the process of XLA has in memory now."""
    try:
        return resident(session.worker.call("process_number"))
    except RewrightError:
        return 0


def most() -> int:
    """MiB that this process had in memory at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
