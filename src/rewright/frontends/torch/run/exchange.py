"""Collectives of a rank that runs for real: every functional operator asks the switchboard for the others' values."""

from __future__ import annotations

import inspect
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)

from rewright.frontends.aten.context import Communicator
from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.run.collectives import compute_result
from rewright.frontends.torch.run.memory import Memory
from rewright.frontends.torch.run.switchboard import Meet, Receive, Request, Send
from rewright.ir.errors import CaptureError

Ask = Callable[[Request], Any]

_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd", "_dtensor", "rewright")


class _Current(threading.local):
    """The exchange of the rank that this thread runs, if it runs one."""

    def __init__(self) -> None:
        self.exchange: Exchange | None = None


_current = _Current()


def current_exchange() -> Exchange | None:
    """The exchange of this thread; None where nothing is exchanged (the route over fake tensors)."""
    return _current.exchange


def is_communication(operator: Any) -> bool:
    """Whether an operator moves values among ranks."""
    if not isinstance(operator, OpOverload) or operator.namespace not in _NAMESPACES:
        return False
    return operator.name() not in ("rewright::in_flight", "rewright::posted")


class Exchange(TorchDispatchMode):
    """One rank's access to the others. Whether values depend on the program's inputs is passed along with them."""

    def __init__(self, rank: int, ask: Ask, groups: Callable[[], dict[str, Communicator]]) -> None:
        TorchDispatchMode.__init__(self)  # pyright: ignore[reportUnknownMemberType]
        self.memory = Memory()
        self._rank, self._ask, self._groups = rank, ask, groups
        self._posted: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._last: Pending | None = None

    def __enter__(self) -> Any:
        _current.exchange = self
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        _current.exchange = None
        TorchDispatchMode.__exit__(self, *error)  # pyright: ignore[reportUnknownMemberType]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not is_communication(func) or kwargs:
            return func(*args, **(kwargs or {}))
        name = str(func._schema.name).partition("::")[2]
        if name == "wait_tensor":
            return args[0]
        if name == "send":
            payload = (args[0].detach().clone(), self.memory.depends(args[0]))
            self._ask(Send(args[1], args[2], payload))
            return args[0].clone()
        if name == "recv":
            return self._receive(*args)
        if name.endswith("_coalesced"):
            return [self._meet(name.removesuffix("_coalesced"), (tensor, *args[1:])) for tensor in args[0]]
        return self._meet(name.removesuffix("_"), args)

    def _meet(self, name: str, args: tuple[Any, ...]) -> torch.Tensor:
        communicator = self._communicator(args[-1])
        group = communicator.ranks
        given: torch.Tensor = args[0]
        splits = list(args[2]) if name == "all_to_all_single" else []
        where = calling_line(inspect.currentframe()) or "an unknown line"
        payload = (given.detach().clone(), self.memory.depends(given), splits)
        answers: Any = self._ask(Meet(group, communicator.number, name, payload, where))
        parts, depends, sent = zip(*answers, strict=True)
        result = compute_result(name, args, parts, group.index(self._rank), sent)
        self.memory.mark(result, any(depends))
        return result

    def _receive(self, like: torch.Tensor, source: int, tag: int) -> torch.Tensor:
        """A tensor that is filled when it is waited for; its number is taken now."""
        result = torch.empty_like(like)
        ticket = self._posted[source, tag]
        self._posted[source, tag] += 1
        where = calling_line(inspect.currentframe()) or "an unknown line"
        self._last = Pending(self, Receive(source, tag, ticket, where), result)
        return result

    def claim(self) -> Pending:
        """The receive that was posted last, to be waited for."""
        found = self._last
        assert found is not None
        self._last = None
        return found

    def fetch(self, request: Receive) -> tuple[torch.Tensor, bool]:
        """Wait for a message: its value, and whether it depends on the inputs."""
        return self._ask(request)

    def _communicator(self, group: Any) -> Communicator:
        found = self._groups().get(str(group)) if isinstance(group, str) else None
        if found is None:
            raise CaptureError(f"a collective over the group {group}, which this rank did not make; make it first")
        return found


class Pending:
    """A receive that was posted: the value comes when somebody waits for it."""

    def __init__(self, exchange: Exchange, request: Receive, result: torch.Tensor) -> None:
        self._exchange, self._request, self._result = exchange, request, result
        self._done = False

    def wait(self, destination: torch.Tensor) -> None:
        """Fill the result of the operator and the caller's tensor; at once the second time."""
        if self._done:
            return
        value, depends = self._exchange.fetch(self._request)
        if value.numel() == destination.numel() == 1:  # a number is sent as a vector of one element is
            value = value.reshape(destination.shape)
        if value.shape != destination.shape or value.dtype != destination.dtype:
            raise CaptureError(
                f"the message from rank {self._request.source} received at {self._request.where} is "
                f"{value.dtype} of shape {tuple(value.shape)}, and {destination.dtype} of shape "
                f"{tuple(destination.shape)} is expected; make them equal"
            )
        self._done = True
        with torch.no_grad(), _disable_current_modes():
            for tensor in (self._result, destination.detach()):
                tensor.copy_(value)
                self._exchange.memory.mark(tensor, depends)
