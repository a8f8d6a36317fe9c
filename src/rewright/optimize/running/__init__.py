"""Kernels built, run, and first of all tested. Start at ``targets``."""
