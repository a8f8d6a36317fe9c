"""A ring that leaves out one of the messages that it receives: the finding is in the ring, not behind it."""

from __future__ import annotations

import linecache
from typing import Any

import torch
import torch.distributed as dist

import rewright as rw

RANKS = 4


def swap(x: torch.Tensor) -> torch.Tensor:
    rank = dist.get_rank()
    received = torch.empty_like(x)
    sending = dist.P2POp(dist.isend, x, (rank + 1) % RANKS)
    receiving = dist.P2POp(dist.irecv, received, (rank - 1) % RANKS)
    for work in dist.batch_isend_irecv([sending, receiving]):
        work.wait()
    return received


def ring(forgets: bool) -> Any:
    """An all-reduce by sends: chunks are added up around the ring, and then sent around once more."""

    def program(x: torch.Tensor) -> dict[str, torch.Tensor]:
        rank, chunks = dist.get_rank(), [chunk.clone() for chunk in x[0].chunk(RANKS)]
        for step in range(RANKS - 1):
            received = swap(chunks[(rank - step) % RANKS])
            if not (forgets and step == RANKS - 2):
                chunks[(rank - step - 1) % RANKS] = chunks[(rank - step - 1) % RANKS] + received
        for step in range(RANKS - 1):
            chunks[(rank - step) % RANKS] = swap(chunks[(rank - step + 1) % RANKS])
        return {"y": torch.tanh(torch.cat(chunks))}

    return rw.capture_ranks(lambda _: (program, (torch.zeros(1, 8),)), mesh={"dp": RANKS})


def whole(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"y": torch.tanh(x.sum(0))}


def test_a_message_that_nothing_reads_is_told_first() -> None:
    sequential = rw.capture(whole, (torch.zeros(RANKS, 8),))
    assert rw.refine(sequential, ring(forgets=False), {"x": "Shard(0)"}).status == "proved"
    verdict = rw.refine(sequential, ring(forgets=True), {"x": "Shard(0)"})
    assert verdict.status == "refuted"
    (first, *_) = verdict.findings
    assert first.kind == "wrong_exchange"
    assert "nothing reads it" in first.message
    assert first.distributed is not None
    assert "batch_isend_irecv" in linecache.getline(first.distributed.file, first.distributed.line)
