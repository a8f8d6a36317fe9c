"""Operators without a lowering are run by torch, and what is around them is fused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright import ops
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.lower import foreign
from rewright.ir.errors import RewrightError, UnsupportedOperator
from rewright.ir.types import DType, TensorType
from tests.optimize.programs import normal

Function = Callable[[torch.Tensor], torch.Tensor]
ARGS = normal(1, 2, 19, 16), normal(1, 2, 19, 16, seed=1)


def spectrum(x: torch.Tensor) -> torch.Tensor:
    """The real part of a transform along two axes: complex in between."""
    return torch.fft.fft(torch.fft.fft(x, dim=-1) * 2j, dim=-2).real


FUNCTIONS: dict[str, Function] = {
    "nextafter": lambda x: torch.nextafter(x, x + 1),
    "frexp": lambda x: torch.frexp(x)[0] + torch.frexp(x)[1],
    "ndtri": lambda x: torch.special.ndtri(torch.sigmoid(x)),
    "igamma": lambda x: torch.igamma(x.abs() + 1, x.abs() + 0.5),
    "igammac": lambda x: torch.special.gammaincc(x.abs() + 1, x.abs() + 0.5),
    "bessel_j1": torch.special.bessel_j1,
    "bessel_y0": lambda x: torch.special.bessel_y0(x.abs() + 1),
    "_fft_c2c": spectrum,
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_around_an_operator_that_is_not_understood_is_fused(name: str) -> None:
    def program(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        mixed = torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ k
        return F.layer_norm(FUNCTIONS[name](mixed), (16,))

    found = rw.optimize(program, ARGS, target="torch")

    assert found.status == "proved" and found.plan is not None, found.reason
    assert len(found.plan.kernels) >= 2
    assert name in found.left_out and "has no kernel" in found.left_out and "\n" not in found.left_out
    assert found.checked is not None and "agrees" in found.checked.reason
    torch.testing.assert_close(found(*ARGS), program(*ARGS), atol=1e-4, rtol=1e-4)


def test_an_opaque_call_says_in_full_what_is_run() -> None:
    graph = capture(spectrum, (ARGS[0],), opaque=True)
    calls = [node.op for node in graph.nodes if isinstance(node.op, ops.CustomCall)]

    assert len(calls) == 1 and foreign.names(calls[0])[:2] == ["aten._fft_r2c.default", "aten.mul.Tensor"]
    other = capture(lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1) * 3j, dim=-2).real, (ARGS[0],), opaque=True)
    assert calls[0] not in [node.op for node in other.nodes]


def test_programs_that_differ_in_an_opaque_call_are_not_proved_equal() -> None:
    left = capture(lambda x: torch.special.bessel_j0(x) + 1, (ARGS[0],), opaque=True)
    right = capture(lambda x: torch.special.bessel_j1(x) + 1, (ARGS[0],), opaque=True)
    half = capture(lambda x: torch.special.bessel_j0(x / 2) + 1, (ARGS[0],), opaque=True)

    assert rw.equiv(left, left, budget=5).status == "proved"
    assert rw.equiv(left, right, budget=5).status != "proved"
    assert rw.equiv(left, half, budget=5).status != "proved"


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x + torch.rand_like(x),
        lambda x: x + torch.bernoulli(torch.sigmoid(x)),
        lambda x: torch.nonzero(x > 0).sum(),
    ],
    ids=["random", "drawn", "size"],
)
def test_calls_that_do_more_than_compute_are_refused(program: Function) -> None:
    with pytest.raises(RewrightError):
        capture(program, (ARGS[0],), opaque=True)
    found = rw.optimize(program, (ARGS[0],), target="torch")
    assert found.status == "fallback" and "\n" not in found.reason


def test_a_write_into_memory_that_an_opaque_call_shares_is_seen() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        turned = torch.fft.fft(x)
        parts = torch.view_as_real(turned)
        parts.mul_(2.0)
        return turned.real + x

    found = rw.optimize(program, (ARGS[0],), target="torch")

    torch.testing.assert_close(found(ARGS[0]), program(ARGS[0]))


def test_without_leave_an_operator_is_refused_as_before() -> None:
    with pytest.raises(UnsupportedOperator, match=r"bessel_j0.*no lowering exists"):
        rw.capture(torch.special.bessel_j0, (ARGS[0],))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[["load_library", ["none.so"], {}]]', "load_library is no operator"),
        ('[["classes.load_library", ["none.so"], {}]]', "is no operator"),
        ('[["aten.add_.Tensor", [{"operand": 0}, {"operand": 0}], {}]]', "aten.add_.Tensor is no operator"),
        ('[["aten.rand_like.default", [{"operand": 0}], {}]]', "aten.rand_like.default is no operator"),
        ('[["aten.to.dtype", [{"operand": 0}, {"kind": "dtype", "name": "load"}], {}]]', "load is none of"),
        ("[1]", "does not say what is called"),
        ("{", "does not say what is called"),
    ],
)
def test_a_file_cannot_have_anything_else_run(text: str, said: str) -> None:
    call = ops.CustomCall(foreign.TARGET, (("calls", text),), (TensorType((2,), DType.F32),), 0)
    with pytest.raises(RewrightError, match=said):
        foreign.run(call, [torch.zeros(2)])


def test_floats_of_eight_bits_are_left_to_pytorch() -> None:
    def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 448.0
        return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale

    args = (normal(4, 64),)
    found = rw.optimize(quantised, args)

    assert "has floats of 8 bits, which kernels are not printed for" in found.reason
    for ours, theirs in zip(found(*args), quantised(*args), strict=True):
        assert torch.equal(ours.float(), theirs.float())
