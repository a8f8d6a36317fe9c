"""What a process that measures writes down as it goes, line by line, for whom waits for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Notes:
    """A file of lines of JSON, each some fields of the row."""

    path: Path

    def know(self, **fields: Any) -> None:
        """Fields that are known now."""
        with self.path.open("a") as file:
            file.write(json.dumps(fields, default=str) + "\n")

    def doing(self, what: str) -> None:
        """What is done next, in case that it does not end."""
        self.know(doing=what)


def read_notes(path: Path) -> dict[str, Any]:
    """All lines as one row; later ones add to earlier ones, and a line that was cut off is left out."""
    row: dict[str, Any] = {}
    for line in path.read_text().splitlines():
        try:
            part = json.loads(line)
        except json.JSONDecodeError:
            continue
        for key, value in part.items():
            row[key] = {**row[key], **value} if isinstance(value, dict) and isinstance(row.get(key), dict) else value
    return row
