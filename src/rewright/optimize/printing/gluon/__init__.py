"""Kernels with specialised warps, in Gluon. Start at ``partitions``, which parts a kernel; ``renderer`` writes it.

One warp, the ``producer``, does nothing but start copies of tiles into ``rings`` of shared memory. The others, the
``consumer``, wait for a tile, multiply it on the matrix units, and release its place. Two barriers a place say whose
it is.
"""
