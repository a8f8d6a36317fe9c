"""What came of all samples of a variant, in a form that is kept in a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.conformance.outcomes import Kind, outcome
from bench.conformance.samples import DTYPES, cases, name_of, supports

WRONG: tuple[Kind, ...] = ("differs", "foreign")
State = Literal["whole", "part", "refused", "wrong", "nothing"]


@dataclass(frozen=True)
class Line:
    """The samples of a variant in one dtype, forward or backward: how many came out how, with a reason of each."""

    dtype: str
    backward: bool
    counts: dict[str, int]
    reasons: dict[str, str]

    @property
    def equal(self) -> int:
        """Samples whose graph computes what PyTorch does."""
        return sum(self.counts.get(kind, 0) for kind in ("equal", "rounded", "guarded"))

    @property
    def wrong(self) -> int:
        """Samples that break the gate."""
        return sum(self.counts.get(kind, 0) for kind in WRONG)


@dataclass(frozen=True)
class Variant:
    """All lines of a variant."""

    name: str
    lines: list[Line] = field(default_factory=list[Line])

    @property
    def main(self) -> Line | None:
        """The first dtype, forward, in which PyTorch itself runs a sample."""
        forward = [line for line in self.lines if not line.backward]
        return next((line for line in forward if sum(line.counts.values()) > line.counts.get("skipped", 0)), None)

    @property
    def state(self) -> State:
        """Supported whole or in part, or not."""
        if any(line.wrong for line in self.lines):
            return "wrong"
        main = self.main
        if main is None:
            return "nothing"
        if not main.equal:
            return "refused"
        return "part" if main.counts.get("refused") else "whole"

    def text(self) -> str:
        """As one line of a file."""
        return json.dumps({"name": self.name, "lines": [vars(line) for line in self.lines]})


def measured(name: str, op: Any, dtypes: Sequence[str], most: int | None) -> Variant:
    """Run the samples of a variant in some dtypes."""
    found = Variant(name)
    for backward in (False, True):
        for dtype in DTYPES:
            if name_of(dtype) not in dtypes or not supports(op, dtype, backward=backward):
                continue
            counts: Counter[str] = Counter()
            reasons: dict[str, str] = {}
            for case in cases(op, dtype, backward=backward, most=most):
                came = outcome(case)
                counts[came.kind] += 1
                if came.why:
                    reasons.setdefault(came.kind, came.why)
            found.lines.append(Line(name_of(dtype), backward, dict(counts), reasons))
    return found


def kept(path: Path | None) -> Iterator[Variant]:
    """The variants of a file, as far as it was written."""
    if path is None or not path.exists():
        return
    for text in path.read_text().splitlines():
        entry = json.loads(text)
        yield Variant(entry["name"], [Line(**line) for line in entry["lines"]])
