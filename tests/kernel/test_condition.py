"""Conditions on inputs: what is proved for inputs that meet one, and what is no condition."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import rewright as rw  # noqa: E402
from rewright.certificates import audit  # noqa: E402
from rewright.ir.errors import Refused, RewrightError  # noqa: E402
from tests.kernel import blocks  # noqa: E402
from tests.kernel.test_blocks import any_kernel  # noqa: E402
from tests.kernel.wrong import after, after_reference, before, before_reference  # noqa: E402

Tensor = torch.Tensor
GENERATOR = torch.Generator().manual_seed(0)
ARGUMENTS = (torch.randn(6, 20, generator=GENERATOR), torch.tensor([4, 1, 2]), torch.randn(3, 20, generator=GENERATOR))


def halved(states: Tensor, slots: Tensor, x: Tensor) -> Tensor:
    """A state in each slot, and what is added to it; slots up to zero are none, which this does not say."""
    return states.index_copy(0, slots, states.index_select(0, slots) * 0.5 + x)


def are_slots(states: Tensor, slots: Tensor, x: Tensor) -> Tensor:
    return slots > 0


def test_a_kernel_is_proved_for_inputs_that_meet_a_condition(tmp_path: Any) -> None:
    assert rw.kernel(halved, blocks.halved, ARGUMENTS).status == "refuted"
    found = rw.kernel(halved, blocks.halved, ARGUMENTS, given=are_slots)
    assert found.status == "proved", found.reason
    assert any(text.startswith("the condition at test_condition.py:") for text in found.assumptions)

    path = tmp_path / "kernel.json"
    found.certificate.save(path)
    assert any("the condition at" in text for text in audit(path, *found.graphs).said[0].lines)
    path.write_text(path.read_text().replace('"GT"', '"GE"'))
    with pytest.raises((Refused, RewrightError)):
        audit(path, *found.graphs)


def test_a_wrong_kernel_is_refuted_under_a_condition_too() -> None:
    wrong = any_kernel(blocks.halved, factor=0.25)
    assert rw.kernel(halved, wrong, ARGUMENTS, given=are_slots).status == "refuted"


def test_parts_of_rows_are_written_one_after_the_other() -> None:
    def reference(cache: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return cache.index_copy(0, slots, torch.cat([k, v], 1))

    args = (torch.zeros(6, 28), torch.tensor([4, 1, 2]), torch.ones(3, 16), torch.ones(3, 12))
    found = rw.kernel(reference, blocks.joined_rows, args, given=lambda cache, slots, k, v: slots >= 0)
    assert found.status == "proved", found.reason
    wrong = any_kernel(blocks.joined_rows, first=15)
    assert rw.kernel(reference, wrong, args, given=lambda cache, slots, k, v: slots >= 0).status == "refuted"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda states, slots, x: slots, "gives numbers"),
        (lambda states, slots, x: slots > 4, "do not meet the condition"),
        (lambda states, slots, x: 3, "gives no tensors"),
        (lambda slots: slots > 0, "fails on the arguments"),
    ],
)
def test_what_is_no_condition_is_an_error(given: Any, why: str) -> None:
    with pytest.raises(RewrightError, match=why):
        rw.kernel(halved, blocks.halved, ARGUMENTS, given=given)


@pytest.mark.parametrize(("first", "status"), [(1, "proved"), (0, "refuted")])
def test_what_data_leads_to_is_in_bounds(first: int, status: str) -> None:
    """The row before is read where no sequence starts, which the first one has to."""
    starts = torch.tensor([first, 0, 0, 1, 0])
    found = rw.kernel(
        lambda x: before_reference(x, starts), lambda x: before(x, starts), (torch.randn(5, 16, generator=GENERATOR),)
    )
    assert found.status == status, found.reason


@pytest.mark.parametrize(("in_place", "status"), [(False, "proved"), (True, "unknown")])
def test_what_data_leads_to_may_be_what_another_instance_writes(in_place: bool, status: str) -> None:
    """The interpreter runs instances in order, in which the rows that are read are still those of before."""
    ends = torch.tensor([0, 0, 1, 0, 1])
    args = (torch.randn(5, 16, generator=GENERATOR),)
    found = rw.kernel(lambda x: after_reference(x, ends), lambda x: after(x, ends, in_place=in_place), args)
    assert found.status == status, found.reason
