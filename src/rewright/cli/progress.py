"""Progress of long work, on stderr, only where that is a terminal; and how long each phase took."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from rewright.refine.verdict import Finding


class Progress:
    """Shows one phase at a time and remembers the seconds of each."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._console = Console(stderr=True)
        self._shown = sys.stderr.isatty()

    def tell(self, finding: Finding) -> None:
        """Show the first thing that was found wrong, while repairs of it are looked for."""
        if self._shown:
            line = f"{finding.kind.replace('_', ' ')}: {finding.message}; looking for a repair"
            self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    @contextmanager
    def phase(self, name: str, description: str) -> Generator[None]:
        """Show the description until the block ends, and add its seconds to the phase of that name."""
        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        start = time.perf_counter()
        try:
            with Bar(*columns, console=self._console, transient=True, disable=not self._shown) as bar:
                bar.add_task(description, total=None)
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
