"""Optimised programs as operators of PyTorch: in exported and compiled programs, and what cannot be one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.optimize.api import Optimized
from tests.optimize.programs import normal

ARGS = normal(2, 4, 9, 8), normal(2, 4, 9, 8, seed=1), normal(2, 4, 9, 8, seed=2)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float = 0.5, causal: bool = True) -> Any:
    """The result, and the largest weights by name."""
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    weights = torch.softmax(scores, -1)
    return weights @ v, {"largest": weights.amax(-1)}


class Model(torch.nn.Module):
    """A linear layer before an operator."""

    def __init__(self, operator: Callable[..., Any]) -> None:
        super().__init__()
        self.linear, self.operator = torch.nn.Linear(8, 8), operator

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return self.operator(self.linear(q), k=k, v=v)


def optimized(program: Any, args: tuple[Any, ...], **options: Any) -> Optimized:
    found = rw.optimize(program, args, target="torch", **options)
    assert found.status == "proved", found.reason
    return found


def test_results_are_those_of_the_program_and_the_operator_is_well_behaved() -> None:
    operator = optimized(attention, ARGS).register("mine::attention")

    torch.testing.assert_close(operator(*ARGS), attention(*ARGS))
    torch.library.opcheck(torch.ops.mine.attention.default, ARGS)


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_has_one_call(strict: bool) -> None:
    model = Model(optimized(attention, ARGS).register("mine::exported"))

    exported = torch.export.export(model, ARGS, strict=strict)

    calls = [str(node.target) for node in exported.graph.nodes if "mine" in str(node.target)]
    assert calls == ["mine.exported.default"]
    torch.testing.assert_close(exported.module()(*ARGS), model(*ARGS))


def test_a_compiled_program_has_no_break_there() -> None:
    model = Model(optimized(attention, ARGS).register("mine::compiled"))
    torch.compiler.reset()

    with torch.no_grad():
        found = torch.compile(model, fullgraph=True, backend="aot_eager")(*ARGS)

    torch.testing.assert_close(found, model(*ARGS))


def test_sizes_that_change_stay_symbols() -> None:
    named = {0: "batch", 2: "tokens"}
    found = optimized(lambda q, k, v: attention(q, k, v)[0], ARGS, dynamic=dict.fromkeys("qkv", named))
    model = Model(found.register("mine::flexible"))
    sizes = {0: torch.export.Dim("batch", max=64), 2: torch.export.Dim("tokens", min=2, max=512)}

    exported = torch.export.export(model, ARGS, dynamic_shapes=dict.fromkeys("qkv", sizes))

    other = tuple(x.repeat(2, 1, 3, 1) for x in ARGS)
    torch.testing.assert_close(exported.module()(*other), attention(model.linear(other[0]), *other[1:])[0])


def test_a_module_keeps_its_parameters() -> None:
    block = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 4), torch.nn.GELU())
    operator = optimized(block, (ARGS[0],)).register("mine::block")

    assert dict(operator.named_parameters()).keys() == {f"program.{name}" for name, _ in block.named_parameters()}
    with torch.no_grad():
        block[1].weight.mul_(2)
        torch.testing.assert_close(operator(ARGS[0]), block(ARGS[0]))


def test_other_arguments_than_those_of_the_example_are_refused() -> None:
    operator = optimized(attention, (*ARGS, 0.5, False)).register("mine::uncausal")

    torch.testing.assert_close(operator(*ARGS, scale=0.5, causal=False), attention(*ARGS, causal=False))
    with pytest.raises(RewrightError, match="causal was False and is True"):
        operator(*ARGS, 0.5, True)
    with pytest.raises(RewrightError, match=r"scale was 0\.5 and is -0\.0"):
        operator(*ARGS, -0.0, False)
    with pytest.raises(RewrightError, match="causal is given in the example or the call alone"):
        operator(*ARGS, 0.5)
    with pytest.raises(RewrightError, match="must be a tensor of"):
        operator(*(x[:1] for x in ARGS), 0.5, False)


def test_a_gradient_is_refused() -> None:
    operator = optimized(attention, ARGS).register("mine::untrained")
    result = operator(ARGS[0].clone().requires_grad_(), *ARGS[1:])[0]

    with pytest.raises(RuntimeError, match="kernels that have no gradient"):
        result.sum().backward()


def test_results_that_share_memory_are_apart() -> None:
    def program(x: torch.Tensor) -> Any:
        y = x.exp()
        return y, y.view(-1)

    one, other = optimized(program, (ARGS[0],)).register("mine::twice")(ARGS[0])

    assert one.data_ptr() != other.data_ptr()
    torch.testing.assert_close(one.view(-1), other)


WRONG: dict[str, tuple[Any, str]] = {
    "name": (lambda x: x + 1, "write namespace::name"),
    "mine::written": (lambda x: x.add_(1), "writes to x"),
    "mine::viewed": (lambda x: (x + 1, x.view(-1)), "returns memory of its inputs"),
    "mine::held": ((lambda layer: lambda x: layer(x).exp().sum(-1))(torch.nn.Linear(8, 8)), "optimize that module"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_an_operator_is_said(name: str) -> None:
    program, why = WRONG[name]
    found = optimized(program, (ARGS[0].clone(),))

    with pytest.raises(RewrightError, match=why):
        found.register(name)
