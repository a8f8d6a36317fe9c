"""`rewright refine`, `capture` and `show` on a small layer, from the files of a user to the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewright.cli.main import run
from rewright.frontends.files import load, save
from rewright.ir.placement import RankProgram
from rewright.refine.verdict import Evidence, Verdict
from tests.programs import mlp

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

MODEL = """
import torch
import torch.distributed as dist
from torch import nn


class Layer(nn.Module):
    def __init__(self, inner, group=None):
        super().__init__()
        self.up, self.down = nn.Linear(4, inner, bias=False), nn.Linear(inner, 4, bias=False)
        self.group = group

    def forward(self, x):
        y = self.down(torch.relu(self.up(x)))
        if self.group is not None:
            dist.all_reduce(y, group=self.group)
        return y


def sequential():
    return Layer(8), (torch.zeros(3, 4),)


def parallel(mesh):
    return Layer(8 // mesh.size(), mesh.get_group()), (torch.zeros(3, 4),)


def forgotten(mesh):
    return Layer(8 // mesh.size()), (torch.zeros(3, 4),)


def on_some_ranks(mesh):
    return Layer(8 // mesh.size(), mesh.get_group() if mesh.get_rank() else None), (torch.zeros(3, 4),)


def failing(mesh):
    raise ValueError("no such plan")


def reading():
    return (lambda x: x + 1 if x.sum() > 0 else x), (torch.zeros(3),)


def breaking():
    def f(x):
        torch._dynamo.graph_break()
        return x * float(x.sum())

    return f, (torch.zeros(3),)


def downloading():
    import urllib.request

    urllib.request.urlopen("http://weights.example/model.bin")


def pretrained():
    from transformers import AutoModel

    return AutoModel.from_pretrained("nobody/nothing"), ()


def eigenvalues():
    return (lambda x: torch.linalg.eigvalsh(x)), (torch.zeros(3, 3),)


def misshapen():
    return Layer(8), (torch.zeros(3, 5),)


def of_other_shapes(mesh):
    return Layer(8 // mesh.size(), mesh.get_group()), (torch.zeros(3 + mesh.get_rank(), 4),)


def reducing_other_shapes(mesh):
    def f(x):
        part = x[: mesh.get_rank() + 1].clone()
        dist.all_reduce(part)
        return part.sum()

    return f, (torch.zeros(3, 4),)


def of_other_names(mesh):
    return (lambda y: y) if mesh.get_rank() else (lambda x: x), (torch.zeros(3, 4),)


def on_a_group_of_others(mesh):
    group = dist.new_group([0])
    return (lambda x: [dist.all_reduce(x, group=group), x]), (torch.zeros(3, 4),)


def with_objects(mesh):
    def f(x):
        dist.all_gather_object([None, None], {"rank": mesh.get_rank()})
        return x

    return f, (torch.zeros(3, 4),)
"""


def compare(distributed: str, sequential: str = "sequential") -> list[str]:
    """The command line that compares two functions of the model on two ranks."""
    return ["refine", f"model.py:{sequential}", f"model.py:{distributed}", "--mesh", "tp=2"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "relations.toml").write_text(
        '[relations]\n"up.weight" = "Shard(0)"\n[expect]\noutput = "Replicate()"\n'
    )
    return tmp_path


def test_a_proof_has_status_zero(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*compare("parallel"), "--relations", "relations.toml"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("PROVED")
    assert printed.err == ""


def test_a_bug_has_status_one_and_a_repair(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*compare("forgotten"), "--relations", "relations.toml", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "refuted"
    [finding] = report["findings"]
    assert finding["kind"] == "missing_reduction"
    assert finding["distributed"]["text"] == "y = self.down(torch.relu(self.up(x)))"
    assert finding["suggestion"] == f"insert all_reduce over tp after model.py:{finding['distributed']['line']}"
    assert finding["counterexample"]["sizes"]["x"] == [3, 4]
    assert "capture" in report["stats"]["seconds"]


@pytest.mark.parametrize(
    ("program", "line", "message"),
    [
        ("on_some_ranks", 16, "all_reduce at model.py:16 on rank 1 waits for ranks [0, 1], but rank 0 ends"),
        ("reducing_other_shapes", 79, "on rank 1 with 1x4xf32 against 2x4xf32; make the shapes equal"),
    ],
)
def test_ranks_that_do_not_run_together_are_refuted(
    folder: Path, program: str, line: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*compare(program), "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["kind"], finding["distributed"]["line"]) == ("collective_mismatch", line)
    assert message in finding["message"]


def test_what_is_not_known_has_status_two(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rewright.refine.refine", lambda *_, **__: Verdict("unknown", Evidence.TESTED, reason="no law"))
    assert run(compare("parallel")) == 2
    assert capsys.readouterr().out.startswith("UNKNOWN: no law")


def test_saved_programs_are_compared_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capture", "model.py:sequential", "-o", "one.rwt"]) == 0
    assert run(["capture", "model.py:parallel", "--mesh", "tp=2", "-o", "ranks.json.gz"]) == 0
    assert "ranks.json.gz: 2 ranks (tp=2)" in capsys.readouterr().err
    assert run(["refine", "one.rwt", "ranks.json.gz"]) == 0
    capsys.readouterr()
    assert run(["show", "ranks.json.gz"]) == 0
    assert capsys.readouterr().out.count(" all_reduce") == 2


def test_one_file_for_each_rank(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sequential, program = mlp(2)
    save(sequential, "one.json")
    for rank, graph in enumerate(program.graphs):
        save(graph, f"rank{rank}.json")
    assert run(["refine", "one.json", "rank0.json", "rank1.json", "--mesh", "tp=2"]) == 0
    assert run(["refine", "one.json", "rank0.json", "rank1.json", "--mesh", "tp=4"]) == 3
    assert "2 rank graphs for a mesh tp=4 of 4 ranks" in capsys.readouterr().err


def test_gradients_are_captured_on_request(folder: Path) -> None:
    source = "\n\ndef loss():\n    return (lambda x: x.square().sum()), (torch.zeros(3, requires_grad=True),)\n"
    (folder / "model.py").write_text(MODEL + source)
    assert run(["capture", "model.py:loss", "--backward", "-o", "loss.json"]) == 0
    program = load("loss.json")
    assert not isinstance(program, RankProgram)
    assert list(program.outputs) == ["loss", "grad:x"]


def test_symbolic_sizes_are_proved_for_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["model.py:parallel", "--mesh", "tp=2", "--symbolic", "x=batch,_"]
    assert run(["refine", "model.py:sequential", *arguments]) == 0
    assert run(["capture", "model.py:sequential", "--symbolic", "x=batch,_", "-o", "one.rwt"]) == 0
    assert "tensor<[batch]x4xf32>" in (folder / "one.rwt").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["refine", "model.py:sequential", "model.py:parallel"], "give the mesh, for example --mesh tp=8"),
        (compare("paralel"), "did you mean 'parallel'?"),
        (compare("failing"), "ValueError: no such plan"),
        (compare("parallel", "reading"), "reads a tensor's value"),
        (compare("parallel", "breaking"), "reads a tensor's value"),
        (compare("parallel", "downloading"), "wants to download from weights.example; build the model from its config"),
        (compare("parallel", "pretrained"), "wants to download from huggingface.co"),
        (compare("parallel", "eigenvalues"), "operator aten._linalg_eigh.default at model.py:"),
        (compare("parallel", "misshapen"), "RuntimeError: a and b must have same reduction dim"),
        (compare("parallel", "parallel"), "parallel(mesh) is called without arguments"),
        (compare("sequential"), "sequential() is called with the mesh"),
        (compare("of_other_names"), "nothing is known about input 'y' of rank 0"),
        (compare("on_a_group_of_others"), "it calls a collective over a group that this rank is not in"),
        (compare("with_objects"), "all_gather_object exchanges Python objects"),
        ([*compare("parallel"), "--mesh", "tp=3", "--jobs", "2"], "placement"),
        (["capture", "model.py:failing", "--mesh", "tp=2", "-o", "out.json"], "ValueError: no such plan"),
        (["capture", "model.py:parallel", "--mesh", "tp=2", "-o", "out.rwt"], "save them as .json"),
        (["refine", "model.py:sequential", "model.py:parallel", "--mesh", "tp=3"], "placement"),
    ],
)
def test_bad_input_is_one_line_and_status_three(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
    assert run(arguments) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == before


def test_a_relation_for_a_tensor_that_does_not_exist(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "relations.toml").write_text('[relations]\n"up.wieght" = "Shard(0)"\n')
    assert run([*compare("parallel"), "--relations", "relations.toml"]) == 3
    assert "relations.toml: no input of the sequential program is named 'up.wieght'; did you mean 'up.weight'?" in (
        capsys.readouterr().err
    )


def test_ranks_of_other_shapes_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "relations.toml").write_text('[relations]\nx = "Replicate()"\n')
    assert run([*compare("of_other_shapes"), "--relations", "relations.toml"]) == 3
    assert capsys.readouterr().err == (
        "rewright: the relation of input 'x' gives rank 1 the shape 3x4, but its program declares 4x4xf32; correct the "
        "placement\n"
    )


def test_a_saved_program_has_its_mesh(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sequential, program = mlp(2)
    save(sequential, "one.json")
    save(program, "ranks.json")
    axes = ",".join(f"{name}={size}" for name, size in program.mesh.axes)
    assert run(["refine", "one.json", "ranks.json", "--mesh", axes]) == 0
    assert run(["refine", "one.json", "ranks.json", "--mesh", "tp=4"]) == 3
    assert f"ranks.json holds the programs of the mesh {axes}; leave --mesh out" in capsys.readouterr().err


def test_what_a_program_prints_is_no_part_of_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text(
        MODEL.replace("        y = self.down", "        print('here')\n        y = self.down")
    )
    assert run([*compare("parallel"), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["status"] == "proved"
    assert printed.err == "here\n" * 3


def test_a_capture_that_fails_leaves_the_old_file(folder: Path) -> None:
    (folder / "out.json").write_text("old")
    assert run(["capture", "model.py:reading", "-o", "out.json"]) == 3
    assert (folder / "out.json").read_text() == "old"


def test_colour_and_progress_only_for_terminals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["capture", "model.py:sequential", "-o", "one.json"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "\x1b" not in printed.err
