"""What is proved, what is refused, and what falls back with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import rewright as rw
from rewright.certificates import audit
from rewright.cli.main import run as command
from rewright.ir.errors import RewrightError
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.proofs import trust
from rewright.optimize.running.checking import check
from rewright.optimize.running.targets import runners
from tests.optimize.programs import PROGRAMS, normal


def test_the_certificate_is_about_the_program_and_the_plan(tmp_path: Path) -> None:
    program, args = PROGRAMS["residual_norm"]()
    found = rw.optimize(program, args, target="torch")

    assert found.certificate is not None and found.trust.program is not None and found.trust.graph is not None
    found.certificate.save(tmp_path / "proof.json.gz")
    audit(tmp_path / "proof.json.gz", found.graph, found.trust.graph)
    with pytest.raises(RewrightError):
        audit(tmp_path / "proof.json.gz", found.graph, found.graph)


def test_a_plan_that_computes_something_else_is_not_proved() -> None:
    program, args = PROGRAMS["residual_norm"]()
    graph = prepare_graph(rw.capture(program, args))
    plan = Planner(graph).plan()
    (kernel,) = plan.kernels
    table = plan.table
    first = kernel.sweeps[-1].stores[0]
    wrong = replace(first, value=table.apply("multiply", first.value, table.constant(2.0, first.value.dtype)))
    sweep = replace(kernel.sweeps[-1], stores=(wrong, *kernel.sweeps[-1].stores[1:]))
    broken = replace(plan.steps[0], kernel=replace(kernel, sweeps=(*kernel.sweeps[:-1], sweep)))
    plan.steps = (broken,)

    found = trust(plan, seconds=2.0)
    runner, *_ = runners("torch", plan, None, None)  # type: ignore[arg-type]

    assert found.evidence == "tested"
    assert not check(graph, runner).passed


def test_a_plan_without_a_proof_runs_only_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from rewright.optimize import making
    from rewright.optimize.proving.proofs import Trust

    monkeypatch.setattr(making, "trust", lambda *args, **options: Trust(reason="no law for it"))
    x = normal(4, 6)

    refused = rw.optimize(torch.exp, (x,), target="torch")
    allowed = rw.optimize(torch.exp, (x,), target="torch", allow="tested")

    assert refused.status == "fallback" and "no law for it" in refused.reason
    assert allowed.status == "tested"
    torch.testing.assert_close(refused(x), torch.exp(x))


def test_what_cannot_be_captured_falls_back_with_one_line() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x

    x = normal(4)

    found = rw.optimize(program, (x,), floor=False, remember=False)

    assert found.status == "fallback" and "\n" not in found.reason and "test_trust.py" in found.reason
    torch.testing.assert_close(found(x), program(x))


def test_other_shapes_and_gradients_run_the_original() -> None:
    found = rw.optimize(torch.tanh, (normal(4),), target="torch")
    x = normal(5).requires_grad_()

    found(x).sum().backward()

    assert x.grad is not None
    torch.testing.assert_close(found(normal(5)), torch.tanh(normal(5)))
    assert len(found.notes) == 2


def test_a_module_reads_its_parameters_when_it_is_called() -> None:
    module = torch.nn.LayerNorm(16).eval()
    x = normal(3, 16)
    found = rw.optimize(module, (x,), target="torch")

    with torch.no_grad():
        module.weight.fill_(3.0)
        torch.testing.assert_close(found(x), module(x))


def test_wrong_words_are_errors_of_one_line() -> None:
    with pytest.raises(RewrightError, match="target 'tpu' is none of"):
        rw.optimize(torch.exp, (normal(2),), target="tpu")  # type: ignore[arg-type]
    with pytest.raises(RewrightError, match="use 'proved' or 'tested'"):
        rw.optimize(torch.exp, (normal(2),), allow="maybe")  # type: ignore[arg-type]


def test_explanation_and_code_are_written(tmp_path: Path) -> None:
    program, args = PROGRAMS["causal"]()
    found = rw.optimize(program, args, floor=False, remember=False)

    files = {path.name: path.read_text() for path in found.emit(tmp_path) if path.suffix != ".gz"}

    assert "follows the running maximum" in files["explanation.txt"]
    assert "skipped" in files["explanation.txt"] and "broadcast" in files["explanation.txt"]
    assert "the mask absorbs the whole tile" in files["kernels.cpp"]


def test_no_compiler_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from rewright.optimize.running import building

    monkeypatch.setattr(building, "compiler", lambda: None)

    found = rw.optimize(torch.exp, (normal(3),), target="cpu", floor=False, remember=False)

    assert found.status == "fallback" and "no C++ compiler" in found.reason


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"largest", "router"}))
def test_every_plan_has_a_certificate_that_the_checker_confirms(name: str, tmp_path: Path) -> None:
    program, args = PROGRAMS[name]()

    found = rw.optimize(program, args, target="torch", verify=False)

    assert found.certificate is not None and found.trust.program is not None and found.trust.graph is not None
    found.certificate.save(tmp_path / "proof.json.gz")
    audit(tmp_path / "proof.json.gz", found.trust.program, found.trust.graph)


@pytest.mark.parametrize("name", ["causal", "loss"])
def test_what_is_written_can_be_audited_from_its_files(name: str, tmp_path: Path) -> None:
    program, args = PROGRAMS[name]()
    rw.optimize(program, args, target="torch", verify=False).emit(tmp_path)

    files = [str(tmp_path / file) for file in ("certificate.json.gz", "program.json", "plan.json")]
    assert command(["audit", files[0], "--left", files[1], "--right", files[2]]) == 0
    assert command(["audit", files[0], "--left", files[1], "--right", files[1]]) != 0


def test_what_calls_a_proof_is_for_is_part_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels for one number are not those for another, whatever the files beside the certificate say."""

    def program(x: torch.Tensor, times: int) -> torch.Tensor:
        return torch.softmax(x * times, -1)

    rw.optimize(program, (normal(3, 9), 3), target="torch", verify=False).emit(tmp_path)
    files = [str(tmp_path / file) for file in ("certificate.json.gz", "program.json", "plan.json")]
    asked = ["audit", files[0], "--left", files[1], "--right", files[2]]
    assert command(asked) == 0
    assert "times is 3" in capsys.readouterr().out
    for file in files[1:]:
        text = Path(file).read_text()
        assert "times is 3" in text
        Path(file).write_text(text.replace("times is 3", "times is 4"))
    assert command(asked) != 0
    assert "calls of the kind" in capsys.readouterr().err


