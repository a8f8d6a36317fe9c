"""``python -m rewright`` is the command ``rewright``."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading

COLLECTIONS = (100_000, 20, 100)
"""When Python looks for garbage: nearly all that is allocated while packages are imported stays."""


def main() -> None:
    """The entry point of the command: an interrupt is one line at any time, also while its parts are imported."""
    gc.set_threshold(*COLLECTIONS)
    try:
        from rewright.cli.main import run

        status = run(sys.argv[1:])
        _leave(status)
    except KeyboardInterrupt:
        print("rewright: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)


def _leave(status: int) -> None:
    """End the process, unless threads are at work or nobody reads its output.

    Python would free each object by itself, which takes half a second after PyTorch was imported.
    """
    if threading.active_count() > 1:
        return
    atexit._run_exitfuncs()  # once  # pyright: ignore[reportPrivateUsage]
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(status)


if __name__ == "__main__":
    main()
