"""How rows are shown: columns, ratios, means, and what is said of them at the end."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench.optimize.ours import PHASES
from bench.optimize.peers import ALONE, FLOOR, OTHERS

Row = Mapping[str, Any]
GOOD = 0.95
"""A program below so much of its best peer is listed at the end."""


def time_of(row: Row, peer: str, clock: str) -> float | None:
    """Milliseconds of a peer by a clock; None where it was not measured."""
    return row.get("times", {}).get(peer, {}).get(clock)


def over(row: Row, others: Sequence[str], ours: str, clock: str) -> float | None:
    """How many times faster we are than the best of some peers; None where either was not measured."""
    mine, theirs = time_of(row, ours, clock), [t for p in others if (t := time_of(row, p, clock)) is not None]
    return min(theirs) / mine if mine and theirs else None


def status(row: Row) -> str:
    """How far a program came."""
    return row.get("ended") or row.get("status") or "; ".join(f"{p}: {w}" for p, w in row.get("failed", {}).items())


def columns(row: Row, peers: Sequence[str], clock: str) -> list[str]:
    """The cells of a row of times."""
    head = [row["program"], row["family"], row["dtype"], status(row), _count(row, "kernels"), _count(row, "library")]
    times = [_number(time_of(row, peer, clock)) for peer in peers]
    ratios = [_number(over(row, ("eager",), ALONE, clock)), _number(over(row, OTHERS, ALONE, clock))]
    ratios += [_number(over(row, OTHERS, FLOOR, clock)), _number((row.get("work") or {}).get("ratio"))]
    runs, spent = row.get("floor", {}).get("runs", "-"), _number(row.get("floor", {}).get("seconds"))
    found = "  ".join(f"{row['seconds'][p]:.1f}" for p in PHASES if p in row.get("seconds", {}))
    errors = [_errors(row, "error 1"), _errors(row, "error 30")]
    return [*head, *times, *ratios, runs, *errors, _megabytes(row), found or "-", spent]


def header(peers: Sequence[str]) -> list[str]:
    """The names of ``columns``."""
    head = ["program", "family", "dtype", "status", "kernels", "library", *(f"{p} ms" for p in peers)]
    ratios = ["x eager", "x best", "floor x best", "work", "floor runs"]
    errors = ["error 1, ours/eager", "error 30, ours/eager"]
    return [*head, *ratios, *errors, "MB, ours/inductor", ", ".join(PHASES) + " s", "floor s"]


def scanned(row: Row) -> list[str]:
    """The cells of a row of a scan."""
    seconds = row.get("seconds", {})
    times = [_number(seconds.get(phase)) for phase in ("capture", "plan", "prove")]
    counts = [_count(row, name) for name in ("operators", "kernels", "library")]
    work = _number((row.get("work") or {}).get("ratio"))
    head = [row["program"], row["family"], row["dtype"], status(row)]
    return [*head, *counts, work, *times, _number(row.get("cpu")), _why(row)]


SCANNED = ("program", "family", "dtype", "status", "operators", "kernels", "library")
SCANNED += ("work", "capture s", "plan s", "prove s", "CPU s", "reason")


def _why(row: Row) -> str:
    left = [d for d in row.get("decisions", ()) if "for want of a proof" in d or "has no kernel" in d]
    said = "" if row.get("status") == "proved" else row.get("reason", "")
    return "; ".join(filter(None, (row.get("said", ""), said, *dict.fromkeys(left)))).replace("|", "/")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _count(row: Row, name: str) -> str:
    return "-" if row.get(name) is None else str(row[name])


def _errors(row: Row, name: str) -> str:
    errors = row.get(name, {})
    mine = errors.get(ALONE, errors.get(FLOOR))
    own = errors.get("eager")
    return " / ".join("-" if e is None else f"{e:.0e}" for e in (mine, own))


def _megabytes(row: Row) -> str:
    """What a step with gradients has in memory at most, of ours and by Inductor."""
    found = row.get("megabytes", {})
    return " / ".join("-" if m is None else f"{m:.0f}" for m in (found.get(ALONE), found.get("inductor")))


def summary(rows: Sequence[Row], clock: str) -> Iterator[str]:
    """Geometric means, the programs that lose with what their plans decided, and what failed."""
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        some = [row for row in rows if row["dtype"] == dtype]
        for name, ours, others in _COMPARED:
            found = [r for row in some if (r := over(row, others, ours, clock)) is not None]
            if found:
                mean = statistics.geometric_mean(found)
                behind = sum(r < GOOD for r in found)
                yield f"{dtype}: {name}: geometric mean {mean:.2f} of {len(found)}; below {GOOD} in {behind}"
    yield from _listed("kernels below the best peer", rows, lambda row: _loses(row, ALONE, clock))
    yield from _listed("below the best peer with the floor", rows, lambda row: _loses(row, FLOOR, clock))
    yield from _listed("failed", rows, _failed)
    yield from _listed("farther off than eager by more than twice", rows, _farther)


_COMPARED = (
    ("kernels over eager", ALONE, ("eager",)),
    ("kernels over the best peer", ALONE, OTHERS),
    ("with the floor over eager", FLOOR, ("eager",)),
    ("with the floor over the best peer", FLOOR, OTHERS),
)


def summary_of_scan(rows: Sequence[Row]) -> Iterator[str]:
    """What is not proved, what a bug of ours stands for, and what took long."""
    proved = [row for row in rows if row.get("status") == "proved"]
    whole = sum(not row["library"] for row in proved)
    yield f"proved {len(proved)} of {len(rows)}, {whole} of them without a step of a library"
    yield from _listed(
        "not proved", rows, lambda row: "" if row.get("status") == "proved" else f"{status(row)}: {_why(row)}"
    )
    yield from _listed("for want of a proof or a kernel", proved, _why)
    yield from _listed("plan and proof over 5 s of the processor", rows, _slow)


def _listed(title: str, rows: Sequence[Row], say: Callable[[Row], str]) -> Iterator[str]:
    lines = [f"  {row['program']} ({row['dtype']}): {said}" for row in rows if (said := say(row))]
    if lines:
        yield f"\n{title}: {len(lines)}"
        yield from lines


def _loses(row: Row, ours: str, clock: str) -> str:
    ratio = over(row, OTHERS, ours, clock)
    if ratio is None or ratio >= GOOD:
        return ""
    work = (row.get("work") or {}).get("ratio")
    much = f"; {work:.1f} times the program's work" if work is not None else ""
    why = row.get("floor", {}).get("lines", ())[:1] if ours == FLOOR else row.get("decisions", ())
    return f"{ratio:.2f}{much}; {'; '.join(why) or 'nothing stored'}"


def _failed(row: Row) -> str:
    failed = [f"{peer}: {why}" for peer, why in row.get("failed", {}).items()]
    ended = [f"{row['ended']} ({row.get('said', '')})"] if row.get("ended") else []
    fell = [row["reason"]] if row.get("status") == "fallback" else []
    return "; ".join((*ended, *failed, *fell))


def _farther(row: Row) -> str:
    pairs = [(name, row.get(name, {})) for name in ("error 1", "error 30")]
    far = [
        f"{name}: {e[ALONE]:.1e} and {e['eager']:.1e}"
        for name, e in pairs
        if ALONE in e and "eager" in e and e[ALONE] > 2 * e["eager"] + 1e-6
    ]
    return "; ".join(far)


def _slow(row: Row) -> str:
    seconds = row.get("seconds", {})
    spent = seconds.get("plan", 0.0) + seconds.get("prove", 0.0)
    return f"{spent:.1f} s" if spent > 5 else ""
