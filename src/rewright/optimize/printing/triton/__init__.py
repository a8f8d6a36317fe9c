"""Triton: ``renderer`` writes statements, ``functions`` scalars and tiles, ``helpers`` what Triton has not."""
