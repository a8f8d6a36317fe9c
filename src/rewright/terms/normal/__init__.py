"""The decision procedure over denotations: one normal form for elements of tensors, with sizes symbolic.

Read ``prove`` first, which says what a proof is made of; then the folders, from the bottom up: ``polynomials`` (what
values are), ``facts`` (what is known on a path), ``arithmetic`` (steps on values under facts), ``folds`` (sums, maxima
and products), ``denoting`` (a graph's elements) and ``decision`` (when two are equal). ``algebra`` puts them together.
"""
