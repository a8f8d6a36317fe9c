"""Kernels as code, in three steps.

``statements`` is a small language of loops, buffers and scalars: read it first. A lowering takes a kernel to it, and
all decisions are made there: what is computed once, masks, which tiles are skipped, how operands lie in memory. There
are three: ``loops`` (scalars in loops over rows and lanes), ``tiles`` (tiles as values) and ``reference`` (whole
tensors). How states of online reductions follow each other is written once for all of them, in ``states``. A renderer
only turns statements into text, with a ``Language`` for scalars: ``cpp`` and ``wgsl`` that of loops, ``triton`` that of
tiles, and ``reference`` its own as plain torch.
"""
