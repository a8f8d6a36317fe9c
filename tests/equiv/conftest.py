"""Whatever a test here sees proved has a certificate that holds for the programs as they were captured."""

from __future__ import annotations

from typing import Any

import pytest

from rewright.equiv import engine
from rewright.equiv.audit import audit
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.proof.rewriting.evidence import Checked
from rewright.refine.verdict import Verdict


@pytest.fixture(autouse=True)
def every_equivalence_is_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    certified = engine._certified

    def audited(verdict: Verdict, captured: Any, *rest: Any) -> Verdict:
        found = certified(verdict, captured, *rest)
        if found.status == "proved":
            certificate = found.certificate
            assert isinstance(certificate, EquivalenceCertificate)
            audit(certificate, captured.left, captured.right, store=_LEMMAS, checked=_CHECKED)
        return found

    monkeypatch.setattr(engine, "_certified", audited)


_LEMMAS: set[str] = set()
_CHECKED = Checked(seconds=10.0)
