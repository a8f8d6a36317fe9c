"""Does a Triton kernel compute its PyTorch reference, for all sizes, in bounds and without races? Read ``engine``.

``running`` runs kernels in Triton's interpreter, in a process of their own, at sizes and on inputs that show errors.

As with ``rewright.refine`` the name means both the public function and this package, so the package can be called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rewright.kernel.engine import KernelVerdict

__all__ = ["kernel"]


def kernel(
    reference: Callable[..., Any],
    launcher: Callable[..., Any] | Literal["inductor"],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    budget: float | None = None,
    explain: bool = True,
    given: Callable[..., Any] | None = None,
) -> KernelVerdict:
    """See :func:`rewright.kernel.engine.kernel`."""
    from rewright.kernel.engine import kernel as run

    return run(reference, launcher, args, kwargs, dynamic=dynamic, budget=budget, explain=explain, given=given)


class _CallablePackage(ModuleType):
    __call__ = staticmethod(kernel)


sys.modules[__name__].__class__ = _CallablePackage
