"""Random calls of optimised programs against eager PyTorch: ``python -m bench.optimize.calls``.

Read ``programs`` first, then ``drawing`` (what a call is given), ``judging`` (what counts as different), ``task`` (what
one process does) and ``__main__`` (who starts the processes and prints the table).
"""
