"""What kernels do with blocks, right and wrong: the right one is proved, and the wrong one is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.certificates import audit
from rewright.kernel.constants import with_infinities
from rewright.ops import TopK

pytest.importorskip("triton")

from tests.kernel import blocks
from tests.kernel.blocks import any_kernel
from tests.kernel.references import normal

Tensor = torch.Tensor
IDS = torch.tensor([3, 1, 3, 8, 0, 3])
LABELS = torch.tensor([3, 19, 0, -100, 7, 11])


def rotated(x: Tensor) -> Tensor:
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([-b, a], -1).flatten(-2)


def slope(x: Tensor, labels: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(F.cross_entropy(leaf, labels), leaf)[0]


def scaled(x: Tensor) -> Tensor:
    return x * 0.9 + 0.0025


def transposed(x: Tensor) -> Tensor:
    return x.unflatten(-1, (4, 4)).transpose(-1, -2).flatten(-2)


def two_largest(x: Tensor) -> tuple[Tensor, Tensor]:
    found = x.max(-1)
    return found.values, found.indices


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as floats of 8 bits, and what each is a multiple of."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 448
    return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn), scale


CASES: dict[str, tuple[Any, Any, tuple[Tensor, ...], dict[str, Any], Any]] = {
    "rotate": (rotated, blocks.rotate, (normal(6, 16),), {"x": {0: "rows"}}, any_kernel(blocks.rotate, turn=False)),
    "first": (two_largest, blocks.first, (normal(6, 20) - 3,), {"x": {0: "rows"}}, any_kernel(blocks.first, other=0.0)),
    "described": (
        lambda a, b: a @ b,
        blocks.described,
        (normal(20, 24), normal(24, 36)),
        {"a": {0: "m", 1: "4*k"}, "b": {0: "4*k", 1: "4*n"}},
        any_kernel(blocks.described, step=32),
    ),
    "handed": (
        lambda a, b: a @ b,
        blocks.handed,
        (normal(20, 24), normal(24, 36)),
        {},
        any_kernel(blocks.handed, step=32),
    ),
    "rounded": (
        rounded,
        blocks.rounded,
        (normal(6, 20),),
        {"x": {0: "rows"}},
        any_kernel(blocks.rounded, most=440.0),
    ),
    "chosen": (
        lambda x, y: torch.cat([y[:2], x[2:]]),
        blocks.chosen,
        (normal(6, 20), normal(7, 20)[1:]),
        {},
        any_kernel(blocks.chosen, least=3),
    ),
    "gradient": (slope, blocks.gradient, (normal(6, 20), LABELS), {}, any_kernel(blocks.gradient, less=0.9)),
    "ignored": (slope, blocks.gradient, (normal(6, 20), LABELS), {}, any_kernel(blocks.gradient, ignored=-1)),
    "gathered": (
        lambda g, ids: torch.zeros(10, g.shape[1]).index_add(0, ids, g),
        blocks.gathered,
        (normal(6, 20), IDS),
        {},
        any_kernel(blocks.gathered, off=1),
    ),
    "tallied": (
        lambda x, ids: torch.zeros(10).index_add(0, ids, x),
        blocks.tallied,
        (normal(6), IDS),
        {},
        any_kernel(blocks.tallied, times=2),
    ),
    "scaled": (
        scaled,
        blocks.scaled,
        (normal(100),),
        {},
        any_kernel(blocks.scaled, factor=0.10001),
    ),
    "difference": (
        lambda x, y: torch.log(1 + torch.exp(y - x)),
        blocks.difference,
        (normal(100) * 1e-3, normal(100) * 1e-3 + 8),
        {},
        any_kernel(blocks.difference, factor=1.0001),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_right_kernel_is_proved_and_the_wrong_one_is_not(name: str) -> None:
    reference, right, args, dynamic, wrong = CASES[name]
    found = rw.kernel(reference, right, args, dynamic=dynamic or None, budget=30)
    assert found.status == "proved", found.reason
    found = rw.kernel(reference, wrong, args, dynamic=dynamic or None, budget=30, explain=False)
    assert found.status == "refuted", found.reason


def test_a_written_decimal_and_a_count_are_assumptions() -> None:
    found = rw.kernel(slope, blocks.gradient, (normal(6, 20), LABELS))
    assert any("its divisor is not zero" in text for text in found.assumptions)
    assert str(found).startswith("proved and audited")
    found = rw.kernel(scaled, blocks.scaled, (normal(100),))
    assert any("differ by the rounding of single precision" in text for text in found.assumptions)


def test_lanes_of_one_instance_run_in_order_and_those_of_others_do_not() -> None:
    found = rw.kernel(transposed, blocks.turn, (normal(6, 16),))
    assert found.status == "proved", found.reason
    assert any("run in the order of the program" in text for text in found.assumptions)

    def one_further(x: Tensor) -> Tensor:
        return torch.cat([x[:1], transposed(x[:-1])])

    found = rw.kernel(one_further, any_kernel(blocks.turn, following=1), (normal(6, 16),))
    assert found.status != "proved"


def test_a_name_that_is_used_again_is_another_value() -> None:
    found = rw.kernel(lambda x: x.sum() + x.amax(1).sum(), blocks.beside, (normal(3, 16),))
    assert found.status == "proved", found.reason


def test_a_kernel_that_overflows_where_its_reference_does_not_is_refuted() -> None:
    found = rw.kernel(lambda x: torch.softmax(x, -1), blocks.naive, (normal(4, 20),))
    assert found.status == "refuted" and "floats overflow" in found.reason


def test_bytes_without_a_sign_are_no_negative_numbers() -> None:
    x = torch.tensor([1, 2, 3, 4], dtype=torch.uint8)
    assert rw.kernel(lambda x: x.int(), blocks.widened, (x,)).status == "proved"
    signed = rw.kernel(lambda x: torch.where(x > 127, x.int() - 256, x.int()), blocks.widened, (x,))
    assert signed.status == "refuted" and "255 by the kernel" in signed.reason


def test_infinities_that_are_meant_hide_no_others() -> None:
    def reference(x: Tensor) -> Tensor:
        return x.masked_fill(x <= 1, float("-inf"))

    assert rw.kernel(reference, blocks.masked, (normal(12),)).status == "proved"
    assert rw.kernel(reference, any_kernel(blocks.masked, wrong=True), (normal(12),)).status == "refuted"


def test_the_first_largest_element_is_found_tile_by_tile() -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor]:
        values, places = (x * 2).max(-1)
        return values, places.int()

    x = normal(4, 70).round()
    found = rw.kernel(reference, blocks.chosen_place, (x,))
    assert found.status == "proved", found.reason
    assert rw.kernel(reference, any_kernel(blocks.chosen_place, last=True), (x,)).status == "refuted"
    assert rw.kernel(reference, any_kernel(blocks.chosen_place, mask=False), (x,)).status != "proved"


def test_what_is_an_order_of_real_numbers_alone_is_not_read_as_one() -> None:
    x = normal(4, 70)
    graph = rw.capture(blocks.never_chosen, (x,), validate=False)
    rows = [graph.nodes[node.operands[0]].type.shape[-1] for node in graph.nodes if isinstance(node.op, TopK)]
    assert rows and 70 not in rows, "the row as a whole is what a right search is read as"
    assert rw.kernel(lambda x: x.argmax(-1).int(), blocks.never_chosen, (x,)).status == "refuted"


def test_what_masks_fill_in_stands_for_minus_infinity_and_is_no_result(tmp_path: Path) -> None:
    def reference(x: Tensor) -> Tensor:
        later = torch.arange(x.shape[1]) > torch.arange(x.shape[0])[:, None]
        return torch.softmax(x.masked_fill(later, -torch.inf), -1)

    x = normal(6, 20)
    found = rw.kernel(reference, blocks.filled_softmax, (x,))
    assert found.status == "proved", found.reason
    assert any("stand for minus infinity" in text for text in found.assumptions)
    found.certificate.save(tmp_path / "kernel.json")
    assert any("stand for" in text for text in audit(tmp_path / "kernel.json", *found.graphs).said[0].lines)
    assert rw.kernel(reference, any_kernel(blocks.filled_softmax, fill=-1.0), (x,)).status == "refuted"

    found = rw.kernel(lambda x: torch.where(x > 0, x, -torch.inf), blocks.filled, (x,))
    assert found.status != "proved"
    graphs = [rw.capture(any_kernel(blocks.greater_fill, fill=fill), (x,), validate=False) for fill in (-1e8, -2e8)]
    assert all(with_infinities(graph) is None for graph in graphs)


def test_windows_of_capped_scores_start_in_their_first_tile() -> None:
    def reference(x: Tensor) -> Tensor:
        place, row = torch.arange(x.shape[1]), torch.arange(x.shape[0])[:, None]
        seen = (place <= row) & (row - place < 6)
        return torch.logsumexp(torch.where(seen, 5 * torch.tanh(x / 5), -torch.inf), -1)

    x = normal(12, 12)
    found = rw.kernel(reference, blocks.windowed, (x,))
    assert found.status == "proved", found.reason
    assert rw.kernel(reference, any_kernel(blocks.windowed, width=7), (x,)).status == "refuted"
    assert rw.kernel(reference, any_kernel(blocks.windowed, cap=4.0), (x,)).status == "refuted"
