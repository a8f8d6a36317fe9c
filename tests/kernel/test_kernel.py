"""Kernels are proved for all sizes, and wrong ones refuted by what Triton's interpreter does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rewright as rw
from tests.kernel.references import REFERENCES, normal

pytest.importorskip("triton", reason="Triton is the extra [gpu]")

from tests.kernel import programs, wrong


@pytest.mark.parametrize("name", REFERENCES)
def test_a_kernel_is_its_reference(name: str) -> None:
    reference = REFERENCES[name]
    found = rw.kernel(reference.function, getattr(programs, name), reference.args, dynamic=reference.dynamic)

    assert found.status == "proved" and found.evidence.value == "proved", found.reason
    assert found.runs > 0


def test_parameters_may_have_other_names_and_need_not_be_read() -> None:
    def launcher(first: Any, second: Any, _third: Any) -> Any:
        return programs.add(first, second)

    reference = REFERENCES["add"]
    args = (*reference.args, normal(3))

    assert rw.kernel(lambda x, y, z: x + y, launcher, args, dynamic=reference.dynamic).status == "proved"


def test_functions_of_any_number_of_arguments_need_no_names_in_common() -> None:
    def launcher(x: Any, *others: Any) -> Any:
        return programs.add(x, *others)

    assert rw.kernel(lambda *both: both[0] + both[1], launcher, (normal(50), normal(50))).status == "proved"


def test_sizes_that_are_numbers_need_no_condition_on_offsets() -> None:
    reference = REFERENCES["add"]
    found = rw.kernel(reference.function, programs.add, reference.args)

    assert found.status == "proved"
    assert not any("overflow" in text for text in found.assumptions)


def test_a_loop_assumes_that_its_maximum_is_a_number() -> None:
    reference = REFERENCES["softmax"]
    found = rw.kernel(reference.function, programs.softmax, reference.args, dynamic=reference.dynamic)

    assert any("is a number after the first iteration" in text for text in found.assumptions)


@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("add", "unmasked", "writes outside of the memory"),
        ("add", "last_tile", "by the kernel"),
        ("softmax", "without_rescaling", "by the kernel"),
        ("matmul", "dropped_tile", "by the kernel"),
    ],
)
def test_a_wrong_kernel_is_refuted(name: str, wrong: str, text: str) -> None:
    reference = REFERENCES[name]
    found = rw.kernel(reference.function, getattr(programs, wrong), reference.args, dynamic=reference.dynamic)

    assert found.status == "refuted" and text in found.reason, found.reason
    assert found.findings


@pytest.mark.parametrize(
    ("reference", "name", "shape"),
    [
        (wrong.factor_reference, "factor", (4, 64)),
        (wrong.prefix_reference, "prefix", (4, 64)),
        (wrong.one_more, "in_place", (64,)),
        (wrong.doubled, "again", (64,)),
        (wrong.start_reference, "start", (50,)),
        (wrong.total, "filled", (50,)),
    ],
)
def test_what_a_careless_reading_would_prove(reference: Any, name: str, shape: tuple[int, ...]) -> None:
    found = rw.kernel(reference, getattr(wrong, name), (normal(*shape),))

    assert found.status == "refuted", found.reason


def test_what_a_masked_load_leaves_undefined_is_zero_by_assumption_alone() -> None:
    found = rw.kernel(wrong.total, wrong.unsaid, (normal(50),))

    assert found.status == "proved" and found.reason.endswith("if masked loads give zero where nothing else is said")
    assert any("the language leaves open" in text for text in found.assumptions)


def test_each_configuration_of_an_autotuner_is_checked() -> None:
    found = rw.kernel(wrong.one_more, wrong.tuned, (normal(50),))

    assert found.status == "refuted" and "with the configuration BLOCK=32" in found.reason, found.reason


def test_quotients_of_integers_are_not_added_up_first() -> None:
    x = wrong.remainders()

    assert rw.kernel(wrong.rounded_mean, wrong.rounded_means, (x,)).status == "refuted"
    assert rw.kernel(wrong.rounded_means_reference, wrong.rounded_means, (x,)).status != "refuted"


def test_what_a_configuration_does_before_a_launch_is_done() -> None:
    assert rw.kernel(wrong.total, wrong.added_up, (normal(50),)).status == "proved"


def test_arguments_are_told_apart_by_their_order_and_not_by_names_that_a_kernel_gives_them() -> None:
    x, y = normal(50), normal(51)[1:]

    assert rw.kernel(wrong.difference, wrong.exchanged, (x, y)).status == "proved"
    assert rw.kernel(wrong.difference, wrong.exchanged, (x, y), {"swaps": False}).status == "refuted"


def test_instances_along_a_short_axis_are_read_one_after_the_other() -> None:
    x, y = normal(50), normal(51)[1:]

    assert rw.kernel(wrong.stacked, wrong.chosen, (x, y)).status == "proved"
    assert rw.kernel(wrong.stacked, wrong.chosen_in_one_place, (x, y)).status != "proved"


def test_views_of_one_buffer_are_written() -> None:
    assert rw.kernel(wrong.halves_reference, wrong.halves, (normal(6, 32),)).status == "proved"


def test_a_loop_by_while_is_one_by_for() -> None:
    found = rw.kernel(wrong.row_sums, wrong.counted, (normal(3, 50),), dynamic={"x": {1: "n"}})

    assert found.status == "proved", found.reason
    assert rw.kernel(wrong.row_sums, wrong.counted, (normal(3, 50), False)).status == "refuted"


def test_means_that_are_merged_with_counts_are_means_of_all() -> None:
    found = rw.kernel(wrong.spread_reference, wrong.spread, (normal(3, 50),))

    assert found.status == "proved" and any("Welford" in text for text in found.assumptions), found.reason
    assert rw.kernel(wrong.spread_of_samples, wrong.spread, (normal(3, 50),)).status == "refuted"


@pytest.mark.parametrize("descending", [True, False])
def test_sorted_rows_that_were_filled_up(descending: bool) -> None:
    assert rw.kernel(wrong.ordered_reference, wrong.ordered, (normal(3, 20), descending)).status == "proved"


def test_random_numbers_are_functions_of_a_seed_and_a_place() -> None:
    assert rw.kernel(wrong.dropped_reference, wrong.dropped, (normal(150),)).status == "proved"
    assert rw.kernel(wrong.dropped_reference, wrong.dropped, (normal(150), 8)).status == "refuted"


def test_a_place_among_equal_elements_is_tried() -> None:
    found = rw.kernel(wrong.first_of_rows, wrong.first_by_lanes, (normal(3, 50),))

    assert found.status == "refuted", found.reason


@pytest.mark.unaudited
def test_an_argument_that_is_written_to_is_refuted() -> None:
    found = rw.kernel(wrong.one_more, wrong.emptying, (normal(50),))

    assert found.status == "refuted" and "leaves argument 0" in found.reason, found.reason


def test_results_that_are_kept_are_refuted() -> None:
    found = rw.kernel(wrong.one_more, wrong.Cached(), (normal(50),))

    assert found.status == "refuted" and "later call" in found.reason, found.reason


def test_what_is_not_run_is_assumed() -> None:
    reference = REFERENCES["add"]
    args = tuple(x.to("meta") for x in reference.args)
    found = rw.kernel(reference.function, programs.add, args)

    assert found.status == "proved" and found.evidence.value == "assumed"


def test_what_fills_a_tile_may_be_computed() -> None:
    assert rw.kernel(wrong.filled_reference, wrong.filled, (normal(50),)).status == "proved"


def last_row(x: Any) -> Any:
    return x[-1]


def test_a_race_is_not_proved_where_one_order_is_right() -> None:
    found = rw.kernel(last_row, programs.racing, (normal(3, 40),))

    assert found.status == "unknown" and "order decides" in found.reason


def test_what_a_kernel_guards_is_not_taken_for_granted() -> None:
    table = normal(3, 20)
    found = rw.kernel(wrong.looked_up_reference, wrong.looked_up, (wrong.IDS, table))
    assert found.status == "proved", found.reason
    assert rw.kernel(wrong.looked_up_carelessly, wrong.looked_up, (wrong.IDS.abs(), table)).status != "proved"


def test_rows_that_are_added_to_may_be_one() -> None:
    args = (wrong.IDS.abs(), normal(4, 20), normal(3, 20))
    assert rw.kernel(wrong.gathered_and_added_reference, wrong.gathered_and_added, args).status != "proved"


def test_a_number_that_the_reference_alone_knows_is_tried_in_the_interpreter() -> None:
    """No random input is such a number; the graphs differ there, and the kernel is run on it."""

    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where(x == 2.75, 0.0, x + y)

    found = rw.kernel(reference, programs.add, (normal(50), normal(50)))

    assert found.status == "refuted" and "by the kernel" in found.reason, found.reason
    assert found.findings
