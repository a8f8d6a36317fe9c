"""Loops with a number of iterations and without: folds along an axis, or written out. Read ``loops`` first."""
