"""Pipelines, routed experts and ring attention: right ones are proved, and each wrong one is refuted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import rewright as rw
from rewright.ir.errors import CaptureError
from rewright.refine.verdict import Verdict
from zoo import pipelines, ring, routed


def proof_of_pipeline(build: Any, degree: int = 2, ranks: str = "threads") -> Verdict:
    step, args, kwargs = pipelines.sequential(degree)
    return rw.refine(rw.capture(step, args, kwargs), rw.capture_ranks(build, {"pp": degree}, ranks=ranks))


@pytest.mark.parametrize("plan", ["gpipe", "1f1b", "interleaved", "sends"])
def test_loss_and_every_gradient_of_a_pipeline(plan: str) -> None:
    verdict = proof_of_pipeline(pipelines.parallel(plan, 2))
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["loss"].equation == "loss = loss@1"
    assert verdict.relation["grad:layers.0.0.weight"].equation == "grad:layers.0.0.weight = grad:layers.0.0.weight@0"


@pytest.mark.parametrize("plan", ["looped", "zero bubble", "zero bubble, v", "dual pipe, v"])
def test_two_stages_on_each_rank(plan: str) -> None:
    """Backward passes that are taken apart, and stages that go down the ranks and up again."""
    verdict = proof_of_pipeline(pipelines.parallel(plan, 2))
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["loss"].equation == ("loss = loss@0" if plan.endswith("v") else "loss = loss@1")


@pytest.mark.skipif(torch.version.cuda is not None, reason="builds for CUDA fork after no backward pass")
def test_more_stages_and_a_process_for_each() -> None:
    assert proof_of_pipeline(pipelines.parallel("1f1b", 3), 3, "processes").status == "proved"


def test_sends_by_hand_need_no_values() -> None:
    assert proof_of_pipeline(pipelines.parallel("sends", 2), ranks="traced").status == "proved"


def changed(change: Callable[[Any, int, dict[str, torch.Tensor]], Any]) -> Callable[[DeviceMesh], Any]:
    """1F1B over two stages with one thing changed: what makes the stage, or what is given to it."""

    def build(mesh: DeviceMesh) -> Any:
        rank = mesh.get_rank()
        part = pipelines.stack(4).part(2 * rank, 2 * rank + 2)
        stage = PipelineStage(part, rank, 2, torch.device("cpu"), group=mesh.get_group())
        name = "target" if rank else "x"
        given = {name: pipelines.batch(4)[name]}
        schedule = change(stage, rank, given)

        def step(model: Any, **given: torch.Tensor) -> dict[str, torch.Tensor]:
            losses: list[torch.Tensor] | None = [] if rank else None
            target = given["target"].flip(0) if rank and getattr(schedule, "reversed", False) else given.get("target")
            schedule.step(*([] if rank else [given["x"]]), target=target, losses=losses)
            return {"loss": torch.stack(losses).mean()} if losses else {}

        return step, (part,), given

    return build


def test_gradients_that_are_not_divided_by_the_micro_batches() -> None:
    def undivided(stage: Any, rank: int, given: Any) -> Any:
        return Schedule1F1B(stage, 4, loss_fn=pipelines.loss_of, scale_grads=False)

    verdict = proof_of_pipeline(changed(undivided))
    assert verdict.status == "refuted"
    assert verdict.relation["loss"].holds
    assert not verdict.relation["grad:layers.0.0.weight"].holds


def test_targets_in_another_order_than_the_micro_batches() -> None:
    def reversed_(stage: Any, rank: int, given: Any) -> Any:
        schedule = Schedule1F1B(stage, 4, loss_fn=pipelines.loss_of)
        schedule.reversed = True  # type: ignore[attr-defined]
        return schedule

    verdict = proof_of_pipeline(changed(reversed_))
    assert verdict.status == "refuted"
    assert not verdict.relation["loss"].holds


def test_a_gradient_that_a_stage_with_the_layer_does_not_return() -> None:
    def build(mesh: DeviceMesh) -> Any:
        module, x = torch.nn.Linear(2, 2, bias=False), torch.ones(3, 2)

        def step(module: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = module(x).sum()
            if mesh.get_rank() == 0:
                loss.backward()
            return {"loss": loss}

        return step, (module, x)

    def step(module: Any, x: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = module(x).sum()
        loss.backward()
        return {"loss": loss}

    sequential = rw.capture(step, (torch.nn.Linear(2, 2, bias=False), torch.ones(3, 2)))
    verdict = rw.refine(sequential, rw.capture_ranks(build, {"pp": 2}))
    assert verdict.status == "refuted"
    assert not verdict.relation["grad:weight"].holds


def by_hand(order: tuple[int, int]) -> Verdict:
    """Two stages that send two micro-batches by hand, the first stage in some order."""

    def sequential(x: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = ((x @ a).tanh() @ b - y).square().mean()
        loss.backward()
        return {"loss": loss.detach()}

    def first(x: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        sent = [(part @ a).tanh() for part in x.chunk(2)]
        for number in order:
            dist.send(sent[number].detach(), 1)
        for hidden in sent:
            gradient = torch.empty(2, 5)
            dist.recv(gradient, 1)
            hidden.backward(gradient)
        return {}

    def second(x: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
        total = torch.zeros(())
        for part in y.chunk(2):
            hidden = torch.empty(2, 5)
            dist.recv(hidden, 0)
            hidden.requires_grad_()
            loss = (hidden @ b - part).square().mean() / 2
            loss.backward()
            total = total + loss.detach()
            dist.send(hidden.grad, 0)
        return {"loss": total}

    weights = [torch.zeros(shape, requires_grad=True) for shape in ((3, 5), (5, 2))]
    given = torch.zeros(4, 3), torch.zeros(4, 2), *weights
    program = rw.capture_ranks(lambda mesh: ((first, second)[mesh.get_local_rank()], given), {"pp": 2})
    wanted = {"loss": "loss@1", "grad:a": "grad:a@0", "grad:b": "grad:b@1"}
    return rw.refine(rw.capture(sequential, given), program, expect=wanted)


def test_micro_batches_that_are_sent_by_hand() -> None:
    verdict = by_hand((0, 1))
    assert verdict.status == "proved", verdict.reason


def test_a_finding_behind_a_message_says_who_sent_it_and_where() -> None:
    verdict = by_hand((1, 0))
    assert verdict.status == "refuted"
    assert any("what rank 1 sent at" in found.message for found in verdict.findings)
    assert all(found.kind != "missing_reduction" for found in verdict.findings)


EXPERTS = {"up": "Shard(0)", "down": "Shard(0)"}


def proof_of_mixture(plan: str, build: Any, degree: int = 2, *, backward: bool = False) -> Verdict:
    step, args, kwargs = routed.sequential(degree, backward=backward)
    sequential = rw.capture(step, args, kwargs, run=True)
    program = rw.capture_ranks(build, {"ep": degree}, ranks="threads")
    relations = EXPERTS | ({"x": "Shard(0)"} if plan == "all_to_all" else {})
    partial = {"grad:router.gate.weight": "Partial(sum)"} if backward else {}
    partial |= {"loss": "Partial(sum)"} if backward and plan == "all_to_all" else {}
    return rw.refine(sequential, program, relations=relations, expect=partial)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("plan", ["all_reduce", "all_to_all"])
def test_experts_over_ranks(plan: str, degree: int) -> None:
    verdict = proof_of_mixture(plan, routed.parallel(plan, degree, backward=False), degree)
    assert verdict.status == "proved", verdict.reason
    assert any("the integers computed at routed.py" in text for text in verdict.assumptions)


@pytest.mark.parametrize("degree", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients_of_experts_and_router_with_all_to_all(degree: int) -> None:
    verdict = proof_of_mixture(
        "all_to_all", routed.parallel("all_to_all", degree, backward=True), degree, backward=True
    )
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["grad:up"].placement == "Shard(0)"


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "degree"), [("all_reduce", 2), ("all_reduce", 4), ("all_to_all", 4)])
def test_gradients_of_a_router_whose_shares_are_multiplied_out(plan: str, degree: int) -> None:
    verdict = proof_of_mixture(plan, routed.parallel(plan, degree, backward=True), degree, backward=True)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["grad:router.gate.weight"].placement == 'Partial("sum")'


class Detached(routed.Reduced):
    """The weights of the experts that a token goes to add up to one, and the gradient does not know of it."""

    def __init__(self, experts: int, group: Any) -> None:
        super().__init__(experts, group)
        self.router = Constant(experts)


class Constant(routed.Router):
    """A router that takes the sum of its weights as a constant."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), routed.CHOSEN, dim=-1)
        return weights / weights.sum(-1, keepdim=True).detach(), chosen


