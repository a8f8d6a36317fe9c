"""What is rewritten before plans are made is the same program, infinities, ties and NaN included."""

from __future__ import annotations

from collections.abc import Callable

import torch

import rewright as rw
from rewright import ops
from rewright.optimize import optimize
from rewright.optimize.planning.preparing import prepare_graph


def test_a_place_is_looked_up_where_it_was_found() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        scores = torch.tanh(x @ w)
        return torch.gather(scores, -1, scores.argmax(-1, keepdim=True)) * 2

    generator = torch.Generator().manual_seed(0)
    args = torch.randn(9, 16, generator=generator), torch.randn(16, 40, generator=generator)

    found = optimize(program, args, target="torch")

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(*args), program(*args))


def test_axes_side_by_side_are_one_where_no_loop_goes_over_some_of_them() -> None:
    def norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.group_norm(x, 4)

    def entropies(x: torch.Tensor) -> torch.Tensor:
        return torch.special.entr(torch.softmax(x, -1)).sum((-2, -1))

    def longest(program: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> int:
        graph = prepare_graph(rw.capture(program, (x,)))
        read = [graph.nodes[n.operands[0]].type.shape for n in graph.nodes if isinstance(n.op, ops.Reduce)]
        return max(int(str(shape[-1])) for shape in read)

    assert longest(norm, torch.zeros(2, 12, 7, 5)) == 3 * 7 * 5
    assert longest(entropies, torch.zeros(3, 4, 6)) == 6


def test_what_has_no_elements_is_left_out_or_said() -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))

    joined = optimize(lambda x, none: torch.softmax(torch.cat([none, x], -1), -1), (x, x[:, :0]), target="torch")
    nothing = optimize(lambda x: torch.softmax(x, -1), (x[:0],), target="torch")
    returned = optimize(lambda x: (torch.softmax(x, -1), x[:0]), (x,), target="cpu", floor=False, remember=False)

    assert joined.status == "proved", joined.reason
    torch.testing.assert_close(joined(x, x[:, :0]), torch.softmax(x, -1))
    assert "no elements" in nothing.reason and "no elements" in returned.reason
    assert nothing(x[:0]).shape == (0, 8)


def test_what_is_reversed_or_masked_by_its_place_is_no_tensor_of_its_own() -> None:
    """A reversal is a view, also of what a library reads, and a triangle that is added up is one loop."""

    def reversed_products(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (q.flip(-1) * k).sum((-1, -2)), torch.sort(k.flip(0), -1)[0] + 1

    def triangle(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        i, j = torch.arange(7)[:, None], torch.arange(9)[None]
        return (torch.where(j <= i, q, 0.0) * k).sum((-1, -2))

    generator = torch.Generator().manual_seed(0)
    args = torch.randn(7, 9, generator=generator), torch.randn(7, 9, generator=generator)
    for program, kernels in ((reversed_products, 2), (triangle, 1)):
        found = optimize(program, args, target="torch")

        assert found.status == "proved", found.reason
        assert found.plan is not None and len(found.plan.kernels) == kernels
        torch.testing.assert_close(found(*args), program(*args))
