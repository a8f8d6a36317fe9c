"""Wrappers of data parallelism whose work no trace can see: refused wherever a program uses them."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn
from unittest import mock

from torch import nn

from rewright.frontends.torch.replicated import is_prepared, wrapper_class
from rewright.ir.errors import CaptureError

_REASONS = {
    ("torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel"): (
        "which keeps its parameters in flat tensors without names or shapes; shard the module with fully_shard"
    ),
}


def refuse_wrappers(name: str, module: nn.Module) -> None:
    """Raise CaptureError where a module is such a wrapper; ``name`` is that of a submodule, or empty."""
    for kind, reason in _kinds():
        if isinstance(module, kind):
            where = f"submodule {name!r}" if name else "the module"
            raise CaptureError(f"{where} is a {kind.__name__}, {reason}")


@contextmanager
def refusing_wrappers() -> Generator[None]:
    """Refuse wrappers that a program reaches by ways that nobody looked at, or makes itself; raises CaptureError."""
    with ExitStack() as stack:
        _only_prepared(stack)
        for kind, reason in _kinds():

            def refuse(
                *_: object, message: str = f"the program uses a {kind.__name__}, {reason}", **__: object
            ) -> NoReturn:
                raise CaptureError(message)

            for method in ("__init__", "forward"):
                stack.enter_context(mock.patch.object(kind, method, refuse))
        yield


def _only_prepared(stack: ExitStack) -> None:
    """A wrapper that nobody prepared reduces the gradients of other tensors than those that are traced: nothing."""
    kind = wrapper_class()
    if kind is None:
        return
    forward: Any = kind.forward
    reason = (
        "the program makes a DistributedDataParallel or hides it, so that its reducer cannot be traced; make it "
        "before and pass it as an argument"
    )

    def refuse(*_: object, **__: object) -> NoReturn:
        raise CaptureError(reason)

    def checked(module: Any, *args: Any, **kwargs: Any) -> Any:
        return forward(module, *args, **kwargs) if is_prepared(module) else refuse()

    stack.enter_context(mock.patch.object(kind, "__init__", refuse))
    stack.enter_context(mock.patch.object(kind, "forward", checked))


def _kinds() -> Iterator[tuple[Any, str]]:
    """The classes that exist in this process: nothing is imported to find out."""
    for (module, name), reason in _REASONS.items():
        if module in sys.modules:
            yield getattr(sys.modules[module], name), reason
