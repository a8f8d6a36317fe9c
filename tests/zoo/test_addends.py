"""Residuals that stay addends: ranks let sums stand open through layers that are linear in them, and close them late.

DTensor does so with gradients where activations are replicated: each rank's part of a gradient goes through the
gradients of norms and along the residual, and is added up before the next product at the earliest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict

_dist: Any = dist
Tensor = torch.Tensor
Reduce = Callable[[Tensor], Tensor]
ROWS, WIDTH, INNER, OTHERS = 12, 10, 14, 9
HELD = {"a": "Shard(1)", "w": "Shard(0)", "up": "Shard(1)", "gate": "Shard(1)", "down": "Shard(0)"}
WHOLE = ("x", "y", "first", "second", "other")


def back(x: Tensor, weight: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of RMSNorm, which is linear in the gradient that comes in."""
    root, scaled = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5), gradient * weight
    return root * scaled - x * root**3 * (x * scaled).mean(-1, keepdim=True)


@dataclass(frozen=True)
class Residual:
    """Two steps along a residual; ``reduced`` adds up over ranks, and the fields are what may go wrong in that."""

    reduced: Reduce = lambda x: x
    entering: Reduce = lambda x: x
    """What is done to what enters the second step besides."""
    kept: Reduce = lambda x: x
    """What is done to what goes along the residual."""
    late: Reduce = lambda x: x
    """What is done to the second step's result."""

    def __call__(self, x: Tensor, y: Tensor, a: Tensor, w: Tensor, up: Tensor, gate: Tensor, down: Tensor,
                 first: Tensor, second: Tensor, other: Tensor) -> dict[str, Tensor]:  # fmt: skip
        """The residual behind both steps, and a product of it."""
        part = back(x, first, a @ w)
        entered = self.entering(self.reduced(part))
        stepped = (torch.sigmoid(entered @ gate) * (entered @ up)) @ down
        residual = self.kept(part) + self.late(back(y, second, stepped))
        return {"residual": self.reduced(residual), "product": self.reduced(residual.t() @ other)}


def refined(world: int, wrong: Callable[[Reduce], dict[str, Reduce]]) -> Verdict:
    def parallel(mesh: DeviceMesh) -> Any:
        def reduced(x: Tensor) -> Tensor:
            total = x.clone()
            _dist.all_reduce(total, group=mesh.get_group())
            return total

        step = Residual(reduced, **wrong(reduced))

        def rank(x, y, a, w, up, gate, down, first, second, other):  # type: ignore[no-untyped-def] # names are inputs
            return step(x, y, a, w, up, gate, down, first, second, other)

        return rank, shapes(world)

    def model(x, y, a, w, up, gate, down, first, second, other):  # type: ignore[no-untyped-def]
        return Residual()(x, y, a, w, up, gate, down, first, second, other)

    given = HELD | dict.fromkeys(WHOLE, "Replicate()")
    return rw.refine(rw.capture(model, shapes(1)), rw.capture_ranks(parallel, {"tp": world}), given, audit=True)


def shapes(world: int) -> tuple[Tensor, ...]:
    inner = INNER // world
    sizes = [(ROWS, WIDTH)] * 2 + [(ROWS, inner), (inner, WIDTH), (WIDTH, inner), (WIDTH, inner), (inner, WIDTH)]
    return tuple(torch.zeros(size) for size in [*sizes, (WIDTH,), (WIDTH,), (ROWS, OTHERS)])


def test_a_residual_of_addends_is_the_model_s() -> None:
    verdict = refined(2, lambda reduced: {})
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


WRONG: dict[str, Callable[[Reduce], dict[str, Reduce]]] = {
    "added up before it is added up again": lambda reduced: {"kept": reduced},
    "the second step twice": lambda reduced: {"late": reduced},
    "a step that enters scaled": lambda reduced: {"entering": lambda x: x * 0.5},
    "a residual of one rank's own rows": lambda reduced: {"kept": lambda x: x.flip(0)},
    "a residual without its sign": lambda reduced: {"late": torch.neg},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_added_up_wrongly_is_refuted(name: str) -> None:
    assert refined(2, WRONG[name]).status == "refuted"
