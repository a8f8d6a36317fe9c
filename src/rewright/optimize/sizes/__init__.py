"""Kernels for sizes that change: one plan and one proof for symbols, called with numbers. Read ``making`` first.

``plans`` makes a plan of symbols from plans at several sizes, ``fitting`` a graph of symbols from captures at several
sizes; ``alike`` is what both rest on. ``variants`` builds kernels that take sizes, ``runner`` calls them.
"""
