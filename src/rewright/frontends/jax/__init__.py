"""JAX programs: traced and lowered by JAX, read as HLO; nothing is computed and nothing global changes."""

from rewright.frontends.jax.capture import capture
from rewright.frontends.jax.ranks import capture_ranks

__all__ = ["capture", "capture_ranks"]
