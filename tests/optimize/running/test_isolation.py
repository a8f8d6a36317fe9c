"""Kernels run first in a process of their own, and libraries are what was built."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rewright as rw
from rewright.optimize.printing.cpp import renderer
from rewright.optimize.running import building
from rewright.optimize.running.isolation import Crashed, Isolated
from tests.optimize.programs import normal

SOURCE = """
extern "C" void twice(void** tensors, long threads) {
  for (long i = 0; i < 4; ++i) ((float*)tensors[1])[i] = 2 * ((const float*)tensors[0])[i];
}
extern "C" void crash(void** tensors, long threads) { *(volatile int*)8 = 1; }
"""


def test_a_kernel_runs_in_another_process_and_its_crash_is_an_error(tmp_path: Path) -> None:
    child = Isolated(Path(building.build(SOURCE, tmp_path)._name))
    x, y = torch.arange(4.0), torch.zeros(4)

    child.launch("twice", [1], lambda: 1)([x, y])

    assert torch.equal(y, 2 * x)
    with pytest.raises(Crashed, match=r"crash crashed \(SIGSEGV\), in a process of its own"):
        child.launch("crash", [1], lambda: 1)([x, y])
    with pytest.raises(Crashed, match="the kernel twice crashed"):
        child.launch("twice", [1], lambda: 1)([x, y])


def test_a_kernel_that_crashes_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        renderer, "HEADER", renderer.HEADER.replace("float exp_(float x) {", "float exp_(float x) { abort();", 1)
    )

    found = rw.optimize(torch.exp, (normal(3, 8),), target="cpu", floor=False, remember=False)

    assert found.status == "fallback" and "crashed (SIGABRT)" in found.reason and "bug" not in found.reason
    torch.testing.assert_close(found(normal(3, 8)), torch.exp(normal(3, 8)))


@pytest.mark.parametrize("damage", ["cut", "empty", "exchanged", "no digest"])
def test_a_library_that_was_damaged_is_built_again(damage: str, tmp_path: Path) -> None:
    other = SOURCE.replace("2 *", "3 *")
    building.build(SOURCE, tmp_path)
    building.build(other, tmp_path)
    first, second = sorted(tmp_path.glob("*.so"))
    if damage == "exchanged":
        first.write_bytes(second.read_bytes())
    elif damage == "no digest":
        first.with_suffix(".sha256").unlink()
    else:
        first.write_bytes(first.read_bytes()[:1000] if damage == "cut" else b"")

    for text, factor in ((SOURCE, 2), (other, 3)):
        child = Isolated(Path(building.build(text, tmp_path)._name))
        x, y = torch.arange(4.0), torch.zeros(4)
        child.launch("twice", [1], lambda: 1)([x, y])
        assert torch.equal(y, factor * x)


def test_a_cache_that_cannot_be_written_is_no_reason(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    library = building.build(SOURCE, tmp_path / "cache")

    assert not str(library._name).startswith(str(tmp_path))
