"""Kernels as code."""
