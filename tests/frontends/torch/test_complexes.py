"""Complex tensors as real ones with an axis for the two parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import Placement

import rewright as rw
from rewright.interp.program import run
from rewright.ir.errors import RewrightError

X = torch.zeros(3, 4, 6)
Function = Callable[[torch.Tensor], torch.Tensor]


def angles() -> torch.Tensor:
    return torch.arange(4.0)[:, None] * 10.0 ** -torch.arange(3)


def pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))


def turns() -> torch.Tensor:
    return torch.polar(torch.ones(4, 3), angles())


def out(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x)


def written_conjugate(x: torch.Tensor) -> torch.Tensor:
    """Both see what is written into either."""
    held = pairs(x.clone())
    seen = held.conj()
    seen[0] *= 3j
    held[1] += 1
    return out(held) + out(seen.resolve_conj())


FUNCTIONS: dict[str, Function] = {
    "rotary": lambda x: out(pairs(x) * turns()).flatten(-2),
    "by positions": lambda x: out(pairs(x) * turns()[torch.tensor([3, 1, 1, 0])]),
    "gathered": lambda x: out(pairs(x) * turns().gather(-2, torch.tensor([3, 1, 1, 0])[:, None].expand(4, 3))),
    "conjugate": lambda x: out(pairs(x) * turns().conj()),
    "parts": lambda x: (pairs(x) * turns()).real + (pairs(x) * turns()).imag,
    "of parts": lambda x: out(torch.complex(x[..., :3], x[..., 3:]) * turns()),
    "sizes": lambda x: out((2 * turns() * 0.5 / 3).expand(3, -1, -1) * pairs(x) * x[..., :3]),
    "sums": lambda x: out(pairs(x) + turns() - (-pairs(x)) * turns()),
    "layouts": lambda x: out(pairs(x).transpose(-1, -2).unsqueeze(-1).permute(3, 0, 2, -3).reshape(4, -1)),
    "slices": lambda x: out(pairs(x)[..., 1:][:, :2].select(-2, 1).squeeze(0)),
    "joined": lambda x: out(torch.cat([pairs(x), pairs(x) * turns()], -1)),
    "parted": lambda x: out(torch.cat([*reversed((pairs(x) * turns()).chunk(2, -1)), *pairs(x).split([1, 2], -1)], -1)),
    "stacked": lambda x: out(torch.stack([pairs(x), pairs(x).clone()], -1)),
    "quotient": lambda x: out(pairs(x) / turns() + 1 / turns()),
    "functions": lambda x: out(pairs(x).exp() + (pairs(x) * turns()).sin() - turns().log() * 1j),
    "sizes and angles": lambda x: pairs(x).abs() + pairs(x).angle() + pairs(x).sum(0).sgn().real,
    "products": lambda x: out(pairs(x) @ turns().mT + (pairs(x) - 2).mean(0) @ turns().mH),
    "chosen": lambda x: out(torch.where(x[..., :3] > 0, pairs(x), turns()) + x[..., :3]),
    "written": lambda x: out(pairs(x.clone()).mul_(2 + 1j)),
    "a written conjugate": written_conjugate,
    "transform": lambda x: out(torch.fft.fft(x) + torch.fft.ifft(turns(), n=6, dim=-1)),
    "transform of halves": lambda x: torch.fft.irfft2(torch.fft.rfft2(x) * 2, s=(4, 6)),
    "wide": lambda x: out(pairs(x).to(torch.complex128) * turns()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_complex_numbers_compute(name: str) -> None:
    graph = rw.capture(FUNCTIONS[name], (X,))
    x = torch.randn(X.shape, generator=torch.Generator().manual_seed(0))
    expected = FUNCTIONS[name](x).resolve_conj()
    found = run(graph, {"x": x.numpy()})["output"]
    assert found.shape == tuple(expected.shape)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


def test_what_shares_memory_goes_on_sharing_it() -> None:
    """A write into the real tensor is one into the complex tensor that views it, and the other way round."""

    def program(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        viewed = pairs(x)
        x[..., 0] = 7.0
        turned = viewed * turns()
        out(viewed)[..., 1] = 5.0
        return out(turned).flatten(-2) + x

    x = torch.randn(X.shape, generator=torch.Generator().manual_seed(0))
    found = run(rw.capture(program, (X,)), {"x": x.numpy()})["output"]
    np.testing.assert_allclose(found, program(x).numpy(), atol=1e-5)


def test_gradients() -> None:
    def loss(x: torch.Tensor) -> torch.Tensor:
        return (out(pairs(x) * turns()).flatten(-2) * x.cos()).sum()

    x = torch.randn(X.shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    graph = rw.capture(loss, (X.clone().requires_grad_(),), backward=True)
    loss(x).backward()
    assert x.grad is not None
    np.testing.assert_allclose(run(graph, {"x": x.detach().numpy()})["grad:x"], x.grad.numpy(), atol=1e-5)


class Held(torch.nn.Module):
    """Complex numbers that are held, and that a program is given."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", turns())

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return out(pairs(x) * self.get_buffer("turns") * z)


def test_complex_tensors_are_given_as_their_parts() -> None:
    x, z = (torch.randn(n, generator=torch.Generator().manual_seed(0)) for n in (X.shape, (3, 2)))
    graph = rw.capture(Held(), (X, torch.zeros(3, dtype=torch.complex64)))
    assert graph.nodes[graph.inputs["turns"]].type.shape == (4, 3, 2)
    given = {"x": x.numpy(), "z": z.numpy(), "turns": out(turns()).numpy()}
    expected = Held()(x, torch.view_as_complex(z)).numpy()
    np.testing.assert_allclose(run(graph, given)["output"], expected, atol=1e-5)


def test_complex_results_are_their_parts() -> None:
    graph = rw.capture(lambda x: pairs(x) * turns(), (X,))
    x = torch.randn(X.shape, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(run(graph, {"x": x.numpy()})["output"], out(pairs(x) * turns()).numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: out(pairs(x.clone()).transpose_(0, 1)),
        lambda x: out(pairs(x).atan()),
        lambda x: out(pairs(x).cumsum(0)),
        lambda x: out(torch.linalg.eigvals(x)),
    ],
)
def test_what_is_refused(function: Function) -> None:
    with pytest.raises(RewrightError) as caught:
        rw.capture(function, (X,))
    assert "complex" in str(caught.value) and "\n" not in str(caught.value)


class Turned(torch.nn.Module):
    """A product and a rotation of its pairs by a table of complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(6, 6))
        self.register_buffer("table", turns())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of three pairs."""
        table: torch.Tensor = self.table  # type: ignore[assignment]
        return out(pairs(x @ self.weight) * table).flatten(-2)


@pytest.mark.parametrize("held", [Replicate(), Shard(0), Shard(1)], ids=str)
def test_a_complex_buffer_that_ranks_hold_in_parts(held: Placement) -> None:
    def parallel(mesh: DeviceMesh) -> Any:
        model = Turned()
        model.weight = torch.nn.Parameter(distribute_tensor(model.weight, mesh, [Replicate()]))
        model.register_buffer("table", distribute_tensor(turns(), mesh, [held]))
        return model, (DTensor.from_local(torch.zeros(4, 6), mesh, [Replicate()]),)

    program = rw.capture_ranks(parallel, {"tp": 3 if held == Shard(1) else 2})
    table = program.inputs["table"]
    assert [runs[-1] for runs in table.runs] == [((0, 2),)] * len(table.runs)  # both parts of every number
    verdict = rw.refine(
        rw.capture(Turned(), (torch.zeros(4, 6),)), program, audit=True, allow_vacuous=held == Replicate()
    )
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
