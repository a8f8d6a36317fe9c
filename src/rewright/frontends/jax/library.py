"""JAX as the frontend uses it, in one place and without its types, of which many are unknown to a checker of types."""

from __future__ import annotations

from importlib import import_module
from typing import Any

jax: Any = import_module("jax")
jaxlib: Any = import_module("jaxlib")
sharding: Any = import_module("jax.sharding")
xla_client: Any = import_module("jaxlib.xla_client")
xla: Any = import_module("jax.extend.xla")
ir: Any = import_module("jax.extend.mlir.ir")
