"""Folds over symbolic ranges in normal form.

Read ``sums``, ``last_terms``, ``items``, ``presence``, ``maxima`` and ``products``, in this order.
"""
