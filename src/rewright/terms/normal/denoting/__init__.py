"""The elements of a graph in normal form. Read ``denote``, then ``functions`` and ``needs``; ``casts``, ``sorts``."""
