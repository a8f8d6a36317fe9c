"""Programs that name CUDA are captured on the CPU, and nothing is left of that afterwards."""

import pytest
import torch
from torch import nn

import rewright as rw
from rewright.frontends.torch.without_cuda import without_cuda


class NamesCuda(nn.Module):
    """What training code for GPUs is full of."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 4, device=torch.cuda.current_device()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            mask = torch.ones(4, 4, device="cuda").tril()
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_push("product")
        found = x.cuda() @ self.weight.to("cuda:0") * mask.to(torch.device("cuda", 1), torch.float32)
        torch.cuda.nvtx.range_pop()
        return found


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight * torch.ones(4, 4).tril()


def test_a_program_that_names_cuda_is_the_same_on_the_cpu() -> None:
    with without_cuda():
        graph = rw.capture(NamesCuda(), (torch.zeros(4, 4),), backward=False)
    assert rw.equiv(rw.capture(Plain(), (torch.zeros(4, 4),)), graph).status == "proved"


def test_inside_a_device_is_the_cpu_and_outside_nothing_is_changed() -> None:
    before = {name: getattr(torch.cuda, name) for name in ("Stream", "current_device", "is_available")}
    with without_cuda():
        assert torch.zeros(2, device="cuda").device.type == "cpu"
        assert torch.cuda.Event(enable_timing=True).record() is None
        assert not torch.cuda.is_available()
    assert {name: getattr(torch.cuda, name) for name in before} == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is about machines without a GPU")
def test_the_replacement_ends_with_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError), without_cuda():
        raise ZeroDivisionError
    with pytest.raises((RuntimeError, AssertionError)):
        torch.zeros(2, device="cuda")


def test_a_device_that_is_synchronised_has_waited_for_every_collective() -> None:
    def ranks(x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = x.exp().sum(0)
        torch.distributed.all_reduce(y, async_op=True)
        torch.cuda.synchronize()
        return {"y": y}

    with without_cuda():
        program = rw.capture_ranks(lambda mesh: (ranks, (torch.zeros(3, 4),)), {"ranks": 2})
    sequential = rw.capture(lambda x: {"y": x.exp().sum(0)}, (torch.zeros(6, 4),))
    assert rw.refine(sequential, program, relations={"x": "Shard(0)"}).status == "proved"
