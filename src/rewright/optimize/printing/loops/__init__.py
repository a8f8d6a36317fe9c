"""Kernels as scalars in loops: blocks of rows, tiles of a lane, rows, elements. Start at kernel."""
