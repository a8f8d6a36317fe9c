"""Programs as people write them around plain collectives, each with bugs that are refuted on the line of the bug."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import dist, exchange, gathered, reduced, scattered, weight

Tensor = torch.Tensor
ROWS, WIDTH, INNER, RANKS = 8, 4, 6, 4


@dataclass(frozen=True)
class Program:
    """``parallel(mesh, bug)`` is right for no bug; ``bugs`` have a piece of the line that is told."""

    sequential: Callable[[], Any]
    parallel: Callable[[DeviceMesh, str], Any]
    relations: Mapping[str, Any]
    expect: Mapping[str, Any]
    bugs: Mapping[str, str]
    mesh: Mapping[str, int] = field(default_factory=lambda: {"dp": RANKS})

    def verdict(self, bug: str = "") -> Verdict:
        program = rw.capture_ranks(lambda mesh: self.parallel(mesh, bug), self.mesh)
        return rw.refine(rw.capture(*self.sequential()), program, self.relations, self.expect, audit=not bug)


def flat_step(parts: int, bug: str = "") -> Any:
    """Gradients of all parameters in one padded buffer, of which a rank reduces and updates a share that cuts rows."""
    count = WIDTH * INNER + INNER * (WIDTH + 1)
    padding = -count % RANKS
    own = (count + padding) // parts

    def step(x: Tensor, up: Any, down: Any, momentum: Tensor) -> dict[str, Tensor]:
        rank = dist.get_rank() if parts > 1 else 0
        loss: Any = ((x @ up).tanh() @ down).square().sum()
        loss.backward()
        gradient = torch.cat([up.grad.flatten(), down.grad.flatten(), torch.zeros(padding)])
        with torch.no_grad():
            held = torch.cat([up.flatten(), down.flatten(), torch.zeros(padding)])
            momentum.mul_(0.9).add_(scattered(gradient) if parts > 1 else gradient)
            first = (rank + (bug == "offset")) % parts * own
            update = 0.1 * (momentum * 2 if bug == "scale" else momentum)
            new = held[first : first + own] - update
            new = gathered(new) if parts > 1 else new
            up.copy_(new[: WIDTH * INNER].view(WIDTH, INNER))
            start = WIDTH * INNER + (padding if bug == "padding" else 0)
            down.copy_(new[start : start + INNER * (WIDTH + 1)].view(INNER, WIDTH + 1))
        up.grad = down.grad = None
        return {"loss": reduced(loss.detach())}

    return step, (torch.zeros(ROWS // parts, WIDTH), weight(WIDTH, INNER), weight(INNER, WIDTH + 1), torch.zeros(own))


def products(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    return {"z": x @ y}


def grid_of_products(mesh: DeviceMesh, bug: str) -> Any:
    """Blocks of a product on a grid of ranks: blocks of both factors are sent along rows and columns in turn."""
    row, column = mesh.get_local_rank("rows"), mesh.get_local_rank("columns")

    def sent(block: Tensor, source: int, axis: str) -> Tensor:
        found = block.clone()
        dist.broadcast(found, source, group=mesh.get_group(axis))
        return found

    def step(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        total = torch.zeros(2, 4)
        for turn in range(2):
            left = sent(x, 2 * row + turn, "columns")
            right = sent(y, 2 * (1 - turn if bug == "turn" else turn) + column, "rows")
            total = left @ right if bug == "last" else total + left @ right
        return {"z": total}

    return step, (torch.zeros(2, 3), torch.zeros(3, 4))


def orthogonal(x: Tensor) -> Tensor:
    """Two steps of Newton and Schulz."""
    x = x / (x.norm() + 1e-7)
    for _ in range(2):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return x


def orthogonal_step(parts: int, bug: str = "") -> Any:
    """Muon: rows of a weight are sharded, and its update needs all of them."""

    def step(x: Tensor, w: Any, momentum: Tensor) -> dict[str, Tensor]:
        rank = dist.get_rank() if parts > 1 else 0
        whole = exchange(w, gathered, scattered) if parts > 1 else w
        loss: Any = (x @ whole).square().sum()
        loss.backward()
        with torch.no_grad():
            momentum.mul_(0.95).add_(w.grad)
            rows = WIDTH // parts
            if bug == "own":
                update = orthogonal(momentum)
            else:
                first = (rank + (bug == "rows")) % parts * rows
                update = orthogonal(gathered(momentum) if parts > 1 else momentum)[first : first + rows]
            w.sub_(0.02 * update)
        w.grad = None
        return {"loss": reduced(loss.detach())}

    return step, (torch.zeros(ROWS // parts, WIDTH), weight(WIDTH // parts, INNER), torch.zeros(WIDTH // parts, INNER))


def decoded(query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
    scores = torch.einsum("hd,thd->ht", query, key)
    return {"mixed": torch.einsum("ht,thd->hd", torch.softmax(scores, -1), value)}


def split_decoding(mesh: DeviceMesh, bug: str) -> Any:
    """One query over a cache of keys that is split: results are merged by the logarithms of their weights."""

    def step(query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
        scores = torch.einsum("hd,thd->ht", query, key)
        largest = scores.max(-1, keepdim=True).values
        weights = (scores - largest).exp()
        total = weights.sum(-1, keepdim=True)
        own = torch.einsum("ht,thd->hd", weights, value) / total
        size = largest if bug == "largest" else largest + total.log()
        shares = torch.softmax(gathered(size[None]), 0)
        if bug == "mean":
            shares = torch.ones_like(shares) / RANKS
        return {"mixed": (shares * gathered(own[None])).sum(0)}

    return step, (torch.zeros(4, 4), torch.zeros(2, 4, 4), torch.zeros(2, 4, 4))


EVERYWHERE, FIRST = "Replicate()", "Shard(0)"
BLOCKS = "[Shard(0), Shard(1)]"
PROGRAMS = {
    "a share of a flat buffer": Program(
        lambda: flat_step(1),
        lambda _, bug: flat_step(RANKS, bug),
        {"x": FIRST, "up": EVERYWHERE, "down": EVERYWHERE, "momentum": FIRST},
        {"updated:up": EVERYWHERE, "updated:down": EVERYWHERE, "updated:momentum": FIRST},
        {"offset": "held[first", "scale": "", "padding": "down.copy_"},
    ),
    "products on a grid": Program(
        lambda: (products, (torch.zeros(4, 6), torch.zeros(6, 8))),
        grid_of_products,
        {"x": BLOCKS, "y": BLOCKS},
        {"z": BLOCKS},
        {"turn": "total = left @ right", "last": "total = left @ right"},
        {"rows": 2, "columns": 2},
    ),
    "an update of all rows": Program(
        lambda: orthogonal_step(1),
        lambda _, bug: orthogonal_step(2, bug),
        {"x": FIRST, "w": FIRST, "momentum": FIRST},
        {"updated:w": FIRST},
        {"own": "", "rows": "update = orthogonal("},
        {"dp": 2},
    ),
    "a cache in parts": Program(
        lambda: (decoded, (torch.zeros(4, 4), torch.zeros(8, 4, 4), torch.zeros(8, 4, 4))),
        split_decoding,
        {"query": EVERYWHERE, "key": FIRST, "value": FIRST},
        {"mixed": EVERYWHERE},
        {"largest": "", "mean": ""},
    ),
}
BUGS = [(name, bug) for name, program in PROGRAMS.items() for bug in program.bugs]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_right_program(name: str) -> None:
    verdict = PROGRAMS[name].verdict()
    assert verdict.status == "proved", verdict.reason


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "bug"), BUGS)
def test_a_bug_in_it(name: str, bug: str) -> None:
    verdict = PROGRAMS[name].verdict(bug)
    assert verdict.status == "refuted"
    span = verdict.findings[0].distributed
    assert span is not None
    assert PROGRAMS[name].bugs[bug] in linecache.getline(span.file, span.line)
