"""HLO modules as programs of the IR; nothing but the standard library is needed. Read ``module``, then ``reading``.

``text`` and ``proto`` read the two forms of a module into the records of ``module``, and ``proto`` writes them again:
whoever edits modules edits these. ``walk`` lowers them by the tables in ``arrays``, ``bits``, ``ordering``,
``collectives`` and ``calls``.
"""
