"""Triton: renderer writes statements, functions scalars and tiles; launch and tuning run modules."""
