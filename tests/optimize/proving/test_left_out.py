"""What is not proved, or takes too many functions, is left out of kernels, and the rest is fused all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright import ops
from rewright.frontends.torch.eager.operators import TORCH, library, tensor_of
from rewright.ir.graph import Node
from rewright.ir.types import DType, TensorType
from rewright.optimize import making
from rewright.optimize.planning import planner as planning
from rewright.optimize.planning.plan import KernelStep, LibraryStep, Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.proofs import Trust
from rewright.optimize.report import kernel_lines
from tests.optimize.programs import normal


def program(q: torch.Tensor, k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Causal attention, and something after it."""
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])[None]
    weights = torch.softmax((q @ k.T / 4).masked_fill(j > i, float("-inf")), -1)
    return torch.tanh(x) @ torch.sin(weights @ k).T


ARGS = normal(9, 16), normal(9, 16, seed=1), normal(9, 16, seed=2)


def test_a_tensor_that_is_not_proved_is_computed_by_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Planner(prepare_graph(rw.capture(program, ARGS))).plan()
    tanh = next(p for p, node in enumerate(whole.graph.nodes) if isinstance(node.op, ops.Tanh))
    usual = making.trust

    def doubtful(plan: Plan, *args: Any, **options: Any) -> Trust:
        fused = {s.tensor for kernel in plan.kernels for s in kernel.stores}
        return Trust(reason="no law for it", unproved=(tanh,)) if tanh in fused else usual(plan, *args, **options)

    monkeypatch.setattr(making, "trust", doubtful)
    found = rw.optimize(program, ARGS, target="torch")

    assert found.status == "proved" and found.plan is not None, found.reason
    assert tanh in {s.position for s in found.plan.steps if isinstance(s, LibraryStep)}
    assert any("follows the running" in line or "no law for it" in line for line in found.explain().splitlines())
    torch.testing.assert_close(found(*ARGS), program(*ARGS))


