"""Lowering of ATen operators to the IR: one table for every door that calls of them come through.

Nothing here imports torch. A door (a trace of PyTorch, a graph in a file) describes every call by a
:class:`~rewright.frontends.aten.call.Call`, and :class:`~rewright.frontends.aten.lowering.Lowering` lowers it.
"""
