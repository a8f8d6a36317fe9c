"""Triton kernels: launches are read as graphs, from the TTIR that Triton compiles without a GPU.

``text`` reads TTIR, ``meaning`` says what it computes for all instances at once, ``launches`` notes what a PyTorch
function launches.
"""
