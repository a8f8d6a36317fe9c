"""Operators that compute: element by element, products, reductions, collectives. Read ``pointwise`` first.

It joins the laws of elementwise operators, each of which is in the module of its theme. A product or a linear function
keeps a partial sum partial; ``close_reductions`` closes it once ranks have added up all of its range.
``distributed_argmax`` is the law of the first largest element over parts.
"""
