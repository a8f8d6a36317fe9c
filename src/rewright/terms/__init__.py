"""The language of denotations: indices, conditions on them, and scalars over operands. Read ``scalar``, ``index``.

``normal`` is the decision procedure over it: two scalars are equal where their normal forms are.
"""
