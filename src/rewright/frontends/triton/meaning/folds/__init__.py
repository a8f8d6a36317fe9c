"""Folds: the identities by which loops and reductions are one, and choices that are extrema or sums."""
