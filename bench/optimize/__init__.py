"""Fused kernels beside other compilers, over programs of many families: ``python -m bench.optimize``.

``programs`` says what is measured, ``peers`` by whom, ``task`` what is done with one program in a process of its own,
``alone`` how that process is run, and ``table`` how rows are shown. ``lengths``, ``errors``, ``seconds`` and
``compiled`` look closer at the seven modules of ``programs.eviction``.
"""
