"""Programs that draw random numbers, against ranks that draw theirs: by which seeds they are equal."""

from __future__ import annotations

import json
import linecache
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import rewright as rw
from rewright import ops
from rewright.ir.draws import DRAWS, draws
from rewright.ir.errors import Refused
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.proof.checker import audit

Build = Callable[[Any], Any]
HELD = {"up.weight": "Shard(0)", "down.weight": "Shard(1)", "x": "Replicate()"}


class Block(nn.Module):
    """A feed-forward layer with dropout on what ranks split, and on what they all have."""

    def __init__(self, ranks: int = 1, rate: float = 0.1) -> None:
        super().__init__()
        self.up = nn.Linear(4, 8 // ranks, bias=False)
        self.down = nn.Linear(8 // ranks, 4, bias=False)
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.dropout(self.up(x).relu(), self.rate)
        return F.dropout(self.down(inner), self.rate).square().mean()


class Split(Block):
    """The same on tensor-parallel ranks; what they split is drawn from a state of its own, where there is one."""

    def __init__(self, ranks: int, own_seed: int | None) -> None:
        super().__init__(ranks)
        self.own = None if own_seed is None else torch.Generator().manual_seed(own_seed).get_state()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.up(x).relu()
        if self.own is None:
            inner = F.dropout(inner, self.rate)
        else:
            with torch.random.fork_rng(devices=()):
                torch.set_rng_state(self.own)
                inner = F.dropout(inner, self.rate)
        partial = self.down(inner)
        dist.all_reduce(partial)
        return F.dropout(partial, self.rate).square().mean()


def whole() -> Graph:
    return rw.capture(Block(), (torch.zeros(3, 4),))


def tensor_parallel(own_seeds: tuple[int, int] | None, seeds: tuple[int, int] | None = None) -> RankProgram:
    def build(mesh: Any) -> Any:
        rank = mesh.get_local_rank()
        if seeds is not None:
            torch.manual_seed(seeds[rank])
        return Split(2, None if own_seeds is None else own_seeds[rank]), (torch.zeros(3, 4),)

    return rw.capture_ranks(build, mesh={"tp": 2})


def conditions(verdict: rw.Verdict) -> list[str]:
    return [text for text in verdict.assumptions if "generators" in text]


@pytest.mark.parametrize("seeds", [None, (3, 3)])
def test_split_parts_differ_and_copies_agree(seeds: tuple[int, int] | None) -> None:
    verdict = rw.refine(whole(), tensor_parallel((1, 2), seeds), HELD)
    assert verdict.status == "proved"
    begin = "generators whose seed the program does not set begin in the same state on all ranks; PyTorch"
    assert [text.startswith(begin) for text in conditions(verdict)] == ([True] if seeds is None else [])


@pytest.mark.parametrize(
    ("own", "seeds", "said"),
    [
        ((1, 2), (3, 4), "draw different random numbers for the same elements"),
        ((5, 5), None, "draw the same random numbers for elements that are independent"),
        (None, (3, 3), "draw the same random numbers for elements that are independent"),
        (None, (3, 4), "draw different random numbers for the same elements"),
        (None, None, "draw the same random numbers for elements that are independent"),
    ],
    ids=["copies differ", "parts agree", "one seed", "two seeds", "no seed is right for both"],
)
def test_wrong_seeds_are_refuted_at_the_draw(
    own: tuple[int, int] | None, seeds: tuple[int, int] | None, said: str
) -> None:
    verdict = rw.refine(whole(), tensor_parallel(own, seeds), HELD)
    assert verdict.status == "refuted"
    (finding, *_) = verdict.findings
    assert finding.kind == "random_numbers"
    assert said in finding.message
    assert finding.distributed is not None
    assert "dropout" in linecache.getline(finding.distributed.file, finding.distributed.line)


# --- data parallelism, microbatches, checkpoints


def step(model: nn.Module, x: torch.Tensor, parts: int = 1) -> dict[str, torch.Tensor]:
    losses = [model(part) / parts for part in x.chunk(parts)]
    for loss in losses:
        loss.backward()
    return {"loss": torch.stack(losses).sum().detach()}


def data_parallel(
    make: Callable[[], nn.Module] = Block,
    *,
    seed: Callable[[int], int] | None = None,
    ranks: int = 2,
    parts: int = 1,
    how: Any = "traced",
) -> RankProgram:
    def on_ranks(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        found = step(model, x, parts)
        for value in (*(p.grad for p in model.parameters() if p.grad is not None), found["loss"]):
            dist.all_reduce(value)
            value /= ranks
        return found

    def build(mesh: Any) -> Any:
        if seed is not None:
            torch.manual_seed(seed(mesh.get_local_rank()))
        return on_ranks, (make(), torch.zeros(8 // ranks, 4))

    return rw.capture_ranks(build, mesh={"dp": ranks}, ranks=how)


def one_device(parts: int = 1) -> Graph:
    def program(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return step(model, x, parts)

    return rw.capture(program, (Block(), torch.zeros(8, 4)))


def test_ranks_with_other_rows_need_other_seeds() -> None:
    relations = {"x": "Shard(0)"}
    assert rw.refine(one_device(), data_parallel(seed=lambda rank: 7 + rank), relations).status == "proved"
    verdict = rw.refine(one_device(), data_parallel(), relations)
    assert verdict.status == "proved"
    assert conditions(verdict) == [
        "generators whose seed the program does not set begin in different states on all ranks"
    ]
    verdict = rw.refine(one_device(), data_parallel(seed=lambda _: 7), relations)
    assert (verdict.status, verdict.findings[0].kind) == ("refuted", "random_numbers")


@pytest.mark.parametrize(("own", "ranks", "parts"), [(1, 1, 4), (1, 2, 2), (2, 2, 2), (2, 2, 1)])
def test_microbatches_are_parts_of_one_draw(own: int, ranks: int, parts: int) -> None:
    program = data_parallel(seed=lambda rank: rank, ranks=ranks, parts=parts)
    assert rw.refine(one_device(own), program, {"x": "Shard(0)"}).status == "proved"


class Checkpointed(Block):
    """The same, computed a second time in the backward pass."""

    keeps = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: Any = checkpoint(super().forward, x, use_reentrant=False, preserve_rng_state=self.keeps)
        return found


class Forgetful(Checkpointed):
    """A checkpoint that does not keep the state of the generator."""

    keeps = False


def test_a_checkpoint_that_draws_other_numbers_is_refuted() -> None:
    relations = {"x": "Shard(0)"}
    assert rw.refine(one_device(), data_parallel(Checkpointed, seed=int), relations).status == "proved"
    verdict = rw.refine(one_device(), data_parallel(Forgetful, seed=int), relations)
    assert verdict.status == "refuted"
    assert "preserve_rng_state=True" in verdict.findings[0].message


def test_another_rate_is_refuted_whatever_is_drawn() -> None:
    program = data_parallel(lambda: Block(rate=0.2), seed=int)
    assert rw.refine(one_device(), program, {"x": "Shard(0)"}).status == "refuted"


def test_ranks_that_drop_nothing_are_refuted() -> None:
    program = data_parallel(lambda: Block(rate=0.0), seed=int)
    assert rw.refine(one_device(), program, {"x": "Shard(0)"}).status == "refuted"


def test_which_draws_belong_together_may_not_be_known() -> None:
    """Parts of another size than any microbatch: no placement says what they are."""
    program = data_parallel(seed=int, ranks=1, parts=3)
    verdict = rw.refine(one_device(), program, {"x": "Replicate()"})
    assert verdict.status == "unknown"
    assert "which numbers of the sequential program these are is not known" in verdict.reason


def test_ranks_that_run_draw_as_ranks_that_are_traced() -> None:
    relations = {"x": "Shard(0)"}
    assert rw.refine(one_device(), data_parallel(seed=int, how="threads"), relations).status == "proved"
    assert rw.refine(one_device(), data_parallel(seed=lambda _: 7, how="threads"), relations).status == "refuted"


# --- one program and another


def test_programs_that_draw_from_one_state_are_equal() -> None:
    def own(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.rand(x.shape) < 0.75, x, 0) / 0.75

    x = torch.zeros(2, 3)
    dropped = rw.capture(lambda x: F.dropout(x, 0.25), (x,))
    verdict = rw.equiv(dropped, rw.capture(own, (x,)))
    assert verdict.status == "proved"
    assert "generators are in the same state where both programs begin" in verdict.assumptions
    assert rw.equiv(dropped, rw.capture(lambda x: F.dropout(x, 0.5), (x,))).status == "refuted"


def test_numbers_that_are_drawn_twice_are_not_two_draws() -> None:
    """Both begin with the same state; the second program goes back to it, and its numbers are not independent."""

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rand(3) + torch.rand(2, 3)

    def again(x: torch.Tensor) -> torch.Tensor:
        state = torch.get_rng_state()
        first = x * torch.rand(3)
        torch.set_rng_state(state)
        return first + torch.rand(2, 3)

    x = torch.zeros(2, 3)
    verdict = rw.equiv(rw.capture(twice, (x,)), rw.capture(again, (x,)))
    assert verdict.status == "unknown"
    assert "from one state of a generator" in verdict.reason


def test_numbers_that_nobody_reads_may_be_any() -> None:
    """Every rank samples, and takes what the first one sampled."""

    def sampled(x: torch.Tensor) -> dict[str, torch.Tensor]:
        token = torch.multinomial(torch.softmax(x, -1), 1)
        if dist.is_initialized():
            dist.broadcast(token, 0)
        return {"y": x.gather(1, token)}

    def build(mesh: Any) -> Any:
        torch.manual_seed(mesh.get_local_rank())
        return sampled, (torch.zeros(3, 4),)

    whole = rw.capture(sampled, (torch.zeros(3, 4),))
    verdict = rw.refine(whole, rw.capture_ranks(build, mesh={"tp": 2}), {"x": "Replicate()"})
    assert verdict.status == "proved"


# --- what is stated of draws


def test_a_pattern_is_about_arguments_and_not_about_draws() -> None:
    program = data_parallel(seed=int)
    assert rw.refine(one_device(), program, {"x": "Shard(0)", "*": "Replicate()", "x*": "Shard(0)"}).status == "proved"


def test_equations_of_draws_do_not_make_them_equal() -> None:
    """Ranks draw masks of their own for the same elements, whatever somebody states of them."""
    program = tensor_parallel((1, 2), (3, 4))
    names = [name for name in whole().inputs if name.startswith("random.")]
    stated = {name: [f"{name}@{rank}" for rank in range(2)] for name in names[1:]}
    verdict = rw.refine(whole(), program, {**HELD, **stated})
    assert verdict.status == "unknown"
    assert "not placed" in verdict.reason


def test_a_certificate_has_to_say_what_it_takes_of_seeds() -> None:
    sequential, program = whole(), tensor_parallel((1, 2))
    found = rw.refine(sequential, program, HELD, audit=True).certificate
    assert found is not None
    for about in ("generators whose seed", "random numbers of the ranks"):
        assert any(text.startswith(about) for text in found.assumptions)
        silent = replace(found, assumptions=tuple(t for t in found.assumptions if not t.startswith(about)))
        with pytest.raises(Refused, match=about):
            audit(silent, sequential, program)


def test_a_certificate_for_other_seeds_is_refused() -> None:
    """Names of inputs say which numbers they are; who writes them down otherwise has other draws beside them."""
    sequential, right = whole(), tensor_parallel((1, 2))
    found = rw.refine(sequential, right, HELD, audit=True).certificate
    assert found is not None
    first, second = right.graphs
    alike = json.loads(first.metadata[DRAWS])
    renamed = {draw.name: own.name for draw, own in zip(draws(second), draws(first), strict=True)}
    nodes = [
        replace(node, op=ops.Input(renamed.get(node.op.label, node.op.label), node.type))
        if isinstance(node.op, ops.Input)
        else node
        for node in second.nodes
    ]
    inputs = {renamed.get(name, name): place for name, place in second.inputs.items()}
    notes = {key: text for key, text in second.metadata.items() if not key.startswith("unknown:")}
    notes |= {f"unknown:{name}": first.metadata[f"unknown:{name}"] for name in renamed.values()}
    same = replace(second, nodes=tuple(nodes), inputs=inputs, metadata=notes | {DRAWS: json.dumps(alike)})
    with pytest.raises(Refused):
        audit(found, sequential, replace(right, graphs=(first, same)))
