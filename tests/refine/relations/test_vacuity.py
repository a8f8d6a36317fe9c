"""Proofs that say nothing have a status of their own: plans that were never applied, constants, no collectives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import rewright as rw
from rewright import ops
from rewright.cli.main import run as main
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.pytest_plugin import NotProved, assert_refines
from tests.programs import Builder

DATA = (torch.zeros(2, 4),)
FILE = """
import torch
from torch import nn


def whole():
    return nn.Linear(4, 4), (torch.zeros(2, 4),)


def parallel(mesh):
    return whole()
"""


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))


def planned(*, applies: bool) -> RankProgram:
    def build(mesh: Any) -> Any:
        plan = {"0": ColwiseParallel(), "1": RowwiseParallel(output_layouts=Replicate())}
        return parallelize_module(net(), mesh["tp"], plan if applies else {}), DATA

    return rw.capture_ranks(build, {"dp": 2, "tp": 2})


def whole() -> Graph:
    return rw.capture(net(), DATA)


def test_a_plan_that_was_never_applied_proves_nothing() -> None:
    verdict = rw.refine(whole(), planned(applies=False))
    assert verdict.status == "vacuous"
    assert verdict.reason.startswith("nothing is distributed over 4 ranks")
    assert verdict.certificate is not None, "the programs are equal all the same"
    assert rw.refine(whole(), planned(applies=False), allow_vacuous=True).status == "proved"


def test_one_axis_of_the_mesh_that_does_nothing_is_named() -> None:
    verdict = rw.refine(whole(), planned(applies=True))
    assert verdict.status == "vacuous"
    assert verdict.reason.startswith("nothing is distributed over dp:")


def test_relations_of_all_inputs_say_that_it_is_meant() -> None:
    assert rw.refine(whole(), planned(applies=False), {"*": "Replicate()"}).status == "proved"
    assert rw.refine(whole(), planned(applies=False), {"0.weight": "Replicate()"}).status == "vacuous"


def test_shards_without_a_collective_are_a_proof_unless_collectives_are_asked_for() -> None:
    def build(mesh: Any) -> Any:
        return net(), (torch.zeros(1, 4),)

    ranks = rw.capture_ranks(build, {"dp": 2})
    relations = {"args.0": "Shard(0)"} if "args.0" in whole().inputs else {next(reversed(whole().inputs)): "Shard(0)"}
    assert rw.refine(whole(), ranks, relations).status == "proved"
    verdict = rw.refine(whole(), ranks, relations, require_collectives=True)
    assert verdict.status == "vacuous"
    assert "none of the 2 ranks calls a collective" in verdict.reason


def constant(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"loss": (x * 0 + 1).mean(), "x": x}


def unread(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"a": torch.ones(2), "b": torch.arange(3.0)}


def useful(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"y": x.sin(), "table": torch.arange(3.0).cos()}


@pytest.mark.parametrize(("function", "status"), [(unread, "vacuous"), (useful, "proved")])
def test_programs_that_return_constants(function: Any, status: str) -> None:
    graph = rw.capture(function, DATA)
    assert rw.refine(graph, [graph]).status == status


def test_a_loss_that_is_detached_has_gradients_of_nothing() -> None:
    def step(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        nothing = sum(parameter.sum() * 0 for parameter in model.parameters())
        (model(x).detach().sum() + nothing).backward()
        return {"x": x}

    graph = rw.capture(step, (nn.Linear(4, 4), *DATA))
    verdict = rw.refine(graph, [graph])
    assert verdict.status == "vacuous"
    assert "all gradients are zero" in verdict.reason


def test_the_command_line_has_an_exit_status_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(FILE)
    call = ["refine", "m.py:whole", "m.py:parallel", "--mesh", "tp=2"]
    assert main(call) == 4
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        "VACUOUS (equal, and it says nothing of a plan; --allow-vacuous takes it as proved): nothing"
    )
    assert main([*call, "--allow-vacuous"]) == 0
    assert main([*call, "--allow-vacuous", "--require-collectives"]) == 3


def test_pytest_fails_on_it() -> None:
    def build(mesh: Any) -> Any:
        return net(), DATA

    with pytest.raises(NotProved, match="nothing is distributed over 2 ranks"):
        assert_refines((net(), DATA), build, mesh={"tp": 2})
    assert assert_refines((net(), DATA), build, mesh={"tp": 2}, allow_vacuous=True).status == "proved"


def test_a_relation_that_fits_no_input_is_an_error() -> None:
    with pytest.raises(RewrightError, match="matches no input"):
        rw.refine(whole(), planned(applies=True), {"2.weight": "Shard(0)"})


def test_messages_along_one_axis_use_no_other() -> None:
    """The second stage gets from the first what it returns, on both columns of the mesh."""
    kind = TensorType((4,), DType.F32)

    def stage(rank: int) -> Graph:
        build = Builder("stage")
        x = build.tensor("x", (4,))
        if rank < 2:
            build.output("y", build.add(ops.Send(rank + 2, 0), build.add(ops.Exponential(), x)))
        else:
            build.output("y", build.add(ops.Recv(rank - 2, 0, kind)))
        return build.build()

    alone = Builder("alone")
    alone.output("y", alone.add(ops.Exponential(), alone.tensor("x", (4,))))
    ranks = tuple(map(stage, range(4)))
    both = rw.refine(alone.build(), RankProgram(ranks, Mesh.of({"pp": 2, "tp": 2}), {}, {}))
    assert both.status == "vacuous", both.reason
    assert both.reason.startswith("nothing is distributed over tp:")
    assert rw.refine(alone.build(), RankProgram(ranks, Mesh.of({"pp": 4}), {}, {})).status == "proved"
