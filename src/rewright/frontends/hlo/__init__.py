"""HLO modules as programs of the IR; nothing but the standard library is needed. Read ``module``, then ``reading``.

``text`` and ``proto`` read the two forms of a module into the records of ``module``, and ``proto`` writes them again:
whoever edits modules edits these. ``walk`` lowers them by the tables in ``arrays``, ``bits``, ``ordering``,
``collectives`` and ``calls``. StableHLO is read by way of the module that XLA makes of it.
"""

from rewright.frontends.frontend import Files, Frontend, Function

FRONTEND = Frontend(
    "hlo",
    files=Files(
        extensions=(".pb", ".hlo", ".txt", ".mlir", ".stablehlo"),
        read=Function("rewright.frontends.hlo.files:read_file"),
        read_ranks=Function("rewright.frontends.hlo.files:read_files"),
    ),
)
