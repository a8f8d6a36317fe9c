"""Tables that one program holds and the other computes: large ones, masks, whole numbers, and wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch import nn

import rewright as rw
from rewright import ops
from rewright.equiv.engine import Equivalence, equiv
from rewright.equiv.inputs import tables
from rewright.interp.program import run

ROWS, COLUMNS = 300, 256
Program = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Held(nn.Module):
    """A function of an argument and of a table that is made with the module."""

    def __init__(self, table: torch.Tensor, function: Program) -> None:
        super().__init__()
        self.register_buffer("table", table)
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = self.get_buffer("table")
        return self.function(x, table)


def angles(rows: int = ROWS, columns: int = COLUMNS, base: float = 1e4) -> torch.Tensor:
    return torch.arange(rows)[:, None].float() * base ** (-torch.arange(columns) / columns)


def later(rows: int = ROWS, shift: int = 0) -> torch.Tensor:
    """Where a key comes after the query."""
    place = torch.arange(rows)
    return place[:, None] < place[None] - shift


def biases(rows: int = ROWS) -> torch.Tensor:
    """Linear biases of a head (heads, queries, keys)."""
    place = torch.arange(rows)
    return 2.0 ** -torch.arange(3, 4)[:, None, None] * (place[None] - place[:, None])


def infinite(mask: torch.Tensor) -> torch.Tensor:
    return torch.zeros(mask.shape).masked_fill(mask, -math.inf)


def compared(computes: Callable[[torch.Tensor], torch.Tensor], held: Held, *shape: int) -> list[Equivalence]:
    """Verdicts with the table on the right and on the left."""
    x = torch.zeros(shape)
    graphs = rw.capture(computes, (x,)), rw.capture(held, (x,))
    values = dict(held.named_buffers())
    sides = (graphs, ({}, values)), (graphs[::-1], (values, {}))
    return [equiv(*pair, given, explain=False) for pair, given in sides]


def times(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return x * table


def weights(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return (x + table).softmax(-1)


def filled(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return x.masked_fill(table, -math.inf).softmax(-1)


@pytest.mark.parametrize("rows", [9, ROWS])
def test_cosines(rows: int) -> None:
    for verdict in compared(lambda x: x * angles(rows).cos(), Held(angles(rows).cos(), times), 2, rows, COLUMNS):
        assert verdict.status == "proved", verdict.reason
        assert any("rounding moved" in text for text in verdict.assumptions)


@pytest.mark.parametrize("rows", [9, ROWS])
def test_wrong_cosines(rows: int) -> None:
    one = angles(rows).cos()
    one[rows // 2, 3] += 1e-3
    for table in (angles(rows, base=9990.0).cos(), one, angles(rows).cos().roll(1, 0)):
        for verdict in compared(lambda x: x * angles(rows).cos(), Held(table, times), 2, rows, COLUMNS):
            assert verdict.status == "refuted"


@pytest.mark.parametrize("rows", [9, ROWS])
@pytest.mark.parametrize(("function", "table"), [(weights, infinite), (filled, torch.Tensor.bool)])
def test_masks(rows: int, function: Program, table: Callable[[torch.Tensor], torch.Tensor]) -> None:
    held, shifted = (Held(table(later(rows, shift)), function) for shift in (0, 1))
    for verdict in compared(lambda x: filled(x, later(rows)), held, 2, rows, rows):
        assert verdict.status == "proved", verdict.reason
        assert not any("rounding moved" in text for text in verdict.assumptions)
    for verdict in compared(lambda x: filled(x, later(rows)), shifted, 2, rows, rows):
        assert verdict.status == "refuted"


def test_a_mask_that_says_what_is_seen() -> None:
    held = Held(~later(), lambda x, seen: filled(x, ~seen))
    for verdict in compared(lambda x: filled(x, later()), held, ROWS, ROWS):
        assert verdict.status == "proved", verdict.reason


def test_linear_biases() -> None:
    wrong = biases()
    wrong[0, -1, -2] += 1
    for verdict in compared(lambda x: weights(x, biases()), Held(biases(), weights), 1, ROWS, ROWS):
        assert verdict.status == "proved", verdict.reason
    for verdict in compared(lambda x: weights(x, biases()), Held(wrong, weights), 1, ROWS, ROWS):
        assert verdict.status == "refuted"


def test_whole_numbers() -> None:
    def looked(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return x[places]

    def computes(x: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(7) * 2]

    first, second = compared(computes, Held(torch.arange(7) * 2, looked), 16, 3)
    assert (first.status, second.status != "refuted") == ("proved", True), first.reason
    for verdict in compared(computes, Held(torch.arange(7) * 2 + 1, looked), 16, 3):
        assert verdict.status == "refuted"


def test_long_angles_of_single_precision() -> None:
    """Rounding moves a cosine of a large angle by far more than by a step of its own."""
    rows = 8000
    held = Held(angles(rows, 8).cos(), times)
    for verdict in compared(lambda x: x * angles(rows, 8).cos(), held, rows, 8):
        assert verdict.status == "proved", verdict.reason
    wrong = angles(rows, 8).cos()
    wrong[3, 7] += 2e-4  # far more than rounding does to a small angle
    for verdict in compared(lambda x: x * angles(rows, 8).cos(), Held(wrong, times), rows, 8):
        assert verdict.status == "refuted"


def scaled(base: float = 1e4, original: int = 64, factor: float = 8.0) -> torch.Tensor:
    """Frequencies of a rotary embedding that go over from themselves to a fraction of them, as in Llama 3."""
    plain = base ** (-torch.arange(16) / 16)
    turns = original * plain / (2 * math.pi)
    smooth = ((turns - 1) / 3).clamp(0, 1)
    return plain * (smooth + (1 - smooth) / factor)


def turned(frequencies: torch.Tensor, dtype: torch.dtype, *, short: bool) -> torch.Tensor:
    """Sines of small angles in a type; angles are computed in it too where they are ``short``."""
    places = torch.arange(6)[:, None].float()
    angle = places.to(dtype) * frequencies.to(dtype) if short else places * frequencies
    return angle.sin().to(dtype)


@pytest.mark.sample(3)
@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_little_of_another_embedding_is_no_rounding(dtype: torch.dtype, *, short: bool) -> None:
    """Types of few digits excuse what they round, and no other base, length or factor."""
    x, own = torch.zeros(6, 16, dtype=dtype), turned(scaled(), dtype, short=short)
    computes = rw.capture(lambda x: x * turned(scaled(), dtype, short=short), (x,))
    for changed in ({}, {"base": 9990.0}, {"base": 9900.0}, {"original": 65}, {"factor": 8.1}):
        held = Held(turned(scaled(**changed), dtype, short=short), times)
        given = dict(held.named_buffers())
        verdict = equiv(computes, rw.capture(held, (x,)), ({}, given), explain=False)
        same = torch.equal(given["table"], own)
        assert (verdict.status == "proved") is same, (changed, verdict.reason)


def test_what_rounding_makes_anything_of_is_no_proof() -> None:
    def far() -> torch.Tensor:
        return (angles(9, 8) * 1e5).cos()

    for verdict in compared(lambda x: x * far(), Held(far(), times), 9, 8):
        assert verdict.status == "unknown"
        assert "rounding" in verdict.reason


def test_a_part_of_a_table_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_BOUND", 1 << 10)
    long = angles(ROWS, 16)
    for first, status in ((0, "proved"), (1, "refuted")):
        held = Held(long.cos(), lambda x, table, first=first: x * table[first : first + 9])
        for verdict in compared(lambda x: x * angles(9, 16).cos(), held, 2, 9, 16):
            assert verdict.status == status, verdict.reason
    for verdict in compared(lambda x: x * angles(ROWS, 16).cos(), Held(long.cos(), times), ROWS, 16):
        assert verdict.status == "unknown"
        assert "too many elements" in verdict.reason


def test_a_table_becomes_what_is_read_of_it() -> None:
    table = np.arange(40.0).reshape(10, 4)
    graph = rw.capture(lambda x, t: x + t[torch.arange(2, 5)].T, (torch.zeros(4, 3), torch.zeros(10, 4)))
    found = tables.bind_values(graph, {"t": table}, ())
    assert set(found.inputs) == {"x"}
    assert max(len(node.op.values) for node in found.nodes if isinstance(node.op, ops.Constant)) == 12
    x = np.ones((4, 3))
    np.testing.assert_array_equal(run(found, {"x": x})["output"], run(graph, {"x": x, "t": table})["output"])
    assert tables.bind_values(graph, {"t": table}, {"t"}) is graph
    assert tables.bind_values(graph, {"t": table[1:]}, ()) is graph


def test_tables_keep_their_digits() -> None:
    """What is given in double precision, or as whole numbers, is not rounded to single precision."""
    third = torch.full((3,), 1 / 3, dtype=torch.float64) * torch.arange(1, 4)
    held = Held(third, times)
    x = torch.zeros(3, dtype=torch.float64)
    graph = rw.capture(held, (x,))
    assert equiv(graph, rw.capture(lambda x: x * third, (x,)), ({"table": third}, {})).status == "proved"
    other = third + 1e-9 * torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
    assert (
        equiv(graph, rw.capture(lambda x: x * other, (x,)), ({"table": third}, {}), explain=False).status != "refuted"
    )


def masked_rank(held: torch.Tensor) -> Held:
    return Held(held, lambda x, table: (x + table).amax(-1))


@pytest.mark.parametrize(("shift", "status"), [(0, "proved"), (1, "refuted")])
def test_ranks_that_hold_a_mask(shift: int, status: str) -> None:
    x = torch.zeros(2, 9, 9)
    left = rw.capture(lambda x: x.masked_fill(later(9), -math.inf).amax(-1), (x,))
    module = masked_rank(infinite(later(9, shift)))
    values = dict(module.named_buffers())
    ranks = rw.ranks([rw.capture(module, (x,))] * 2, mesh={"tp": 2})
    verdict = equiv(left, ranks, ({}, [values, values]), {"x": "Replicate()"}, explain=False)
    assert verdict.status == status, verdict.reason


def test_complex_tables() -> None:
    """What one side holds as complex numbers the other computes as cosines and sines."""

    def computes(x: torch.Tensor) -> torch.Tensor:
        one, two = x.unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles(9, 4).cos(), angles(9, 4).sin()
        return torch.stack([one * cos - two * sin, two * cos + one * sin], -1).flatten(-2)

    def turned(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * table).flatten(-2)

    table = torch.polar(torch.ones(9, 4), angles(9, 4))
    for held, status in ((table, "proved"), (table.conj().resolve_conj(), "refuted")):
        for verdict in compared(computes, Held(held, turned), 2, 9, 8):
            assert verdict.status == status, verdict.reason


def test_masks_that_both_hold_are_of_other_shapes() -> None:
    """A mask is one whether it is repeated for every head, and whether it is added or chooses."""
    x, mask = torch.zeros(2, 4, 9, 9), later(9)
    added, repeated = infinite(mask).expand(2, 1, 9, 9), mask.expand(2, 4, 9, 9)
    for held, status in ((repeated, "proved"), (repeated.transpose(-1, -2), "refuted")):
        left = rw.capture(lambda x, first: weights(x, first), (x, added.clone()))
        right = rw.capture(lambda x, second: filled(x, second), (x, held.clone()))
        verdict = equiv(left, right, ({"first": added}, {"second": held}), explain=False)
        assert verdict.status == status, verdict.reason


def test_large_tensors_without_a_name() -> None:
    """A capture keeps no values of these, so that nothing is known of what differs."""
    table = angles().cos()
    graphs = (
        rw.capture(lambda x: x * table, (torch.zeros(ROWS, COLUMNS),)),
        rw.capture(lambda x: x * angles().cos(), (torch.zeros(ROWS, COLUMNS),)),
    )
    for pair in (graphs, graphs[::-1]):
        verdict = equiv(*pair, explain=False)
        assert verdict.status == "unknown"
        assert "register it as a buffer" in verdict.reason
