"""Reading and writing at indices, and tensors made from nothing."""

import pytest
import torch
import torch.nn.functional as F

from rewright.ir.errors import UnsupportedOperator
from tests.frontends.torch.lower.executing import Function, agree, gradients, integers, lowered, numbers, operators

TABLE = numbers(5, 4)
CUBE = numbers(3, 4, 5)
ROWS = integers(0, 5, 2, 3)
PLACES, COLUMN = torch.tensor([0, 2, 1]), torch.tensor([[1], [3]])
LAST = torch.tensor([4, 0, 2])
ALONG = integers(0, 5, 2, 4, 3)

READS: dict[str, Function] = {
    "one axis": lambda x: x[PLACES],
    "last axis": lambda x: x[..., LAST],
    "two neighbours": lambda x: x[:, PLACES, LAST],
    "broadcast": lambda x: x[:, COLUMN, LAST],
    "apart": lambda x: x[PLACES, :, LAST],
    "all axes": lambda x: x[PLACES, PLACES, LAST],
    "negative": lambda x: x[:, torch.tensor([-1, 0, -4])],
    "index_select": lambda x: x.index_select(1, PLACES),
    "take_along": lambda x: x.gather(2, ALONG),
}


@pytest.mark.parametrize("function", READS.values(), ids=READS)
def test_reads(function: Function) -> None:
    agree(function, CUBE)
    agree(gradients(function), CUBE)


def test_a_negative_index_from_data_counts_from_the_end() -> None:
    agree(lambda x, i: x[i], TABLE, torch.tensor([-1, 2, -5]))


def test_embedding() -> None:
    agree(gradients(lambda table, rows: F.embedding(rows, table)), TABLE, ROWS)
    agree(gradients(lambda table, rows: F.embedding(rows, table, padding_idx=2)), TABLE, ROWS)


def test_reading_at_all_positions_is_no_gather() -> None:
    """How Transformers builds its masks: positions index a table of positions."""

    def mask(x: torch.Tensor) -> torch.Tensor:
        batch, place = torch.arange(3)[:, None, None], torch.arange(4)
        return x[batch, place[None, :, None]] <= x[batch, place[None, None, :]]

    graph = agree(mask, numbers(3, 4))
    assert operators(graph) == ["input", "broadcast_in_dim", "broadcast_in_dim", "compare"]


def test_packed_sequence_detection_folds_away() -> None:
    def causal(x: torch.Tensor) -> torch.Tensor:
        place = torch.arange(4).expand(2, 4)
        packed = (torch.diff(place, prepend=place[:, :1] - 1) != 1).cumsum(-1)
        batch = torch.arange(2)[:, None, None]
        q, k = torch.arange(4)[None, :, None], torch.arange(4)[None, None, :]
        allowed = (packed[batch, q] == packed[batch, k]) & (place[batch, k] <= place[batch, q])
        return torch.where(allowed, x, float("-inf"))

    graph = agree(causal, numbers(2, 4, 4))
    assert operators(graph) == ["input", "iota", "iota", "compare", "constant", "select"]


WRITES: dict[str, Function] = {
    "index_put": lambda x: x.index_put((PLACES,), x[:1] * 2),
    "index_put two axes": lambda x: x.index_put((PLACES, torch.tensor([3, 1, 0])), x[0, :3] * 2),
    "index_put apart": lambda x: torch.ops.aten.index_put(x, [PLACES, None, LAST], x[:, :, 0][:, :4] + 1),
    "index_put accumulate": lambda x: x.index_put((torch.tensor([0, 0, 2]),), x * 2, accumulate=True),
    "mask": lambda x: x.index_put((x > 0,), torch.tensor(2.0, dtype=x.dtype)),
    "mask of rows": lambda x: x.index_put((x[:, :, 0] > 0,), x[0, 0]),
    "scatter": lambda x: x.scatter(1, torch.tensor([3, 0]).view(1, 2, 1).expand(3, 2, 5), x * 2),
    "scatter value": lambda x: x.scatter(2, torch.tensor([[[1]]]), 9.0),
    "scatter_add": lambda x: x.scatter_add(1, torch.zeros(3, 4, 5, dtype=torch.int64), x),
    "scatter_reduce": lambda x: x.scatter_reduce(1, torch.ones(3, 2, 5, dtype=torch.int64), x, "amax"),
    "index_add": lambda x: x.index_add(1, torch.tensor([2, 2]), x[:, :2], alpha=3),
    "index_copy": lambda x: x.index_copy(2, torch.tensor([4, 1]), x[:, :, :2]),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1]), 5.0),
}


@pytest.mark.parametrize("function", WRITES.values(), ids=WRITES)
def test_writes(function: Function) -> None:
    agree(function, CUBE)