@pytest.mark.long
def test_a_router_without_the_gradient_of_its_normalisation() -> None:
    def build(mesh: DeviceMesh) -> Any:
        torch.manual_seed(0)
        return routed.step, (Detached(4, mesh.get_group()), routed.tokens(2))

    verdict = proof_of_mixture("all_reduce", build, backward=True)
    assert verdict.status == "refuted"
    assert not verdict.relation["grad:router.gate.weight"].holds


class Unsorted(routed.Exchanged):
    """Forgets to put the results back into the order in which their tokens arrived."""

    def computed(self, rows: torch.Tensor, arriving: torch.Tensor) -> torch.Tensor:
        numbers = torch.arange(self.own).repeat(self.size).repeat_interleave(arriving)
        sizes = arriving.view(self.size, self.own).sum(0).tolist()
        parts = rows[torch.argsort(numbers, stable=True)].split(sizes)
        return torch.cat([self.expert(number, part) for number, part in enumerate(parts)])


class Swapped(routed.Exchanged):
    """Sends as many rows as it should receive."""

    def exchange(self, rows: torch.Tensor, receive: list[int], send: list[int]) -> torch.Tensor:
        return (
            super().exchange(rows, send, receive)
            if rows.shape[0] == sum(receive)
            else super().exchange(rows, receive, send[::-1])
        )


