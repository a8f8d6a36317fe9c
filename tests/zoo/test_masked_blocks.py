"""Masked attention block by block, with slips drawn at random: what is proved sees the same keys for every query."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from zoo import ring

TOKENS = 3
Kind = tuple[str, int]
"""What a rank does with a block: ``full``, ``skip`` or ``mask``, and by how much its mask is shifted."""


def scores(query: torch.Tensor, key: torch.Tensor, first: int, other: int, shift: int) -> torch.Tensor:
    rows, columns = torch.arange(query.shape[-2]) + first, torch.arange(key.shape[-2]) + other
    return (query @ key.transpose(-1, -2)).masked_fill(columns > rows.unsqueeze(-1) + shift, float("-inf"))


def whole(shift: int) -> Callable[..., torch.Tensor]:
    def program(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores(query, key, 0, 0, shift), -1) @ value

    return program


def blockwise(kinds: list[list[Kind]]) -> Callable[[DeviceMesh], Any]:
    def build(mesh: DeviceMesh) -> Any:
        around = ring.Ring(mesh.get_group())

        def program(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            result = size = None
            for turn in range(around.size):
                if turn:
                    key, value = around.passed_on(key), around.passed_on(value)
                owner = (around.rank - turn) % around.size
                kind, shift = kinds[around.rank][owner]
                if kind == "skip":
                    continue
                reach = shift if kind == "mask" else 2 * TOKENS * around.size
                block = scores(query, key, around.rank * TOKENS, owner * TOKENS, reach)
                own, part = torch.logsumexp(block, -1, keepdim=True), torch.softmax(block, -1) @ value
                if result is None or size is None:
                    result, size = part, own
                    continue
                result = result - torch.sigmoid(own - size) * (result - part)
                size = size - torch.nn.functional.logsigmoid(size - own)
            return torch.zeros_like(query) if result is None else result

        return program, (), {name: torch.randn(1, TOKENS, 2) for name in ("query", "key", "value")}

    return build


def visible(query: int, block: int, kind: Kind) -> set[int]:
    keys = range(block * TOKENS, (block + 1) * TOKENS)
    return {key for key in keys if kind[0] == "full" or (kind[0] == "mask" and key <= query + kind[1])}


def is_right(kinds: list[list[Kind]], shift: int) -> bool:
    """Whether every query sees the keys that it should, and no block that is computed has a query that sees none."""
    for rank, row in enumerate(kinds):
        for query in range(rank * TOKENS, (rank + 1) * TOKENS):
            seen = [visible(query, block, kind) for block, kind in enumerate(row)]
            if any(not keys and kind[0] != "skip" for keys, kind in zip(seen, row, strict=True)):
                return False
            if set().union(*seen) != {key for key in range(len(kinds) * TOKENS) if key <= query + shift}:
                return False
    return True


def drawn(source: random.Random, degree: int, shift: int) -> list[list[Kind]]:
    """The right kind of every block, and sometimes another."""
    kinds: list[list[Kind]] = []
    for rank in range(degree):
        row: list[Kind] = []
        for block in range(degree):
            tests = [
                key <= query + shift
                for query in range(rank * TOKENS, (rank + 1) * TOKENS)
                for key in range(block * TOKENS, (block + 1) * TOKENS)
            ]
            right = "full" if all(tests) else "mask" if any(tests) else "skip"
            kind = right if source.random() < 0.9 else source.choice(["full", "skip", "mask"])
            row.append((kind, shift if source.random() < 0.9 else shift + source.choice([-1, 1])))
        kinds.append(row)
    return kinds


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_only_what_sees_the_same_keys_is_proved(seed: int) -> None:
    source = random.Random(seed)
    degree, shift = source.choice([2, 2, 3]), source.choice([0, 0, 1])
    kinds = drawn(source, degree, shift)
    given = {name: torch.randn(1, TOKENS * degree, 2) for name in ("query", "key", "value")}
    program = rw.capture_ranks(blockwise(kinds), {"cp": degree})
    held = dict.fromkeys(given, "Shard(1)")
    verdict = rw.refine(rw.capture(whole(shift), (), given), program, held, {"output": "Shard(1)"})
    assert (verdict.status == "proved") == is_right(kinds, shift), (kinds, verdict.reason)
