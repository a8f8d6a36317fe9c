"""Packages run with PyTorch alone, say what they are for, and carry their proof."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.remembered.loader import LIBRARIES, load
from rewright.optimize.running.bare import processor
from rewright.optimize.running.building import features_of
from tests.optimize.programs import normal

RUN = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from run import load
program = load()
given = torch.load(sys.argv[2], weights_only=True)
torch.save(program(**given), sys.argv[3])
assert "rewright" not in sys.modules and not any(m.startswith("rewright.") for m in sys.modules)
"""


def looked_up(table: torch.Tensor, rows: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """An embedding, a linear layer, a convolution, a scan, and a softmax."""
    x = F.linear(table[rows], w, b)
    x = F.conv1d(x.T[None], w[:, :, None], padding=1, stride=2)[0].T
    return torch.softmax(torch.cumsum(x, 0), -1)


ARGS = normal(9, 200), torch.tensor([3, 0, 8, 8, 1]), normal(200, 200, seed=1), normal(200, seed=2)


def package(folder: Path) -> Path:
    found = rw.optimize(looked_up, ARGS, target="cpu", floor=False, remember=False)
    assert found.status == "proved", found.reason
    found.package(folder / "package")
    return folder / "package"


def test_a_package_runs_in_a_process_without_rewright(tmp_path: Path) -> None:
    where = package(tmp_path)
    names = ["table", "rows", "w", "b"]
    torch.save(dict(zip(names, ARGS, strict=True)), tmp_path / "given.pt")
    command = [sys.executable, "-I", "-c", RUN, str(where), str(tmp_path / "given.pt"), str(tmp_path / "found.pt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    (found,) = torch.load(tmp_path / "found.pt", weights_only=True).values()
    torch.testing.assert_close(found, looked_up(*ARGS), rtol=1e-4, atol=1e-5)


EXPORTED = """
import sys, torch
sys.path.insert(0, sys.argv[1])
from run import load
load().register("packaged::looked_up")
program = torch.export.load(sys.argv[2]).module()
torch.save(program(*torch.load(sys.argv[3], weights_only=True)), sys.argv[4])
assert "rewright" not in sys.modules
"""


def test_an_exported_program_calls_the_kernels_of_a_package(tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = operator(*args)
            return found * 2

    optimized = rw.optimize(looked_up, ARGS, target="cpu", floor=False, remember=False)
    operator = optimized.register("packaged::looked_up")
    optimized.package(tmp_path / "package")
    torch.export.save(torch.export.export(Model(), ARGS), tmp_path / "model.pt2")
    torch.save(ARGS, tmp_path / "given.pt")
    files = [str(tmp_path / name) for name in ("package", "model.pt2", "given.pt", "found.pt")]
    done = subprocess.run([sys.executable, "-I", "-c", EXPORTED, *files], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    found = torch.load(tmp_path / "found.pt", weights_only=True)
    torch.testing.assert_close(found, 2 * looked_up(*ARGS), rtol=1e-4, atol=1e-5)


def test_a_package_says_what_does_not_fit_and_what_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = package(tmp_path)
    monkeypatch.syspath_prepend(str(where))
    from run import load  # type: ignore[import-not-found]

    program = load(where)
    given = dict(zip(program.names, ARGS, strict=True))

    with pytest.raises(ValueError, match="input 'w' has no value"):
        program(**{n: v for n, v in given.items() if n != "w"})
    with pytest.raises(ValueError, match=r"must be a tensor of torch\.float32 of shape"):
        program(**{**given, "table": normal(8, 200)})
    with pytest.raises(ValueError, match="reads out of range"):
        program(**{**given, "rows": torch.tensor([9, 0, 0, 0, 0])})
    (where / "kernels.cpp").write_text("other")
    with pytest.raises(RuntimeError, match="was changed since"):
        load(where)


def test_the_certificate_of_a_package_is_checked_from_its_folder(tmp_path: Path) -> None:
    where = package(tmp_path)
    proof, program, plan = (str(where / name) for name in ("certificate.json.gz", "program.json", "plan.json"))
    for right, status in ((plan, 0), (program, 3)):  # it is not about that one
        command = [sys.executable, "-m", "rewright", "audit", proof, "--left", program, "--right", right]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


def test_no_folder_of_others_is_written_over(tmp_path: Path) -> None:
    found = rw.optimize(looked_up, ARGS, target="cpu", floor=False, remember=False)
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(RewrightError, match="is there and is no package"):
        found.package(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    found.package(tmp_path / "new")
    found.package(tmp_path / "new")


def test_there_is_no_package_without_kernels(tmp_path: Path) -> None:
    found = rw.optimize(lambda x: x.sort().values, (normal(8),), target="cpu", floor=False, remember=False)

    with pytest.raises(RewrightError, match="there are no kernels"):
        found.package(tmp_path / "new")


def test_a_package_runs_on_less_of_a_processor(tmp_path: Path) -> None:
    """Each library computes the same; the one for a processor with nothing more is the last."""
    where = package(tmp_path)
    needed = json.loads((where / LIBRARIES).read_text())
    given = dict(zip(["table", "rows", "w", "b"], ARGS, strict=True))
    assert set(needed["kernels.so"]) == processor()

    ran = [name for name, features in needed.items() if processor().issuperset(features)]
    for name in ran:
        (found,) = load(where, name)(**given).values()
        torch.testing.assert_close(found, looked_up(*ARGS), rtol=1e-4, atol=1e-5)

    assert load(where).library == ran[0] == "kernels.so"
    needs(where, {**needed, "kernels.so": ["avx4096"]})
    assert load(where).library == ran[1]


def test_a_package_is_refused_where_the_processor_lacks_what_it_was_compiled_for(tmp_path: Path) -> None:
    where = package(tmp_path)
    needs(where, {"kernels.so": ["avx4096"]})

    with pytest.raises(RuntimeError, match="need a processor with avx4096"):
        load(where)


def needs(where: Path, needed: dict[str, list[str]]) -> None:
    """Write down that the libraries of a package need these features."""
    (where / LIBRARIES).write_text(json.dumps(needed))
    digests = json.loads((where / "digests.json").read_text())
    digests[LIBRARIES] = sha256((where / LIBRARIES).read_bytes()).hexdigest()
    (where / "digests.json").write_text(json.dumps(digests))


def test_each_level_of_instructions_has_those_below_it() -> None:
    found = features_of("x86_64")

    assert found["x86-64"] == ["type x86_64"]
    assert set(found["x86-64-v4"]) > set(found["x86-64-v3"]) > {"avx2", "fma"}
    assert features_of("riscv64") == {}


def test_a_library_that_computes_something_else_is_not_written(tmp_path: Path) -> None:
    found = rw.optimize(lambda x: torch.exp(x) + 1, (normal(9, 30),), target="cpu", floor=False, remember=False)
    assert found.printed is not None
    files = {name: text.replace("(float)1.0", "(float)2.0") for name, text in found.printed.files.items()}
    found.printed = replace(found.printed, files=files)  # of these the libraries for less of a processor are compiled

    with pytest.raises(RewrightError, match="compute something else than those of this processor"):
        found.package(tmp_path / "new")
    assert not (tmp_path / "new").exists()