def with_mixture(kind: type[routed.ParallelMixture], plan: str) -> Callable[[DeviceMesh], Any]:
    def build(mesh: DeviceMesh) -> Any:
        torch.manual_seed(0)
        model, every = kind(4, mesh.get_group()), routed.tokens(2)
        mine = every.chunk(2)[mesh.get_rank()].clone() if plan == "all_to_all" else every
        return routed.forward, (model, mine)

    return build


def test_results_that_come_back_in_another_order() -> None:
    verdict = proof_of_mixture("all_to_all", with_mixture(Unsorted, "all_to_all"))
    assert verdict.status == "refuted"
    assert verdict.findings[0].distributed is not None
    assert verdict.findings[0].distributed.file.endswith(("routed.py", "test_schedules.py"))


def test_wrong_split_sizes_do_not_run() -> None:
    with pytest.raises(CaptureError, match=r"sends \d+ rows and member \d expects \d+|split_with_sizes|rank"):
        rw.capture_ranks(with_mixture(Swapped, "all_to_all"), {"ep": 2}, ranks="threads")


RING = dict.fromkeys(("query", "key", "value"), "Shard(1)")


def proof_of_ring(build: Any, degree: int, *, causal: bool = False) -> Verdict:
    program, args, kwargs = ring.sequential(degree, causal=causal)
    return rw.refine(rw.capture(program, args, kwargs), rw.capture_ranks(build, {"cp": degree}), relations=RING)


@pytest.mark.sample(4)
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("plan", ["online", "merged"])
def test_attention_around_a_ring(plan: str, degree: int) -> None:
    verdict = proof_of_ring(ring.parallel(plan, degree), degree)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["output"].placement == "Shard(1)"


@pytest.mark.sample(3)
@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("plan", ["online", "merged"])
def test_causal_attention_around_a_ring(plan: str, degree: int) -> None:
    verdict = proof_of_ring(ring.parallel(plan, degree, causal=True), degree, causal=True)
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize("plan", ["online", "merged"])
def test_a_ring_that_masks_nothing(plan: str) -> None:
    assert proof_of_ring(ring.parallel(plan, 2), 2, causal=True).status == "refuted"


def with_merge(merge: Callable[..., torch.Tensor], around: type[ring.Ring] = ring.Ring) -> Callable[[DeviceMesh], Any]:
    def build(mesh: DeviceMesh) -> Any:
        here = around(mesh.get_group())

        def program(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            return merge(here, query, key, value, causal=False)

        return program, (), ring.inputs(ring.TOKENS)

    return build


def blockwise(
    here: ring.Ring, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, rescale: bool, total: bool
) -> torch.Tensor:
    """Online softmax that may forget to rescale the result, or the sum."""
    block = ring.scores(query, key, 0, 0, causal=False)
    largest = block.amax(-1, keepdim=True)
    weights = torch.exp(block - largest)
    size, result = weights.sum(-1, keepdim=True), weights @ value
    for _ in range(1, here.size):
        key, value = here.passed_on(key), here.passed_on(value)
        block = ring.scores(query, key, 0, 0, causal=False)
        larger = torch.maximum(largest, block.amax(-1, keepdim=True))
        weights, shrink = torch.exp(block - larger), torch.exp(largest - larger)
        size = size * (shrink if total else 1) + weights.sum(-1, keepdim=True)
        result = result * (shrink if rescale else 1) + weights @ value
        largest = larger
    return result / size


@pytest.mark.parametrize(("rescale", "total"), [(False, True), (True, False), (False, False)])
def test_a_block_that_is_not_rescaled(rescale: bool, total: bool) -> None:
    def merge(*args: Any, causal: bool) -> torch.Tensor:
        return blockwise(*args, rescale=rescale, total=total)

    verdict = proof_of_ring(with_merge(merge), 2)
    assert verdict.status == "refuted"
    assert verdict.findings[0].distributed is not None
    assert verdict.findings[0].distributed.file.endswith("test_schedules.py")


class Silent(ring.Ring):
    """Rank 0 does not send."""

    def passed_on(self, tensor: torch.Tensor) -> torch.Tensor:
        received = torch.empty_like(tensor)
        if self.rank != 0:
            dist.send(tensor.contiguous(), (self.rank + 1) % self.size, self.group)
        dist.recv(received, (self.rank - 1) % self.size, self.group)
        return received


def test_a_ring_in_which_one_rank_does_not_send() -> None:
    """What is told is how ranks wait for each other, found as their calls are played, and which send is missing."""
    verdict = proof_of_ring(with_merge(ring.online, Silent), 2)
    assert verdict.status == "refuted"
    assert "rank 1 waits for rank 0 to send what it receives" in verdict.reason
    assert "rank 0 sends less to rank 1 than that receives: add the matching send" in verdict.reason


class Keyless(ring.Ring):
    """Values travel on, and keys stay where they are."""

    def passed_on(self, tensor: torch.Tensor) -> torch.Tensor:
        self.calls = getattr(self, "calls", 0) + 1
        passed = super().passed_on(tensor)
        return tensor if self.calls % 2 else passed


def test_keys_that_do_not_travel_with_their_values() -> None:
    assert proof_of_ring(with_merge(ring.online, Keyless), 2).status == "refuted"
