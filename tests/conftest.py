"""Every run draws the same examples: a change that breaks a test has broken it, and not the dice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings

from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.checker import audit
from rewright.refine import engine, objections
from rewright.refine.twin.contest import Contradiction
from rewright.refine.verdict import Verdict

settings.register_profile("reproducible", derandomize=True, deadline=None, database=None)
settings.load_profile("reproducible")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test with ``sample(4)`` the first, the fifth and so on stay, and the others are long."""
    met = Counter[str]()
    for item in items:
        sample = item.get_closest_marker("sample")
        if sample is None or any(item.get_closest_marker(name) for name in ("slow", "long")):
            continue
        name = item.nodeid.partition("[")[0]
        if met[name] % sample.args[0]:
            item.add_marker("long")
        met[name] += 1


@pytest.fixture(autouse=True)
def every_proof_is_audited(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Whatever a test sees proved, the independent checker has confirmed; lemmas are proved once a run."""
    if request.node.get_closest_marker("unaudited") is not None:
        return
    proved = engine._proved

    def audited(sequential: Graph, program: RankProgram, *rest: Any) -> Verdict:
        verdict = proved(sequential, program, *rest)
        found = verdict.certificate
        assert found is not None
        audit(found, sequential, program, _LEMMAS, counts=rest[-1])
        return verdict

    monkeypatch.setattr(engine, "_proved", audited)


@pytest.fixture(autouse=True)
def no_run_contradicts_a_proof(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """No test sees an alarm: whatever is proved computes the same numbers when it is run."""
    if request.node.get_closest_marker("alarm") is not None:
        return

    def raised(verdict: Verdict, found: Contradiction, *rest: Any) -> Verdict:
        raise AssertionError(f"proved, and {found.reason}: {found.example}")

    monkeypatch.setattr(objections, "alarm_verdict", raised)
    monkeypatch.setattr(objections, "refute_despite_proof", raised)


_LEMMAS: set[str] = set()
