"""Folds over symbolic ranges in normal form. Read ``sums``, ``items``, ``presence``, ``maxima``, ``products``."""
