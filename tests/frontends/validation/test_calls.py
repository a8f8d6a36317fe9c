"""What is checked of a capture call by call, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

import rewright as rw
from rewright.frontends.torch.validation import calls
from rewright.frontends.torch.validation.eager import refuse_trap
from rewright.frontends.validation.record import EQUAL, Validation, validation_of
from rewright.frontends.validation.store import Store
from rewright.ir.digest import digest
from rewright.ir.text import print_graph
from rewright.ops.files import parse

X = torch.zeros(4, 4)


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(calls, "open_store", lambda framework: Store(tmp_path / "validated.txt", framework))


def checked(program: object, *args: torch.Tensor, backward: bool = False) -> Validation:
    found = validation_of(rw.capture(program, args, backward=backward))
    assert found is not None
    return found


def test_a_call_is_checked_once_whatever_its_sizes() -> None:
    found = checked(lambda x, y: (x.exp(), x[:2].exp(), y.exp()), torch.zeros(64, 64), torch.zeros(32, 4096))
    assert [call for call in found.calls if "exp" in call] == [
        "aten.exp.default(f32[5, 5]#0)",
        "aten.exp.default(f32[2, 5]#0)",
        "aten.exp.default(f32[5, 7]#0)",
    ]
    assert found.program == EQUAL


def test_sizes_shrink_with_the_attributes_that_are_made_of_them() -> None:
    found = checked(lambda x: x.view(2, 128, 32, 128).transpose(1, 2), torch.zeros(2, 128, 4096))
    assert "aten.view.default(f32[2, 5, 35]#0, [2, 5, 7, 5])" in found.calls


def test_a_backward_is_run_on_what_its_forward_gave() -> None:
    found = checked(lambda x: F.layer_norm(x, (4,)).square().sum(), X.requires_grad_(), backward=True)
    (norm,) = (call for call in found.calls if "layer_norm_backward" in call)
    assert norm.startswith("aten.native_layer_norm.default(")


def test_indices_stay_within_what_they_index() -> None:
    table, ids = torch.zeros(50, 16), torch.zeros(2, 3, dtype=torch.long)
    found = checked(lambda w, i: F.embedding(i, w).square().sum(), table.requires_grad_(), ids, backward=True)
    assert not found.skipped
    assert any("embedding_dense_backward" in call for call in found.calls)


OPEN = {
    "topk": lambda x: x.topk(2),
    "sort": lambda x: x.sort(),
    "argsort": lambda x: x.argsort(),
    "uint8": lambda x: x.to(torch.uint8),
    "int32": lambda x: (x * 1e30).to(torch.int32),
    "floor": lambda x: x // 0.1,
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "pool": lambda x: F.max_pool2d(x[None], 3, 1, 1),
    "in place": lambda x: x.add_(1).t().mul_(2),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0, 2.0])),
    "loss": lambda x: F.binary_cross_entropy(x.sigmoid(), x.sigmoid()),
    "half": lambda x: x.half().bfloat16().sum(),
}


@pytest.mark.parametrize("program", OPEN.values(), ids=OPEN)
def test_what_pytorch_leaves_open_is_no_difference(program: object) -> None:
    assert checked(program, torch.zeros(4, 4)).calls


def test_what_cannot_be_run_is_told_with_the_reason() -> None:
    def build(mesh: object) -> tuple[object, tuple[torch.Tensor, ...]]:
        return lambda x: dist.all_reduce(x) or x, (X,)

    found = validation_of(rw.capture_ranks(build, {"tp": 2}).graphs[0])
    assert found is not None
    assert "it exchanges values between ranks" in dict(found.skipped).values()
    assert "(it exchanges values between ranks)" in str(found)


def test_memory_that_nothing_was_written_to_is_nothing_to_check() -> None:
    assert not checked(lambda x: torch.empty(4, 4).copy_(x), X).skipped


def test_the_random_numbers_of_the_program_are_not_used_up() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    checked(lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), X)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_default_dtype() is torch.float32


def test_the_record_is_kept_in_files_and_is_no_part_of_the_program() -> None:
    graph = rw.capture(lambda x: x.exp(), (X,))
    again = parse(print_graph(graph))
    assert validation_of(again) == validation_of(graph) is not None
    assert digest(graph) == digest(rw.capture(lambda x: x.exp(), (X,), validate=False))


def test_without_validation_nothing_is_run_and_nothing_said() -> None:
    assert validation_of(rw.capture(lambda x: x.exp(), (X,), validate=False)) is None


def test_calls_of_all_ranks_are_checked_once() -> None:
    def build(mesh: object) -> tuple[object, tuple[torch.Tensor, ...]]:
        return lambda x: dist.all_reduce(y := x.exp()) or y, (X,)

    program = rw.capture_ranks(build, {"tp": 2})
    found = validation_of(program.graphs[0])
    assert found is not None
    assert "aten.exp.default(f32[4, 4]#0)" in found.calls
    assert validation_of(program.graphs[1]) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_largest_number_of_a_type_is_that_of_the_program(dtype: torch.dtype) -> None:
    """Calls are run in float64, whose largest number is another one."""
    graph = rw.capture(lambda x: x.nan_to_num(0), (torch.randn(3, 4, dtype=dtype),))
    assert validation_of(graph) is not None


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_the_lowest_integer_is_not_divided_by_minus_one(dtype: torch.dtype) -> None:
    """PyTorch's kernel ends the process there; such operands are drawn, and others are drawn instead."""
    lowest, one = torch.full((3,), torch.iinfo(dtype).min, dtype=dtype), torch.ones(3, dtype=dtype)
    target, keywords = torch.ops.aten.div.Tensor_mode, {"rounding_mode": "trunc"}

    with pytest.raises(ArithmeticError, match="divided by -1"):
        refuse_trap(target, (lowest, -one), keywords)
    refuse_trap(target, (lowest, one), keywords)
    refuse_trap(target, (lowest.float(), -one), keywords)

    found = checked(lambda a, b: torch.div(a, b, rounding_mode="trunc"), lowest, one)
    assert len(found.calls) == 1 and not found.skipped
