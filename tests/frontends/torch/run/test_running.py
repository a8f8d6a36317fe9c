"""Programs that run for real: what is recorded, what is fixed at the value of the run, and what is said about it."""

import re
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import rewright as rw
from rewright import ops
from rewright.frontends.torch.run.routing import ONE_RUN
from rewright.interp.program import run
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def step(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    loss = model(x).pow(2).mean()
    loss.backward()
    return {"loss": loss}


def computed(graph: Graph, /, **inputs: torch.Tensor) -> dict[str, np.ndarray]:
    return run(graph, {name: value.detach().numpy() for name, value in inputs.items()})


def named(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in module.named_parameters()}


def test_a_run_is_recorded_as_the_program_that_ran() -> None:
    module, x = model(), torch.randn(3, 4)
    graph = rw.capture(step, (module, x), run=True)
    assert all(parameter.grad is None for parameter in module.parameters())
    found = computed(graph, **({"x": x} | named(module)))
    loss = module(x).pow(2).mean()
    loss.backward()
    np.testing.assert_allclose(found["loss"], loss.item(), rtol=1e-5)
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(found[f"grad:{name}"], parameter.grad, rtol=1e-4, atol=1e-6)
    assert graph.metadata["assumptions"] == ONE_RUN


def test_memory_that_nobody_wrote_to_is_no_constant_of_the_run() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        counts = torch.bincount(x.topk(2).indices.reshape(-1), minlength=8)
        assert cast("Any", counts).tolist()
        return x * (counts + torch.empty_like(counts))

    graph = rw.capture(program, (torch.randn(4, 8),), run=True)
    assert any(isinstance(node.op, ops.CustomCall) for node in graph.nodes)
    assert "before it is written" in graph.metadata["assumptions"]


@pytest.mark.parametrize("numbers", [[2**63 - 1, -(2**63), 0], [-(2**62), 2**62, 0], [0, 2**62, -(2**63)]])
def test_constants_whose_difference_is_beyond_64_bits(numbers: list[int]) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor(numbers)

    graph = rw.capture(program, (torch.zeros(3, dtype=torch.int64),))
    np.testing.assert_array_equal(computed(graph, x=torch.zeros(3, dtype=torch.int64))["output"], numbers)


def test_a_branch_on_a_value_is_taken_as_it_was_and_named() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum().item() > 0 else x

    graph = rw.capture(program, (torch.ones(2),), run=True)
    assert "test_running.py" in graph.metadata["assumptions"]
    np.testing.assert_allclose(computed(graph, x=-torch.ones(2))["output"], [-2, -2])


def test_places_that_come_from_values_are_those_of_the_run() -> None:
    def largest(x: torch.Tensor) -> torch.Tensor:
        places = torch.topk(x, 2).indices
        return x[places.tolist()]

    graph = rw.capture(largest, (torch.tensor([1.0, 5.0, 3.0]),), run=True)
    assert not any(isinstance(node.op, (ops.Gather, ops.TopK)) for node in graph.nodes)
    assert "the integers computed at" in graph.metadata["assumptions"]
    np.testing.assert_allclose(computed(graph, x=torch.tensor([7.0, 8.0, 9.0]))["output"], [8, 9])


def test_places_that_nobody_looks_at_stay_as_they_are_computed() -> None:
    graph = rw.capture(lambda x: x[torch.topk(x, 2).indices], (torch.tensor([1.0, 5.0, 3.0]),), run=True)
    assert re.fullmatch(
        rf"{ONE_RUN}; no two elements are equal among which topk chooses at test_running.py:\d+",
        graph.metadata["assumptions"],
    )
    np.testing.assert_allclose(computed(graph, x=torch.tensor([9.0, 7.0, 8.0]))["output"], [9, 8])


@pytest.mark.parametrize(
    "choose",
    [lambda x: x[x > 0], lambda x: torch.masked_select(x, x > 0), lambda x: x[torch.nonzero(x > 0).squeeze(1)]],
)
def test_elements_chosen_by_a_mask_are_those_of_the_run(choose: object) -> None:
    assert callable(choose)
    graph = rw.capture(choose, (torch.tensor([1.0, -1.0, 2.0]),), run=True)
    np.testing.assert_allclose(computed(graph, x=torch.tensor([4.0, 5.0, 6.0]))["output"], [4, 6])


def test_an_integer_input_that_is_looked_at_is_fixed() -> None:
    def program(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return torch.cat([part.sum(0, keepdim=True) for part in x.split(lengths.tolist())])

    graph = rw.capture(program, (torch.ones(3), torch.tensor([1, 2])), run=True)
    assert list(graph.inputs) == ["x"]
    assert "the input 'lengths' is that of the run" in graph.metadata["assumptions"]


def test_a_tensor_without_values_cannot_run() -> None:
    with pytest.raises(CaptureError, match="'x' has no values"):
        rw.capture(lambda x: x, (torch.empty(2, device="meta"),), run=True)


def data_parallel(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
    torch.manual_seed(1)
    return step, (DistributedDataParallel(model()), torch.randn(8, 4).chunk(2)[mesh.get_rank()].clone())


FORKS = pytest.mark.skipif(torch.version.cuda is not None, reason="builds for CUDA fork after no backward pass")


@pytest.mark.parametrize("ranks", ["threads", pytest.param("processes", marks=FORKS)])
def test_the_reducer_of_data_parallelism_is_recorded(ranks: str) -> None:
    program = rw.capture_ranks(data_parallel, {"dp": 2}, ranks=ranks)
    sequential = rw.capture(step, (model(), torch.randn(8, 4)))
    assert any(isinstance(node.op, ops.AllReduce) for node in program.graphs[0].nodes)
    verdict = rw.refine(sequential, program, relations={"x": "Shard(0)"})
    gradients = [verdict.relation[name] for name in verdict.relation if name.startswith("grad:")]
    assert len(gradients) == 4
    assert all(relation.holds for relation in gradients)
    assert ONE_RUN in verdict.assumptions


def test_every_rank_draws_the_random_numbers_of_one_rank() -> None:
    seen: list[float] = []

    def build(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
        torch.manual_seed(3)
        dist.all_reduce(torch.zeros(1))  # the other ranks draw in between
        seen.append(torch.rand(1).item())
        return (lambda x: x * 2), (torch.ones(2),)

    rw.capture_ranks(build, {"dp": 3}, ranks="threads")
    assert len(set(seen)) == 1


def test_a_missing_send_is_a_deadlock_with_its_line() -> None:
    def build(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
        def program(x: torch.Tensor) -> torch.Tensor:
            if mesh.get_rank() == 1:
                dist.recv(x, 0)
            return x + 1

        return program, (torch.ones(2),)

    for ranks in ("threads", "processes"):
        with pytest.raises(CaptureError, match=r"rank 1 waits for message 0 from rank 0 .*test_running.py.* ended"):
            rw.capture_ranks(build, {"pp": 2}, ranks=ranks)


def test_ranks_that_call_other_collectives_are_told_apart() -> None:
    def build(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
        def program(x: torch.Tensor) -> torch.Tensor:
            if mesh.get_rank() == 0:
                dist.all_reduce(x)
            else:
                dist.broadcast(x, 0)
            return x

        return program, (torch.ones(2),)

    with pytest.raises(CaptureError, match=r"calls broadcast at .* where rank 1|calls all_reduce at .*"):
        rw.capture_ranks(build, {"tp": 2}, ranks="threads")


def test_split_sizes_that_do_not_agree_are_refused() -> None:
    def build(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
        def program(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty(4, 2)
            dist.all_to_all_single(out, x, [2, 2], [1, 3])
            return out

        return program, (torch.ones(4, 2),)

    with pytest.raises(CaptureError, match="sends 1 rows and member 0 expects 2"):
        rw.capture_ranks(build, {"ep": 2}, ranks="threads")


def test_an_unknown_way_to_capture_is_refused() -> None:
    with pytest.raises(CaptureError, match="write one of traced, threads, processes"):
        rw.capture_ranks(data_parallel, {"dp": 2}, ranks="fibers")  # type: ignore[arg-type]


class Weighted(nn.Module):
    """Rows times a weight that ranks hold parts of, as a DTensor."""

    def __init__(self, mesh: DeviceMesh | None = None) -> None:
        super().__init__()
        whole = torch.arange(12.0).reshape(4, 3)
        self.w = nn.Parameter(whole if mesh is None else distribute_tensor(whole, mesh, [Shard(0)]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own = self.w.to_local() if isinstance(self.w, DTensor) else self.w
        y = (x.unsqueeze(1) * own).sum(1)
        if isinstance(self.w, DTensor):
            dist.all_reduce(y)
        return y


def test_gradients_of_dtensors_are_recorded_in_a_run() -> None:
    sequential = rw.capture(step, (Weighted(), torch.ones(2, 3)), run=True)
    program = rw.capture_ranks(lambda mesh: (step, (Weighted(mesh), torch.ones(2, 3))), {"tp": 2}, ranks="threads")
    found = rw.refine(sequential, program)
    assert found.status == "proved", found.reason
    assert "grad:w" in found.relation


def test_a_complex_buffer_is_an_input_of_its_parts_in_a_run() -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("turns", torch.polar(torch.ones(3), torch.arange(3.0)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(torch.view_as_complex(x) * self.turns)

    module, x = Turned(), torch.randn(3, 2)
    graph = rw.capture(module, (x,), run=True)
    turns = torch.view_as_real(module.get_buffer("turns"))
    found = computed(graph, x=x, turns=turns)
    np.testing.assert_allclose(found["output"], module(x), rtol=1e-5)
    assert module.get_buffer("turns").is_complex()


def test_one_number_written_by_a_mask_leaves_the_mask_free() -> None:
    def program(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[labels < 0] = 0.0
        return y

    x = torch.randn(4)
    graph = rw.capture(program, (x, torch.tensor([1, -1, 2, 3])), run=True)
    others = torch.tensor([-1, 1, -2, 3])
    np.testing.assert_allclose(computed(graph, x=x, labels=others)["output"], program(x, others))


def test_what_an_operator_only_reads_is_not_written_by_it() -> None:
    """Counts are added to a buffer of floats and looked at afterwards: they come from the choice, not from the sum."""

    def program(scores: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        chosen = scores.topk(1, -1)[1].reshape(-1)
        counts = torch.zeros(3, dtype=torch.int64).scatter_add_(0, chosen, torch.ones_like(chosen))
        total.add_(counts)
        first, _ = scores.sort(0)[0].split([int(counts[0]), len(chosen) - int(counts[0])])
        return first.sum() + total.sum()

    graph = rw.capture(program, (torch.randn(4, 3), torch.zeros(3)), run=True)
    assert "the integers computed at" in graph.metadata["assumptions"]
    assert "looks at" not in graph.metadata["assumptions"]


def test_one_tensor_under_two_names_is_refused() -> None:
    x = torch.ones(3)
    with pytest.raises(CaptureError, match="'x' and 'y' are one tensor"):
        rw.capture(lambda x, y: x + 2 * y, (x, x), run=True)
