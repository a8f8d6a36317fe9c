"""The files that a report is written to: a page, JUnit, SARIF, a summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import rewright
from rewright.cli.programs import check_target
from rewright.ir.errors import RewrightError
from rewright.report import Claim, junit, page, sarif, summary


@dataclass(frozen=True)
class Outputs:
    """Where to write, by form; None for what is not wanted."""

    html: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    summary: Path | None = None

    def check(self) -> None:
        """Raise RewrightError before long work for a file that cannot be written."""
        for path in (self.html, self.junit, self.sarif, self.summary):
            if path is not None:
                check_target(path)

    def write(self, claims: Sequence[Claim], title: str) -> None:
        """Write all that is wanted; a summary is added to what its file holds. Raises RewrightError."""
        if self.html is not None:
            _write(self.html, page(claims, title))
        if self.junit is not None:
            _write(self.junit, junit(claims))
        if self.sarif is not None:
            _write(self.sarif, json.dumps(sarif(claims, rewright.__version__), indent=2) + "\n")
        if self.summary is not None:
            _write(self.summary, summary(claims), mode="a")

    @property
    def draws(self) -> bool:
        """Whether pictures are needed."""
        return self.html is not None


def _write(path: Path, text: str, mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise RewrightError(f"cannot write {path}: {error.strerror}; name another file") from None
