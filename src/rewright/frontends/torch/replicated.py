"""Data parallelism by ``DistributedDataParallel``, traced as it runs: its own reducer, on the parameters that stand in.

The reducer is C++ and hangs on the gradient accumulators of the parameters that it was made for. While a program is
traced other tensors stand in for those, so each wrapper gets a reducer of its own over the stand-ins, made in the way
and with the options that the wrapper's constructor used. What the reducer then does (scaling into flat buckets,
``all_reduce``, copies back, nothing under ``no_sync``) goes through PyTorch's dispatcher, where the tracer sees it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import torch.distributed as dist
from torch import nn

from rewright.ir.errors import CaptureError

_MODULE, _NAME = "torch.nn.parallel.distributed", "DistributedDataParallel"
_distributed: Any = dist


def wrapper_class() -> Any:
    """``DistributedDataParallel`` where this process has loaded it, else None: nothing is imported to find out."""
    return getattr(sys.modules[_MODULE], _NAME) if _MODULE in sys.modules else None


def is_replicated(module: nn.Module) -> bool:
    """Whether a module is a ``DistributedDataParallel``."""
    kind = wrapper_class()
    return kind is not None and isinstance(module, kind)


def is_prepared(module: nn.Module) -> bool:
    """Whether a wrapper reduces the gradients of stand-ins."""
    return isinstance(vars(module).get("reducer"), _Reducer)


@contextmanager
def reducing(modules: Sequence[nn.Module]) -> Generator[None]:
    """Inside, every wrapper among the modules reduces the gradients of the parameters that it has now.

    The caller puts the attributes of all modules back afterwards. Raises CaptureError for options whose work cannot be
    traced, and where a bucket was never full, so that it was never reduced.
    """
    wrappers: list[Any] = [module for module in modules if is_replicated(module)]
    for module in wrappers:
        _prepare(module)
    yield
    for module in wrappers:
        _check_finished(module)


def notes_of(module: nn.Module) -> list[str]:
    """What a wrapper's communication hooks remember between steps, while one step is captured."""
    if not is_replicated(module):
        return []
    hooks: Sequence[tuple[Any, Any]] = cast("Any", module)._comm_hooks
    return [
        f"the communication hook {getattr(hook, '__name__', hook)} is captured with its {type(state).__name__} as that "
        "is now; what it does in later steps may be something else"
        for hook, state in hooks
        if state is not None and not isinstance(state, _distributed.ProcessGroup)
    ]


def _prepare(module: Any) -> None:
    if module.mixed_precision is not None or module._delay_all_reduce_all_params:
        raise CaptureError(
            "a DistributedDataParallel with mixed_precision or delayed all-reduces casts and reduces on streams of its "
            "own, which cannot be traced; leave these options out"
        )
    # Both options look for parameters that no gradient reaches, by reading values; see _check_finished.
    module.find_unused_parameters = module.static_graph = False
    parameters, sparse = module._build_params_for_reducer()
    module._ddp_init_helper(parameters, sparse, module._build_debug_param_to_name_mapping(parameters), False)
    for hook, state in module._comm_hooks:
        _distributed._register_comm_hook(module.reducer, state, hook)
    vars(module)["_inside_ddp_forward"] = nullcontext  # it tells a compiler that is not there to look away
    module.reducer = _Reducer(module.reducer)


def _check_finished(module: Any) -> None:
    try:
        module.reducer._check_reducer_finalized()
    except RuntimeError:
        raise CaptureError(
            "a DistributedDataParallel waits for gradients of parameters that the step does not use, and never reduces "
            "the bucket that they are in; freeze these parameters (requires_grad=False), leave them out of the module, "
            "or capture with ranks='threads', where find_unused_parameters works"
        ) from None


class _Reducer:
    """A reducer that keeps its first buckets.

    After its first backward pass a reducer makes buckets in the order in which gradients arrived, and ranks agree on
    that by reading what rank 0 broadcasts: values, which a trace has not. What is computed does not depend on it.
    """

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reducer, name)

    def _rebuild_buckets(self) -> bool:
        return False