@pytest.mark.parametrize("first", [1, 5, 8])
def test_parts_that_change_places_have_a_certificate(first: int) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat((-x[:, first:], y[:, :first]), -1) * y

    args = normal(3, 9), normal(3, 9, seed=1)
    found = rw.optimize(program, args, target="torch")

    assert found.status == "proved" and found.certificate is not None
    torch.testing.assert_close(found(*args), program(*args))


def test_a_function_that_refers_to_modules_runs_with_their_parameters() -> None:
    first, second = torch.nn.Linear(6, 6).eval(), torch.nn.LayerNorm(6).eval()
    x = normal(3, 6)

    found = rw.optimize(lambda x: second(torch.tanh(first(x))), (x,), target="torch")

    with torch.no_grad():
        torch.testing.assert_close(found(x), second(torch.tanh(first(x))))
        first.weight.zero_()
        torch.testing.assert_close(found(x), second(torch.tanh(first(x))))
    assert not found.notes
    assert found(x).requires_grad  # as the program's own: a gradient may be asked for


def test_a_parameter_under_two_names_is_found_under_both() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.out = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False)
            self.out.weight = self.into.weight

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.out(self.into(tokens)))

    module, tokens = Tied().eval(), torch.tensor([1, 2])
    found = rw.optimize(module, (tokens,), target="torch")

    with torch.no_grad():
        torch.testing.assert_close(found(tokens), module(tokens))
    assert not found.notes


def test_an_exported_program_is_called_like_its_module() -> None:
    x = normal(3, 6)
    exported = torch.export.export(torch.nn.LayerNorm(6).eval(), (x,))
    found = rw.optimize(exported, (x,), target="torch")

    with torch.no_grad():
        torch.testing.assert_close(found(x), exported.module()(x))
    assert found.status == "proved" and not found.notes


def test_a_proof_that_has_no_time_says_so() -> None:
    program, args = PROGRAMS["causal"]()

    found = rw.optimize(program, args, target="torch", budget=0.0)

    assert found.status == "fallback"
    assert "the budget of 0 s is used up" in found.reason
