"""Programs that ended in a traceback, in wrong advice, or in a proof that says less than it seems to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn

import rewright as rw
from rewright.cli.main import run
from rewright.interp.program import run as execute

dist: Any = torch.distributed


class Recommender(nn.Module):
    """Tables of embeddings, a layer for the rest, and their interactions."""

    def __init__(self, tables: tuple[int, ...]) -> None:
        super().__init__()
        self.t = nn.ModuleDict({str(i): nn.Embedding(12, 4) for i in tables})
        self.b, self.top = nn.Linear(5, 4), nn.Linear(7, 1)

    def interact(self, d: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        both = torch.cat([d[:, None], e], 1)
        products = torch.bmm(both, both.transpose(1, 2))
        i, j = torch.tril_indices(3, 3, -1)
        return torch.sigmoid(self.top(torch.cat([d, products[:, i, j]], 1)))


def exchanged(x: torch.Tensor) -> torch.Tensor:
    received = torch.empty_like(x)
    dist.all_to_all_single(received, x)
    return received


@pytest.mark.sample(2)
@pytest.mark.parametrize("transposed", [True, False])
def test_rows_by_table_that_are_taken_for_rows_by_sample(transposed: bool) -> None:
    """The place of the mistake was looked for among operators with other numbers of operands: an IndexError."""

    def whole(m: Recommender, x: torch.Tensor, s0: torch.Tensor, s1: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"score": m.interact(F.relu(m.b(x)), torch.stack([m.t["0"](s0).sum(1), m.t["1"](s1).sum(1)], 1))}

    def build(mesh: Any) -> Any:
        rank = mesh.get_rank()

        def ranks(m: Recommender, x: torch.Tensor, **ids: torch.Tensor) -> dict[str, torch.Tensor]:
            e = exchanged(next(iter(m.t.values()))(ids[f"s{rank}"]).sum(1)).view(2, 2, 4)
            return {"score": m.interact(F.relu(m.b(x)), e.transpose(0, 1) if transposed else e)}

        return ranks, (Recommender((rank,)), torch.zeros(2, 5)), {f"s{rank}": torch.zeros(4, 3, dtype=torch.long)}

    ids = torch.zeros(4, 3, dtype=torch.long)
    sequential = rw.capture(whole, (Recommender((0, 1)), torch.zeros(4, 5), ids, ids))
    verdict = rw.refine(sequential, rw.capture_ranks(build, {"dp": 2}), {"x": "Shard(0)"})
    assert verdict.status == ("proved" if transposed else "refuted")


def test_a_repair_fits_the_tensors_of_the_program() -> None:
    """The second step of a hierarchical sum is missing; a sum over all ranks has no room in what is there."""

    def build(mesh: Any) -> Any:
        group = mesh.get_group("intra")

        def ranks(x: torch.Tensor) -> dict[str, torch.Tensor]:
            part, y = torch.empty(4), torch.empty(8)
            dist.reduce_scatter_tensor(part, x[0], group=group)
            dist.all_gather_into_tensor(y, part, group=group)
            return {"y": torch.tanh(y)}

        return ranks, (torch.zeros(1, 8),)

    sequential = rw.capture(lambda x: {"y": torch.tanh(x.sum(0))}, (torch.zeros(4, 8),))
    ranks = rw.capture_ranks(build, {"inter": 2, "intra": 2})
    verdict = rw.refine(sequential, ranks, {"x": ["Shard(0)", "Shard(0)"]})
    assert verdict.status == "refuted"
    suggestions = [finding.suggestion for finding in verdict.findings]
    assert "insert all_reduce over inter on x, before anything reads it" in suggestions


@pytest.mark.parametrize("name", ["a.txt", "a.txt/inside"])
def test_generated_code_needs_a_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A FileExistsError, told as a bug of this program."""
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "m.py").write_text("import torch\ndef ok():\n    return torch.nn.Linear(8, 8), (torch.zeros(4, 8),)\n")
    assert run(["optimize", f"{tmp_path / 'm.py'}:ok", "--emit", str(tmp_path / name)]) == 3
    error = capsys.readouterr().err
    assert "cannot write to" in error
    assert "name a folder" in error
    assert "bug" not in error


