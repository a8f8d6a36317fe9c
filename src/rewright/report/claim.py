"""A claim and its verdict, as the reports take them; and verdicts read back from their JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rewright.ir.errors import RewrightError
from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Counterexample, Evidence, Finding, OutputRelation, Stats, Verdict, Where


@dataclass(frozen=True)
class Claim:
    """What was compared, what was found, and pictures of it."""

    name: str
    verdict: Verdict
    seconds: float = 0.0
    drawings: tuple[str, ...] = ()
    """For every finding SVG that takes its colours from the page, or nothing."""
    error: str = ""
    """Why there is no verdict: a capture that failed, a file that is missing; the verdict is then ``unknown``."""

    @property
    def status(self) -> str:
        """``"proved"``, ``"vacuous"``, ``"refuted"``, ``"unknown"`` or ``"error"``."""
        return "error" if self.error else self.verdict.status


def read_verdict(found: Mapping[str, Any]) -> Verdict:
    """The verdict behind a dictionary of :func:`rewright.report.document`, without programs and certificate.

    Raises RewrightError where it is none.
    """
    try:
        status = found["status"]
        if status not in ("proved", "vacuous", "refuted", "unknown"):
            raise ValueError(status)
        stats = found["stats"]
        return Verdict(
            status=status,
            evidence=Evidence(found["evidence"]),
            assumptions=tuple(found["assumptions"]),
            relation={r["name"]: OutputRelation(**_only(r, OutputRelation)) for r in found["outputs"]},
            findings=tuple(_finding(one) for one in found["findings"]),
            notes=tuple(found["notes"]),
            stats=Stats(**_only(stats, Stats)),
            reason=str(found["reason"]),
            validation=str(found.get("validation", "")),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RewrightError(
            f"this is no report of a verdict ({type(error).__name__}: {error}); make it again"
        ) from None


def _only(found: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """The entries that a class has fields for; later versions may add others."""
    return {name: value for name, value in found.items() if name in getattr(kind, "__dataclass_fields__", {})}


def _finding(found: Mapping[str, Any]) -> Finding:
    return Finding(
        kind=str(found["kind"]),
        message=str(found["message"]),
        sequential=_span(found["sequential"]),
        distributed=_span(found["distributed"]),
        expected=str(found["expected"]),
        found=str(found["found"]),
        suggestion=found["suggestion"],
        counterexample=_counterexample(found["counterexample"]),
        why_not=str(found.get("why_not", "")),
        also=tuple(found.get("also", ())),
        where=Where(**_only(found.get("where", {}), Where)),
    )


def _span(found: Mapping[str, Any] | None) -> SourceSpan | None:
    return None if found is None else SourceSpan(**_only(found, SourceSpan))


def _counterexample(found: Mapping[str, Any] | None) -> Counterexample | None:
    if found is None:
        return None
    sizes = cast("Mapping[str, Sequence[int]]", found["sizes"])
    return Counterexample(
        {name: tuple(shape) for name, shape in sizes.items()},
        str(found["output"]),
        tuple(found["index"]),
        float(found["sequential_value"]),
        float(found["distributed_value"]),
        int(found["seed"]),
    )