def test_local_rows_of_a_split_table_are_not_counted_from_the_end() -> None:
    """The ranks of a split vocabulary read ``t - start`` where it is theirs, so no index is negative."""

    def local(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        outside = (tokens < 3) | (tokens >= 8)
        return table[(tokens - 3).masked_fill(outside, 0)]

    graph = agree(local, TABLE, integers(0, 9, 7))
    assert operators(graph)[-2:] == ["select", "gather"]
    wrong = agree(lambda t, i: t[(i - 4).masked_fill(i < 3, 0)], TABLE, integers(0, 9, 7))
    assert operators(wrong)[-2:] == ["select", "gather"]
    assert operators(wrong).count("select") == 2


def test_one_write_per_row_of_zeros_is_a_comparison() -> None:
    """How loss parallelism writes the gradient of the scores."""

    def rows(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        gradient = torch.zeros(3, 5, dtype=x.dtype)
        gradient[torch.arange(3), target] = x
        return gradient

    graph = agree(rows, numbers(3), torch.tensor([4, 0, 2]))
    assert "scatter" not in operators(graph)


def test_a_boolean_index_needs_data() -> None:
    with pytest.raises(UnsupportedOperator, match=r"use torch\.where"):
        lowered(lambda x: torch.ops.aten.index_put(x, [x > 0], x.flatten()[:3]), CUBE)


def test_a_mask_of_bytes_is_no_index() -> None:
    with pytest.raises(UnsupportedOperator, match="a mask of bytes as an index"):
        lowered(lambda x: torch.ops.aten.index_put(x, [torch.ones(3, dtype=torch.uint8)], x[:1]), CUBE)


ASSEMBLED: dict[str, Function] = {
    "cat": lambda x: torch.cat([x, x[:, :1] * 2, x[:, :0]], 1),
    "cat of types": lambda x: torch.cat([x[0, 0], torch.arange(2)]),
    "stack": lambda x: torch.stack([x, -x], -1),
    "repeat": lambda x: x.repeat(2, 1, 3, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=1),
    "roll": lambda x: (x.roll(2, 1), x.roll((1, -1), (0, 2)), x.roll(3)),
    "flip": lambda x: x.flip(0, -1),
    "pad": lambda x: F.pad(x, (1, 2, 0, 3), value=0.5),
    "pad with cuts": lambda x: F.pad(x, (-1, 2)),
    "triangles": lambda x: (x.tril(), x.triu(1), x.tril(-1)),
    "one_hot": lambda x: F.one_hot(torch.tensor([[1, 0], [3, 2]]), 5) + x[0, 0].long(),
    "windows": lambda x: x.unfold(2, 5, 5),
}


@pytest.mark.parametrize("function", ASSEMBLED.values(), ids=ASSEMBLED)
def test_assembled(function: Function) -> None:
    agree(function, CUBE)


CREATED: dict[str, Function] = {
    "filled": lambda x: (torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 3.5), torch.full_like(x, 2)),
    "new": lambda x: (x.new_ones(2), x.new_zeros(2), x.new_full((2, 2), 1.5), torch.zeros_like(x, dtype=torch.int64)),
    "ranges": lambda x: (torch.arange(5), torch.arange(2, 9, 3), torch.arange(0, 1, 0.25), torch.arange(5, 1, -1)),
    "linspace": lambda x: torch.linspace(0, 1, 5, dtype=torch.float64),
    "eye": lambda x: (torch.eye(3), torch.eye(2, 3)),
    "constants": lambda x: (x + torch.tensor([1.0, 2, 3, 4, 5]), torch.tensor([[3], [5], [7], [9]]) + x.long()),
    "scalars": lambda x: torch.scalar_tensor(3.0) + torch.tensor(2),
}  # fmt: skip


@pytest.mark.parametrize("function", CREATED.values(), ids=CREATED)
def test_created(function: Function) -> None:
    agree(function, CUBE)


def test_constants_are_recognised() -> None:
    def constants(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([7, 9, 11, 13, 15]) + torch.full((5,), 2)

    assert operators(lowered(constants, torch.zeros(5, dtype=torch.int64))).count("iota") == 1


def test_large_constants_become_shared_inputs() -> None:
    large = numbers(300, 300)
    graph = lowered(lambda x: x + large + large.clone(), numbers(300, 300, seed=1))
    extra = [name for name in graph.inputs if name.startswith("const:")]
    assert len(extra) == 1


def test_random_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedOperator, match=r"aten\.\w+\.\w+ at model.py:7: .*random"):
        lowered(lambda x: F.dropout(x, 0.5), CUBE)
    with pytest.raises(UnsupportedOperator, match="pass the numbers in as an argument"):
        lowered(lambda x: x + torch.rand_like(x), CUBE)
