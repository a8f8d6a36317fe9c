"""Fused kernels for tensor programs, proved to compute what the program computes. Read ``api``, then ``kernel``.

``planning`` decides what is one kernel, ``online`` derives reductions that run along, ``scalars`` is their algebra,
``printing`` writes kernels in C++, Triton, torch and WGSL, ``proving`` proves plans, ``running`` builds and launches.

The name ``rewright.optimize`` means two things, the public function and this package, and Python binds it to the
package as soon as anything below is imported. So the package can be called.
"""

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rewright.optimize.loading import load

if TYPE_CHECKING:
    from rewright.optimize.api import Optimized as Optimized
    from rewright.optimize.api import optimize as optimize

__all__ = ["Optimized", "optimize"]


def __getattr__(name: str) -> object:
    if name in __all__:
        load("rewright.optimize.api")
        from rewright.optimize import api

        return getattr(api, name)
    raise AttributeError(f"module 'rewright.optimize' has no attribute {name!r}")


class _CallablePackage(ModuleType):
    def __call__(
        self,
        program: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *rest: Any,
        **options: Any,
    ) -> Any:
        """See :func:`rewright.optimize.api.optimize`."""
        from rewright.optimize.api import optimize

        return optimize(program, args, kwargs, *rest, **options)


sys.modules[__name__].__class__ = _CallablePackage
