"""Graphs of tensor operators with types, source spans and sizes that may be symbols."""
