"""Layers that repeat: programs as streams, and what is shown once for all of them. Read ``stream``, then ``reuse``.

``reuse`` instantiates a layer that was lifted before; ``induction`` lifts three of many; ``shortening`` makes programs
of three layers, to be run.
"""
