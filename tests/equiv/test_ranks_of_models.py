"""One program against the ranks of another implementation, as captures of modules: rotated pairs, windows, biases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram

S, H, D = 7, 4, 8
Heads = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def angles() -> torch.Tensor:
    return torch.arange(S).float()[:, None] / 100.0 ** (torch.arange(0, D, 2).float() / D)


def every_element(x: torch.Tensor) -> torch.Tensor:
    """Pairs are rotated by products with all elements, the second ones with pairs exchanged."""
    cos, sin = (table.repeat_interleave(2, -1) for table in (angles().cos(), angles().sin()))
    return x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin


def every_second(x: torch.Tensor, sign: float = 1.0) -> torch.Tensor:
    """The first and the second elements of pairs by themselves."""
    cos, sin, one, other = angles().cos(), angles().sin(), x[..., ::2], x[..., 1::2]
    return torch.stack([one * cos - sign * other * sin, other * cos + sign * one * sin], -1).flatten(-2)


def scored(turn: Callable[[torch.Tensor], torch.Tensor], heads: int, keys: int) -> Heads:
    """Scores of all heads, a key for several of them, from projections (positions, heads * width)."""

    def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        q, k = (turn(x.reshape(S, n, D).transpose(0, 1)) for x, n in ((q, heads), (k, keys)))
        return q @ k.repeat_interleave(heads // keys, 0).mT

    return scores


def compared(left: Heads, right: Heads, count: int = 2, keys: int = 2) -> Equivalence:
    """All heads against some on each rank."""
    whole, part = ([torch.zeros(S, n * D // by) for n in (H, keys)] for by in (1, count))
    graph = rw.capture(right, tuple(part))
    ranks = RankProgram((graph,) * count, Mesh.of({"tp": count}), {}, {})
    return equiv(rw.capture(left, tuple(whole)), ranks, relations=dict.fromkeys(graph.inputs, "Shard(1)"))


@pytest.mark.parametrize("count", [1, 2])
def test_rotated_pairs_on_ranks(count: int) -> None:
    right = scored(every_second, H // count, 2 // count)
    verdict = compared(scored(every_element, H, 2), right, count)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


def test_pairs_that_are_rotated_the_other_way() -> None:
    wrong = scored(lambda x: every_second(x, -1.0), H // 2, 1)
    one_side = scored(lambda x: x, H // 2, 1)
    assert compared(scored(every_element, H, 2), one_side).status == "refuted"
    # Both queries and keys are turned the other way: scores of the same position stay, others do not.
    assert compared(scored(every_element, H, 2), wrong).status == "refuted"


def windowed(heads: int, seen: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Heads:
    def attention(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        q, k = (x.reshape(S, heads, D).transpose(0, 1) for x in (q, k))
        place = torch.arange(S)
        scores = (q @ k.mT).masked_fill(~seen(place[:, None], place[None]), -math.inf)
        return scores.softmax(-1) @ k

    return attention


def test_a_window_on_ranks_in_another_order_of_its_bounds() -> None:
    left = windowed(H, lambda q, k: (q - 3 < k) & (k <= q))
    right = windowed(H // 2, lambda q, k: (q - k >= 0) & (q - k < 3))
    wider = windowed(H // 2, lambda q, k: (q - k >= 0) & (q - k <= 3))
    verdict = compared(left, right, keys=H)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert compared(left, wider, keys=H).status == "refuted"


class Stack(torch.nn.Module):
    """Products by a stack of matrices, which may lie the other way round, or in part."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, *, turned: bool) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(weight), torch.nn.Parameter(bias)
        self.other = torch.nn.Parameter(torch.ones(3))
        self.turned = turned

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.weight.transpose(1, 2) if self.turned else self.weight) + self.bias[:, None]


def values(module: torch.nn.Module) -> Mapping[str, torch.Tensor]:
    return {name: value.detach() for name, value in module.named_parameters()}


def ranks_of(graphs: list[Graph]) -> RankProgram:
    return RankProgram(tuple(graphs), Mesh.of({"tp": len(graphs)}), {}, {})


@pytest.mark.parametrize("on_both", [False, True])
def test_a_bias_that_one_rank_adds(on_both: bool) -> None:
    """Stacks of matrices in parts, turned, with a bias that is zero on one rank, and an input that nothing reads."""
    generator = torch.Generator().manual_seed(0)
    weight, bias = (torch.randn(shape, generator=generator) for shape in ((3, 4, 6), (3, 6)))
    whole = Stack(weight, bias, turned=False)
    parts: list[torch.nn.Module] = []
    for rank in range(2):
        own = weight[:, 2 * rank : 2 * rank + 2].transpose(1, 2).contiguous()
        parts.append(Stack(own, bias if on_both or not rank else torch.zeros(3, 6), turned=True))
    graphs = [rw.capture(part, (torch.zeros(3, 5, 2),)) for part in parts]
    graphs = [summed(graph) for graph in graphs]
    left = rw.capture(whole, (torch.zeros(3, 5, 4),))
    cut = {f"x@{rank}": f"x[0:3, 0:5, {2 * rank}:{2 * rank + 2}]" for rank in range(2)}
    verdict = equiv(left, ranks_of(graphs), (values(whole), [values(part) for part in parts]), relations=cut)
    assert verdict.status == ("refuted" if on_both else "proved"), (verdict.reason, verdict.equations)
    assert any(text.startswith("right bias@1 = 0 * (bias)") for text in verdict.equations) is not on_both


def summed(graph: Graph, over: int = 2, *, squared: bool = False) -> Graph:
    """The program with its output added up over ranks, and squared then."""
    from rewright import ops
    from rewright.ir.graph import GraphBuilder

    builder, places = GraphBuilder(graph.name), dict[int, int]()
    names = {position: name for name, position in graph.inputs.items()}
    for position, node in enumerate(graph.nodes):
        if position in names:
            places[position] = builder.input(names[position], node.op)
        else:
            places[position] = builder.add(node.op, *(places[p] for p in node.operands))
    for name, position in graph.outputs.items():
        place = builder.add(ops.AllReduce("sum", ((0, 1),)), places[position]) if over > 1 else places[position]
        builder.output(name, builder.add(ops.Multiply(), place, place) if squared else place)
    return builder.build()
