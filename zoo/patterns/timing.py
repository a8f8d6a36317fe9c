"""Bugs of asynchronous collectives: what is used before somebody waited for it."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.device_mesh import DeviceMesh

from zoo.patterns.pattern import Pattern, Program, dist, reduced, weight

ROWS, WIDTH, INNER, RANKS = 8, 4, 6, 2


def rescaled_early() -> Pattern:
    """A buffer of gradients is divided by the number of ranks while they are still being summed."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w).tanh().square().mean()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            loss: Any = (x @ w).tanh().square().mean()
            loss.backward()
            buffer = w.grad.clone().view(-1)
            handle = dist.all_reduce(buffer, async_op=True)
            if not wrong:
                handle.wait()
            buffer.div_(RANKS)
            w.grad.copy_(buffer.view_as(w.grad))
            return {"loss": reduced(loss.detach() / RANKS)}

        return step, (torch.zeros(ROWS // RANKS, WIDTH), weight(WIDTH, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(0)"}
    return Pattern(
        ("OpenNMT-py #2295",), lambda: (whole, arguments), parallel, relations, "buffer.div_(RANKS)", gradient=True
    )


def gathered_late() -> Pattern:
    """Parameters are gathered while the next step begins: a layer reads its own before they have arrived."""

    def updated(w: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        return w - 0.1 * gradient

    def whole(
        x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, of_up: torch.Tensor, of_down: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        return {"y": (x @ updated(up, of_up)).relu() @ updated(down, of_down)}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def begun(own: torch.Tensor) -> tuple[torch.Tensor, Any]:
            every = own.new_empty(own.shape[0] * RANKS, own.shape[1])
            return every, dist.all_gather_into_tensor(every, own, async_op=True)

        def step(
            x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, of_up: torch.Tensor, of_down: torch.Tensor
        ) -> dict[str, torch.Tensor]:
            first, of_first = begun(updated(up, of_up))
            second, of_second = begun(updated(down, of_down))
            of_first.wait()
            inner = (x @ first).relu()
            if not wrong:
                of_second.wait()
            return {"y": inner @ second}

        own = [torch.zeros(WIDTH // RANKS, INNER), torch.zeros(INNER // RANKS, WIDTH)]
        return step, (torch.zeros(ROWS // RANKS, WIDTH), *own, *own)

    every = [torch.zeros(WIDTH, INNER), torch.zeros(INNER, WIDTH)]
    arguments = (torch.zeros(ROWS, WIDTH), *every, *every)
    relations: dict[str, str] = dict.fromkeys(("x", "up", "down", "of_up", "of_down"), "Shard(0)")
    references = ("Megatron-LM #950", "Megatron-LM #663")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "inner @ second")


TIMING = {"gradients rescaled early": rescaled_early(), "parameters read early": gathered_late()}
"""Patterns by name."""
