"""Ranks that run one program, traced once: a number that differs between ranks is one number for each of them.

Read ``numbers.py`` first: what such a number can do, and that who looks at it is refused. ``world.py`` has the process
be all ranks, ``tracing.py`` makes the traces of the ranks of one trace, and ``lowering.py`` lowers these together.
"""
