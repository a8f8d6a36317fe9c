"""Wrappers of data parallelism that do their work where no trace can see it: refused wherever a program uses them."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn
from unittest import mock

from torch import nn

from rewright.ir.errors import CaptureError

_REASONS = {
    ("torch.nn.parallel.distributed", "DistributedDataParallel"): (
        "whose C++ reducer is silent while tracing, so that its gradient all-reduces would be missing; pass its "
        ".module and reduce the gradients in the step function"
    ),
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
        for kind, reason in _kinds():

            def refuse(
                *_: object, message: str = f"the program uses a {kind.__name__}, {reason}", **__: object
            ) -> NoReturn:
                raise CaptureError(message)

            for method in ("__init__", "forward"):
                stack.enter_context(mock.patch.object(kind, method, refuse))
        yield


def _kinds() -> Iterator[tuple[Any, str]]:
    """The classes that exist in this process: nothing is imported to find out."""
    for (module, name), reason in _REASONS.items():
        if module in sys.modules:
            yield getattr(sys.modules[module], name), reason
