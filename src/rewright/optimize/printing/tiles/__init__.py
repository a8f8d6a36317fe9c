"""Kernels as operations on tiles, for machines with matrix units. Start at kernel."""
