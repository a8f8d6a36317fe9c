"""Graphs of tensor operators with types, source spans and sizes that may be symbols. Read ``graph``, then ``types``.

``dims`` are sizes as polynomials over symbols; ``placement`` says how ranks hold a tensor; ``text`` and ``json_form``
print and read graphs; ``digest`` is what certificates name a graph by.
"""
