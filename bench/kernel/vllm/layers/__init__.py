"""vLLM's norms, activations, rotations, quantised numbers and products."""

PARTS = ("maps", "quantised", "rounding", "ragged", "invariant", "norms", "streams")
