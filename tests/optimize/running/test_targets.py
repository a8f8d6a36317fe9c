"""Where a target computes, and what is said where that is not where the tensors are."""

import pytest
import torch

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.running.targets import device_of


class OnAGpu:
    """A tensor as far as it matters here."""

    is_cuda, device = True, torch.device("cuda", 1)


def test_plain_torch_runs_where_the_tensors_are_and_kernels_in_cpp_on_the_cpu():
    assert device_of("torch", [torch.zeros(1), OnAGpu()]) == torch.device("cuda", 1)  # type: ignore[list-item]
    assert device_of("torch", []) == device_of("cpu", [torch.zeros(1)]) == torch.device("cpu")


def test_kernels_in_cpp_never_read_memory_of_a_gpu():
    with pytest.raises(RewrightError, match="for tensors of the CPU"):
        device_of("cpu", [torch.zeros(1), OnAGpu()])  # type: ignore[list-item]


def test_without_a_gpu_the_program_itself_runs_and_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    found = rw.optimize(torch.sin, (torch.zeros(3),), target="cuda", remember=False)

    assert found.status == "fallback" and "no GPU here" in found.reason
    assert torch.equal(found(torch.zeros(3)), torch.zeros(3))


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_kernels_run_where_the_tensors_are_whatever_the_default_device_is(target: str):
    """Under ``meta`` a tensor that a kernel makes for itself would have no values."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, -1)

    x = torch.linspace(-1, 1, 32).reshape(4, 8)
    found = rw.optimize(program, (x,), target=target, floor=False, remember=False)  # type: ignore[arg-type]

    with torch.device("meta"):
        result = found(x)

    assert found.status == "proved" and not found.notes
    torch.testing.assert_close(result, program(x))
