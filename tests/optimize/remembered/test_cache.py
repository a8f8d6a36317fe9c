"""What was optimised before is taken from disk, and only where it is whole and the same."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.optimize import api, making
from rewright.optimize.proving.trusted import Trust
from rewright.optimize.remembered import cache
from rewright.optimize.remembered.cache import programs_folder
from rewright.optimize.running.building import cache_folder
from rewright.optimize.sizes import plans
from tests.optimize.programs import normal

ARGS = normal(8, 48), normal(48), normal(48, seed=1), normal(48, 200, seed=2)


def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """A normalisation, a product and a softmax."""
    return torch.softmax(F.layer_norm(x, (48,), w, b) @ m, -1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, where the specification of XDG says."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def optimized(scale: float = 1.0) -> api.Optimized:
    return rw.optimize(lambda x, w, b, m: program(x, w, b, m) * scale, ARGS, target="cpu", floor=False)


def test_the_cache_is_where_xdg_says_and_a_relative_path_counts_as_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == folder / "rewright" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert cache_folder() == Path.home() / ".cache" / "rewright" / "kernels"


def test_a_program_is_planned_and_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = optimized()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr(making, "Planner", refuse)
    again = optimized()

    assert first.entry is None and again.entry is not None, again.reason
    assert (again.status, again.reason, again.counts) == (first.status, first.reason, first.counts)
    assert again.runs == "kernels"
    assert torch.equal(again(*ARGS), first(*ARGS))
    assert first.explain() in again.explain()
    assert first.certificate is not None
    assert replace(again.certificate, calls=()) == replace(first.certificate, calls=())


def test_another_number_in_the_program_or_another_package_is_another_program(monkeypatch: pytest.MonkeyPatch) -> None:
    optimized()
    assert optimized(2.0).entry is None
    monkeypatch.setattr(cache, "_package", lambda: "other files")
    assert optimized().entry is None


@pytest.mark.parametrize("name", ["kernels.so", "manifest.json", "constants.pt", "explanation.txt", "digests.json"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_entry_is_made_anew(name: str, damage: str) -> None:
    optimized()
    (entry,) = programs_folder().iterdir()
    path = entry / name
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else data[:-1] + bytes([data[-1] ^ 1]))

    found = optimized()

    assert found.entry is None and found.status == "proved"
    assert optimized().entry is not None
    torch.testing.assert_close(found(*ARGS), program(*ARGS))


def test_the_oldest_entries_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    optimized()
    (oldest,) = programs_folder().iterdir()
    os.utime(oldest, (0, 0))
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    optimized(2.0)

    assert not oldest.exists() and len(list(programs_folder().iterdir())) == 1


def test_where_nothing_can_be_kept_kernels_run_all_the_same(folder: Path) -> None:
    shutil.rmtree(folder / "rewright", ignore_errors=True)
    (folder / "rewright").write_text("no folder")
    found = optimized()

    assert found.status == "proved" and any("not remembered" in note for note in found.notes)
    torch.testing.assert_close(found(*ARGS), program(*ARGS))


def test_nothing_is_kept_where_nobody_asks() -> None:
    found = rw.optimize(program, ARGS, target="cpu", floor=False, remember=False)

    assert found.status == "proved" and not programs_folder().exists()


def test_calls_of_a_remembered_program_are_guarded_as_before() -> None:
    optimized()
    again = optimized()
    other = (normal(5, 48), *ARGS[1:])

    torch.testing.assert_close(again(*other), program(*other))
    assert again.notes == [
        "x was float32[8, 48] with strides [48, 1] on cpu and is float32[5, 48] with strides [48, 1] "
        "on cpu: the original program ran"
    ]


def test_what_was_not_timed_is_not_kept_as_if_it_were() -> None:
    meta = tuple(t.to("meta") for t in ARGS)
    found = rw.optimize(program, meta, target="cpu")

    assert found.status == "proved" and not programs_folder().exists()


def test_an_entry_that_cannot_be_loaded_is_made_anew() -> None:
    optimized()
    (entry,) = programs_folder().iterdir()
    (entry / "kernels.so").write_bytes(b"no library")
    digests = {path.name: sha256(path.read_bytes()).hexdigest() for path in entry.iterdir() if path.name[:2] != "di"}
    (entry / "digests.json").write_text(json.dumps(digests))

    found = optimized()

    assert found.entry is None and found.status == "proved"
    assert any("cannot be loaded" in note for note in found.notes)


def test_a_failure_of_ours_leaves_the_program_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise TypeError("no JSON")

    monkeypatch.setattr(api, "keep", fails)
    found = optimized()

    assert (found.status, found.runs, found.runner) == ("fallback", "eager", None)
    torch.testing.assert_close(found(*ARGS), program(*ARGS))


def test_kernels_that_take_sizes_are_remembered_with_those_for_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> api.Optimized:
        return rw.optimize(program, ARGS, target="cpu", floor=False, dynamic={"x": {0: "n"}})

    first = asked()
    monkeypatch.setattr(plans, "Planner", None)
    again = asked()

    assert first.entry is None and again.entry is not None, again.reason
    assert (again.status, again.reason, again.counts) == (first.status, first.reason, first.counts)
    for n in (1, 2, 47, 48, 131):
        given = normal(n, 48), *ARGS[1:]
        assert torch.equal(again(*given), first(*given))
        torch.testing.assert_close(again(*given), program(*given))


def test_what_stores_16_bits_in_32_does_so_again() -> None:
    def products(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x @ w)
        return torch.softmax(y, -1) + y.square().sum(-1, keepdim=True)

    args = normal(3, 16).bfloat16(), normal(16, 40).bfloat16()
    first, again = (rw.optimize(products, args, target="cpu", floor=False, dynamic={"x": {0: "n"}}) for _ in range(2))

    assert again.entry is not None
    given = normal(70, 16).bfloat16(), args[1]
    assert torch.equal(again(*given), first(*given))


def test_a_damaged_note_is_none() -> None:
    cache.keep_note("key", {"kept": 1})
    assert cache.recall_note("key") == {"kept": 1}
    (programs_folder() / "key" / "note.json").write_text('{"kept": 2}')

    assert cache.recall_note("key") is None
    assert cache.recall_note("other") is None


def test_that_there_was_no_proof_is_remembered_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []

    def unproved(plan: object, budget: float, *_: object) -> object:
        tried.append(budget)
        return plan, Trust("none", "the budget was used up")

    monkeypatch.setattr(making, "trust_plan", unproved)
    reasons = [
        rw.optimize(program, ARGS, target="cpu", floor=False, budget=budget).reason for budget in (0.5, 0.5, 2.0)
    ]

    assert tried == [0.5, 2.0]
    assert all("the plan is not proved (the budget was used up)" in reason for reason in reasons)
    assert "remembered from an earlier call" in reasons[1]
