"""Bugs in backward passes: gradients that are cut, not summed, or summed twice."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate

from zoo.patterns.pattern import (
    Pattern,
    Program,
    dist,
    enter,
    exchange,
    gathered,
    leave,
    reduced,
    scattered,
    sum_gradients,
    weight,
)

ROWS, WIDTH, INNER, HEADS = 8, 4, 6, 2


def _normed(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * scale


def head_norm() -> Pattern:
    """Every rank has the weight of a norm over its own heads: the gradients are addends that nobody adds."""

    def losses(x: torch.Tensor, query: torch.Tensor, scale: torch.Tensor) -> Any:
        heads = (x @ query).view(ROWS, -1, INNER)
        return _normed(heads, scale).sigmoid().square().sum()

    def whole(x: torch.Tensor, query: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        loss = losses(x, query, scale)
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, query: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = losses(x, query, scale)
            loss.backward()
            if not wrong:
                sum_gradients(scale)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER))

    references = ("NeMo RL #3716", "Megatron-LM #816", "SkyRL #2226")
    relations = {"x": "Replicate()", "query": "Shard(1)", "scale": "Replicate()"}
    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, HEADS * INNER), weight(INNER))
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "* scale", gradient=True)


def to_local() -> Pattern:
    """A replicated DTensor is used on local data: its gradient is a sum over ranks only where that is said."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = F.linear(x, w).relu().square().sum()
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            own = w.to_local() if wrong else w.to_local(grad_placements=[Partial()])
            loss: Any = F.linear(x, own).relu().square().sum()
            loss.backward()
            w.grad = w.grad.redistribute(placements=[Replicate()])
            return {"loss": reduced(loss.detach())}

        w: Any = DTensor.from_local(torch.zeros(INNER, WIDTH), mesh, [Replicate()], run_check=False)
        return step, (torch.zeros(ROWS // 2, WIDTH), w.requires_grad_())

    arguments = (torch.zeros(ROWS, WIDTH), weight(INNER, WIDTH))
    references = ("torchtitan #1805", "NeMo Automodel #1260")
    return Pattern(
        references, lambda: (whole, arguments), parallel, {"x": "Shard(0)"}, "F.linear(x, own)", gradient=True
    )


def contrast() -> Pattern:
    """Rows of other ranks take part in the loss, and the gradient that flows back to them is cut."""

    def losses(own: torch.Tensor, every: torch.Tensor) -> Any:
        return (own @ every.T).tanh().sum()

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        found = x @ w
        loss = losses(found, found)
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            found = x @ w
            every = gathered(found.detach()) if wrong else exchange(found, gathered, scattered)
            loss = losses(found, every)
            loss.backward()
            sum_gradients(w)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(0)", "w": "Replicate()"}
    references = ("ms-swift #9947", "ml-cross-entropy #42")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "own @ every.T", gradient=True)


def tied_stages() -> Pattern:
    """The first and the last stage of a pipeline share a weight, and its two gradients are never added."""

    def whole(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = ((x @ w).tanh() @ w.T).square().sum()
        loss.backward()
        return {"loss": loss}

    def first(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        hidden: Any = (x @ w).tanh()
        dist.send(hidden.detach(), 1)
        gradient = torch.empty_like(hidden)
        dist.recv(gradient, 1)
        hidden.backward(gradient)
        return torch.zeros(())

    def last(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        hidden = torch.empty(x.shape[0], w.shape[1])
        dist.recv(hidden, 0)
        hidden.requires_grad_()
        loss: Any = (hidden @ w.T).square().sum()
        loss.backward()
        assert hidden.grad is not None
        dist.send(hidden.grad, 0)
        return loss.detach()

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            loss = (last if mesh.get_local_rank() else first)(x, w)
            if not wrong:
                sum_gradients(w)
            return {"loss": reduced(loss)}

        return step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Replicate()", "w": "Replicate()"}
    references = ("Megatron-LM #844", "Megatron-LM #6500")
    return Pattern(references, lambda: (whole, arguments), parallel, relations, "hidden: Any = (x @ w)", gradient=True)


def clip_scope() -> Pattern:
    """The norm of all gradients counts those of a replicated parameter once for every rank."""

    def clipped(norm: torch.Tensor, *tensors: Any) -> None:
        for tensor in tensors:
            tensor.grad.mul_((0.5 / (norm + 1e-6)).clamp(max=1.0))

    def squares(tensor: Any) -> torch.Tensor:
        return tensor.grad.square().sum()

    def whole(x: torch.Tensor, up: torch.Tensor, bias: torch.Tensor) -> dict[str, torch.Tensor]:
        loss: Any = (x @ up + bias).square().sum()
        loss.backward()
        norm = (squares(up) + squares(bias)).sqrt()
        clipped(norm, up, bias)
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        def step(x: torch.Tensor, up: torch.Tensor, bias: torch.Tensor) -> dict[str, torch.Tensor]:
            loss: Any = (leave(enter(x) @ up) + bias).square().sum()
            loss.backward()
            if wrong:
                norm = reduced(squares(up) + squares(bias)).sqrt()
            else:
                norm = (reduced(squares(up)) + squares(bias)).sqrt()
            clipped(norm, up, bias)
            return {"loss": loss}

        return step, (torch.zeros(ROWS, WIDTH // 2), weight(WIDTH // 2, INNER), weight(INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER), weight(INNER))
    relations = {"x": "Shard(1)", "up": "Shard(0)", "bias": "Replicate()"}
    references = ("Megatron-LM #2263", "Megatron-LM #5916", "torchtune #2641", "torchtune #2687")
    return Pattern(
        references, lambda: (whole, arguments), parallel, relations, "squares(up) + squares(bias)", gradient=True
    )


def decay_of_gathered() -> Pattern:
    """A sharded optimizer updates its rows after the parameters were gathered: the others keep the old rows."""

    def whole(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
        loss: Any = (x @ w).square().sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
        return {"loss": loss}

    def parallel(mesh: DeviceMesh, wrong: bool) -> Program:
        rows, rank = WIDTH // 2, mesh.get_local_rank()

        def step(x: torch.Tensor, w: Any) -> dict[str, torch.Tensor]:
            loss: Any = (x @ w).square().sum()
            loss.backward()
            own = w.detach()[rank * rows : (rank + 1) * rows]
            gradient = scattered(w.grad)
            if wrong:
                dist.all_gather_into_tensor(w.detach(), own.clone())
                own.sub_(0.1 * gradient)
            else:
                own.sub_(0.1 * gradient)
                dist.all_gather_into_tensor(w.detach(), own.clone())
            w.grad = reduced(w.grad)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(ROWS // 2, WIDTH), weight(WIDTH, INNER))

    arguments = (torch.zeros(ROWS, WIDTH), weight(WIDTH, INNER))
    relations = {"x": "Shard(0)", "w": "Replicate()"}
    return Pattern(("uw-syfi/piper #13",), lambda: (whole, arguments), parallel, relations, "own.sub_", gradient=True)


GRADIENTS = {
    "gradient of a norm over heads not summed": head_norm(),
    "gradient of a local tensor not summed": to_local(),
    "gradient of gathered rows cut": contrast(),
    "gradients of tied stages not added": tied_stages(),
    "norm counts replicas twice": clip_scope(),
    "parameters gathered before they are updated": decay_of_gathered(),
}
"""Patterns by name."""
