"""``python -m rewright`` is the command ``rewright``."""

from __future__ import annotations

import gc
import sys

COLLECTIONS = (100_000, 20, 100)
"""When Python looks for garbage: nearly all that is allocated while packages are imported stays."""


def main() -> None:
    """The entry point of the command: an interrupt is one line at any time, also while its parts are imported."""
    gc.set_threshold(*COLLECTIONS)
    try:
        from rewright.cli.main import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("rewright: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
