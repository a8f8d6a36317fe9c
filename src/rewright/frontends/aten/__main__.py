"""``python -m rewright.frontends.aten --list``: the operators that lower, as a Markdown table."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rewright.frontends.aten.tables import supported_operators


def table() -> str:
    """One row per family: its name, how many operators it has, and their names."""
    rows = ["| family | operators | names |", "|---|---|---|"]
    for family, names in supported_operators().items():
        rows.append(f"| {family} | {len(names)} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(rows)


def main(arguments: Sequence[str]) -> None:
    """Print the table; exits with a line of usage for other arguments."""
    if list(arguments) != ["--list"]:
        sys.exit("usage: python -m rewright.frontends.aten --list")
    print(table())


if __name__ == "__main__":
    main(sys.argv[1:])
