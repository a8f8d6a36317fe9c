"""Tiles of Triton kernels: the loops meet every element that is kept once, and masks are left out where all are."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import rewright as rw
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.printing.tiles.kernel import lower
from rewright.optimize.printing.triton.renderer import render

Mask = Callable[[Any, Any], Any]
ASSIGNED = re.compile(r"    (\w+) = (.*)")
LOOP = re.compile(r"( +)for begin in tl\.range\((.*), BN, num_stages=AHEAD, warp_specialize=SPECIALISED\):")


class Place(int):
    """An index on a device, where quotients of what is below zero are others than Python's."""

    def __floordiv__(self, other: int) -> Place:
        assert self >= 0, "a quotient of an index below zero"
        return Place(int(self) // int(other))

    def __add__(self, other: int) -> Place:
        return Place(int(self) + int(other))

    def __sub__(self, other: int) -> Place:
        return Place(int(self) - int(other))

    def __mul__(self, other: int) -> Place:
        return Place(int(self) * int(other))

    def __neg__(self) -> Place:
        return Place(-int(self))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: int) -> Place:
        return Place(int(other) - int(self))


class Language:
    """The functions of scalars that limits are printed with."""

    @staticmethod
    def minimum(a: int, b: int) -> Place:
        return Place(min(a, b))

    @staticmethod
    def maximum(a: int, b: int) -> Place:
        return Place(max(a, b))

    @staticmethod
    def where(c: bool, a: int, b: int) -> int:
        return a if c else b


def kernel_text(mask: Mask, rows: int, lanes: int, other: float = -float("inf")) -> str:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i, j = torch.arange(rows)[:, None], torch.arange(lanes)[None, :]
        return (q @ k.T).masked_fill(~mask(i, j), other).softmax(-1) @ v

    args = tuple(torch.empty(n, 16, device="meta") for n in (rows, lanes, lanes))
    plan = Planner(prepare_graph(rw.capture(run, args))).plan()
    (kernel,) = plan.kernels
    return render(lower(plan, kernel))


def tiles(text: str, first: int, rows: int, lanes: int) -> Iterator[tuple[int, bool]]:
    """The first lane of every tile that a block of rows goes through, in order, and whether it has no masks."""
    names: dict[str, Any] = {"tl": Language, "BM": rows, "BN": lanes, "first": Place(first)}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if found := ASSIGNED.fullmatch(line):
            name, value = found.groups()
            if name.startswith("sound"):
                names[name] = True
            elif re.match(r"(last|start|from|to)\d+$", name):
                names[name] = eval(value, names)
        elif (found := LOOP.fullmatch(line)) and _compiled(lines[number - 1], found[1], names):
            body = itertools.takewhile(lambda x, indent=found[1]: x.startswith(indent + "    "), lines[number + 1 :])
            masked = any("lane_in" in x for x in body)
            low, high = eval(f"({found[2]})", names)
            for begin in range(low, high, lanes):
                yield begin, not masked


def _compiled(line: str, indent: str, names: dict[str, Any]) -> bool:
    condition = re.fullmatch(r" +if (.*):", line)
    return len(indent) == 4 or condition is None or bool(eval(condition[1], names))


def random_mask(draw: random.Random) -> tuple[str, Mask]:
    a, b, c = draw.choice([(1, 1), (1, -1), (-1, 1)]), draw.randint(-60, 60), draw.randint(1, 70)
    return draw.choice(
        [
            (f"{a} {b}", lambda i, j: a[0] * i + a[1] * j >= b),
            (f"window {b} {c}", lambda i, j: (j <= i + b) & (j > i + b - c)),
            (f"both {b} {c}", lambda i, j: (i - j >= b) & (j >= c)),
            (f"either {b} {c}", lambda i, j: (i - j >= b) | (j < c)),
            (f"prefix {c}", lambda i, j: (j < c) & (i >= 0)),
            (f"blocks {c}", lambda i, j: i // c == j // c),
        ]
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(40))
def test_every_element_that_is_kept_is_met_once(seed: int) -> None:
    draw = random.Random(seed)
    rows, lanes = draw.choice([(64, 64), (50, 83), (96, 40), (33, 128)])
    named, mask = random_mask(draw)
    i, j = np.arange(rows)[:, None], np.arange(lanes)[None, :]
    keep = np.broadcast_to(mask(i, j), (rows, lanes))
    text = kernel_text(mask, rows, lanes)

    for block, width in ((16, 16), (32, 16), (16, 32), (64, 64)):
        for first in range(0, rows, block):
            met = [t for t, _ in tiles(text, first, block, width)]
            assert met == sorted(set(met)) and all(t % width == 0 for t in met), (named, met)
            inside = keep[first : first + block]
            left = [t for t in range(0, lanes, width) if t not in met]
            assert not any(inside[:, t : t + width].any() for t in left), (named, first, left)
            for t in (t for t, whole in tiles(text, first, block, width) if whole):
                assert t + width <= lanes and inside[:, t : t + width].all(), (named, first, t)


@pytest.mark.parametrize(
    ("mask", "size", "whole"),
    [
        (lambda i, j: j <= i, 256, 6),
        (lambda i, j: j >= i, 256, 6),
        (lambda i, j: (j <= i) & (j > i - 128), 256, 3),
        (lambda i, j: (j <= i) & (j >= 64), 256, 3),
        (lambda i, j: i >= 0, 250, 12),
    ],
)
def test_tiles_that_no_mask_changes_have_none(mask: Mask, size: int, whole: int) -> None:
    text = kernel_text(mask, size, size)

    found = [free for first in range(0, size, 64) for _, free in tiles(text, first, 64, 64)]

    assert sum(found) == whole


@pytest.mark.sample(4)
@pytest.mark.parametrize("offset", range(-17, 18))
def test_no_tile_without_masks_is_one_lane_too_far(offset: int) -> None:
    keep = np.tri(48, 48, offset, dtype=bool)
    text = kernel_text(lambda i, j: j <= i + offset, 48, 48)

    for first in (0, 16, 32):
        found = {t for t, whole in tiles(text, first, 16, 16) if whole}
        assert found == {t for t in (0, 16, 32) if keep[first : first + 16, t : t + 16].all()}


@pytest.mark.parametrize("seed", range(12))
def test_what_a_mask_only_changes_is_met_in_order(seed: int) -> None:
    draw = random.Random(seed)
    rows, lanes, b = *draw.choice([(64, 64), (50, 83), (96, 40), (33, 128)]), draw.randint(-60, 60)
    mask: Mask = draw.choice([lambda i, j: j <= i + b, lambda i, j: j >= i + b, lambda i, j: i + j <= b + 60])
    keep = np.broadcast_to(mask(np.arange(rows)[:, None], np.arange(lanes)[None, :]), (rows, lanes))
    text = kernel_text(mask, rows, lanes, other=-1e4)

    assert text.count("for begin in") == 4
    for block, width in ((16, 16), (32, 16), (16, 32), (64, 64)):
        for first in range(0, rows, block):
            met = list(tiles(text, first, block, width))
            assert [t for t, _ in met] == list(range(0, lanes, width))
            for t in (t for t, whole in met if whole):
                tile = keep[first : first + block, t : t + width]
                assert t + width <= lanes and (tile.all() or not tile.any()), (first, t)
