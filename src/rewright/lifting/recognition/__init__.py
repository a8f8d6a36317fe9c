"""Ways to see that a rank's term is one of the sequential program's. Read ``sums``, then ``expansion``.

Each module is one law that a normal form leaves open: another order of products, fractions over one denominator,
exponentials of differences, indices of unit axes, quotients of positions. None decides whether a result is right, only
whether it is recognised.
"""
