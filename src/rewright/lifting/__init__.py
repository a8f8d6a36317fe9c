"""Programs as normal-form terms: every tensor of a program, of any rank, is a view of a hash-consed term.

See ``docs/explanation/engine.md`` for the whole idea: slices, coefficients and partial sums are lifted outwards, so
that a rank's tensor is a window of the very term that the sequential program computes.
"""
