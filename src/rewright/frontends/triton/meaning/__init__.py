"""What a kernel means: a graph of what all instances of a launch leave in memory.

Read ``values`` first, then ``reader``. ``integers``, ``floats``, ``blocks``, ``transfers`` and ``control`` say what
operations mean; ``places`` and ``memory`` turn addresses into views of tensors, ``loops`` and ``steps`` loops into
folds, and ``safety`` proves what has to hold of indices.
"""