def test_whole_numbers_in_few_digits_are_told() -> None:
    """600 tokens, counted in bfloat16: the proof over the reals said nothing of it."""

    def ranks(x: torch.Tensor) -> dict[str, torch.Tensor]:
        n, y = (x > 0).sum().bfloat16(), x.sum(0)
        dist.all_reduce(n)
        dist.all_reduce(y)
        return {"l": y / n}

    sequential = rw.capture(lambda x: {"l": x.sum(0) / (x > 0).sum()}, (torch.zeros(600, 3),))
    verdict = rw.refine(
        sequential, rw.capture_ranks(lambda mesh: (ranks, (torch.zeros(300, 3),)), {"dp": 2}), {"x": "Shard(0)"}
    )
    assert verdict.status == "proved"
    notes = [note for note in verdict.notes if note.startswith("precision: bf16 at test_diagnoses.py:")]
    assert len(notes) == 2  # where the count becomes one, and where it is summed
    assert notes[1].endswith("holds whole numbers up to 1800, and has each of them to 256 only")


def test_a_step_may_make_its_own_leaves() -> None:
    """The capture ran without gradients, and blamed the program."""

    def forces(x: torch.Tensor) -> dict[str, torch.Tensor]:
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad((x**2).sum(), x)
        return {"g": g}

    class Forces(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return forces(x)

    x = torch.arange(4.0)
    for target in (forces, Forces()):
        found = execute(rw.capture(target, (x,)), {"x": x.numpy()})
        assert found["g"].tolist() == (2 * x).tolist()


def test_a_diagonal_is_written_in_place() -> None:
    """The loss of Barlow Twins, as it was published, could not be captured."""

    def loss(a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        c = a.T @ b
        return {"l": torch.diagonal(c).add_(-1).pow_(2).sum() + c.sum()}

    a, b = torch.arange(12.0).view(4, 3), torch.ones(4, 3)
    found = execute(rw.capture(loss, (a, b)), {"a": a.numpy(), "b": b.numpy()})
    assert float(found["l"]) == float(loss(a, b)["l"])


def test_what_a_communication_hook_remembers_is_that_of_one_step() -> None:
    """PowerSGD compresses from its third step on, and its first step was proved without a word."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
    from torch.nn.parallel import DistributedDataParallel

    def step(m: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        m(x).square().mean().backward()
        return {}

    def build(mesh: Any) -> Any:
        m = DistributedDataParallel(nn.Linear(6, 4))
        m.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
        return step, (m, torch.zeros(4, 6))

    sequential = rw.capture(step, (nn.Linear(6, 4), torch.zeros(8, 6)))
    verdict = rw.refine(sequential, rw.capture_ranks(build, {"dp": 2}), {"x": "Shard(0)"})
    assert verdict.status == "proved"
    assert any("powerSGD_hook is captured with its PowerSGDState as that is now" in note for note in verdict.notes)


def test_where_nothing_is_distributed_nothing_is_proved() -> None:
    """A plan that was never applied: every rank ran the whole model, and CI stayed green."""

    def parallel(mesh: Any) -> Any:
        return nn.Linear(4, 4), (torch.zeros(2, 4),)

    sequential = rw.capture(nn.Linear(4, 4), (torch.zeros(2, 4),))
    ranks = rw.capture_ranks(parallel, {"tp": 2})
    verdict = rw.refine(sequential, ranks)
    assert verdict.status == "vacuous"
    assert "nothing is distributed over 2 ranks" in verdict.reason
    assert rw.refine(sequential, ranks, {"*": "Replicate()"}).status == "proved"