def test_a_mask_that_a_library_reads_too_is_still_known_in_kernels() -> None:
    def masked(q: torch.Tensor, k: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = torch.arange(k.shape[0])[None] <= torch.arange(q.shape[0])[:, None]
        weights = torch.softmax((q @ k.T / 4).masked_fill(~kept, float("-inf")), -1)
        return weights @ k, torch.where(kept, y, 1.0)

    graph = prepare_graph(rw.capture(masked, (*ARGS[:2], normal(9, 9))))
    chosen = graph.outputs["output.1"]
    assert isinstance(graph.nodes[chosen].op, ops.Select)
    plan = Planner(graph, frozenset({chosen})).plan()

    lines = [line for step in plan.steps if isinstance(step, KernelStep) for line in kernel_lines(plan, step)]
    assert any("everywhere are skipped" in line for line in lines)


def recurrence(x: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
    """The states of a recurrence that is written out."""
    state, states = torch.zeros_like(x[0]), []
    for row in x:
        state = torch.exp(-decay * torch.sigmoid(row)) * state + torch.tanh(row)
        states.append(state)
    return torch.softmax(torch.stack(states), -1)


def test_the_states_of_a_recurrence_are_not_computed_from_the_start_for_each_step() -> None:
    args = normal(12, 16), normal(16, seed=1)
    found = rw.optimize(recurrence, args, target="torch")

    assert found.status == "proved" and found.plan is not None, found.reason
    assert any("takes many functions" in d for d in found.plan.decisions)
    torch.testing.assert_close(found(*args), recurrence(*args))


FLOATS = normal(3, 5) * 4, normal(3, 5, seed=1) * 4
CASES: list[tuple[Any, tuple[torch.Tensor, ...], TensorType]] = [
    *((op(), FLOATS[:1], TensorType((3, 5), DType.F32)) for op in (ops.Exponential, ops.Tanh, ops.Negate, ops.Abs)),
    *((op(), (FLOATS[0].abs(),), TensorType((3, 5), DType.F32)) for op in (ops.Log, ops.LogPlusOne, ops.Rsqrt)),
    *((op(), FLOATS, TensorType((3, 5), DType.F32)) for op in (ops.Divide, ops.Maximum, ops.Subtract)),
    (ops.Compare("GE"), FLOATS, TensorType((3, 5), DType.BOOL)),
    (ops.Clamp(), (FLOATS[0] * 0 - 1, FLOATS[0], FLOATS[0] * 0 + 1), TensorType((3, 5), DType.F32)),
    (ops.Convert(DType.I32), FLOATS[:1], TensorType((3, 5), DType.I32)),
    (ops.Convert(DType.BOOL), FLOATS[:1], TensorType((3, 5), DType.BOOL)),
    (ops.Select(), (FLOATS[0] > 0, *FLOATS), TensorType((3, 5), DType.F32)),
    (ops.Divide(), ((FLOATS[0] * 9).int(), torch.full((3, 5), 4).int()), TensorType((3, 5), DType.I32)),
    (ops.Concatenate(1), FLOATS, TensorType((3, 10), DType.F32)),
    (ops.Reduce("sum", (0,)), ((FLOATS[0] * 9).int(),), TensorType((5,), DType.I32)),
    (ops.Reduce("maximum", (0, 1)), FLOATS[:1], TensorType((), DType.F32)),
    (ops.Reduce("or", (1,)), (FLOATS[0] > 3,), TensorType((3,), DType.BOOL)),
]


@pytest.mark.parametrize(("op", "operands", "kind"), CASES, ids=lambda v: getattr(v, "name", None) or "")
def test_operators_by_torch_are_those_that_are_meant(
    op: Any, operands: tuple[torch.Tensor, ...], kind: TensorType
) -> None:
    node = Node(op, tuple(range(len(operands))), kind)

    found = library(node, operands)

    arrays = [(t.double() if t.is_floating_point() else t).numpy() for t in operands]
    torch.testing.assert_close(found, tensor_of(op.execute(arrays)).to(TORCH[kind.dtype]))
    assert found.dtype == TORCH[kind.dtype]


def test_a_plan_that_has_no_form_as_a_graph_is_proved_without_what_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    from rewright.optimize.proving import regraph
    from rewright.optimize.proving.regraph_loads import NoGraph

    usual: Callable[..., Any] = regraph._Writer.kernel

    def refusing(writer: Any, kernel: Any) -> None:
        ops_of = {type(writer.source.nodes[s.tensor].op) for s in kernel.stores}
        if ops.Tanh in ops_of:
            raise NoGraph("the index has no form in operators")
        usual(writer, kernel)

    monkeypatch.setattr(regraph._Writer, "kernel", refusing)
    found = rw.optimize(program, ARGS, target="torch")

    assert found.status == "proved" and found.plan is not None, found.reason
    torch.testing.assert_close(found(*ARGS), program(*ARGS))


def test_a_program_of_which_nothing_is_proved_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        making,
        "trust",
        lambda plan, *args, **options: Trust(
            reason="no law", unproved=tuple(s.tensor for k in plan.kernels for s in k.stores)
        ),
    )
    found = rw.optimize(program, ARGS, target="torch")

    assert found.status == "fallback" and "no law" in found.reason and "\n" not in found.reason
    torch.testing.assert_close(found(*ARGS), program(*ARGS))


def test_what_is_looked_up_at_places_that_are_laid_out_otherwise_is_proved() -> None:
    """The bias of a window by relative position: the places are one row in the program, and a square in the kernel."""

    def window(x: torch.Tensor, shift: torch.Tensor, table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        q, k, v = ((part + shift).view(3, 6, 2, 8).transpose(1, 2) for part in x)
        bias = table[places.view(-1)].view(6, 6, 2).permute(2, 0, 1)[None].expand(3, -1, -1, -1)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2)

    args = normal(3, 3, 6, 16), normal(16), normal(11, 2), torch.arange(6)[:, None] - torch.arange(6) + 5

    found = rw.optimize(window, args, target="torch")

    assert found.status == "proved" and not found.left_out, (found.reason, found.left_out)
    assert found.plan is not None and [type(step) for step in found.plan.steps] == [KernelStep]
    torch.testing.assert_close(found(*args), window(*args))


def test_reductions_that_are_alike_are_stored_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan that is written out has one inner product for each step, none of which fits into what reads them."""
    read: list[int] = []
    usual = planning.Reader.root

    def counted(reader: planning.Reader, position: int, names: tuple[str, ...]) -> Any:
        read.append(position)
        return usual(reader, position, names)

    def scan(x: torch.Tensor, c: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        state, outputs = torch.zeros_like(x[:, 0]), list[torch.Tensor]()
        for step in range(x.shape[1]):
            state = torch.tanh(state + x[:, step])
            outputs.append((state * c[:, step, None]).sum(-1))
        return torch.stack(outputs, 1) @ w

    args = normal(2, 9, 8, 4), normal(2, 9, 4, seed=1), normal(8, 6, seed=2)
    monkeypatch.setattr(planning.Reader, "root", counted)
    graph = prepare_graph(rw.capture(scan, args))
    Planner(graph).plan()

    assert read.count(graph.outputs["output"]) <= 3
