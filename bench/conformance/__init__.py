"""Captured graphs against PyTorch, on all samples of PyTorch's own operator database: ``make conformance``.

``python -m bench.conformance`` runs every sample of every variant in seven dtypes, forward and backward, prints the
table of docs/reference/conformance.md, and ends with 1 where the gate is not met. ``--part 3/10`` takes every tenth
variant from the third one on, ``--dtypes float64,int64`` these alone, ``--most 2`` the first two samples of each,
``--keep FILE`` goes on from a run that was ended, and ``--write FILE`` writes the table there as well.
"""
