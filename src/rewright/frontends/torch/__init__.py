"""PyTorch programs: capture with fake tensors, and lowering of ATen graphs to the IR.

Read ``capture``, then ``trace`` and ``lower``; ``ranks`` captures distributed programs, ``run`` such as run for real.
"""

from rewright.frontends.frontend import Frontend, Function, Programs

FRONTEND = Frontend(
    "torch",
    Programs(
        packages=("torch",),
        capture=Function("rewright.frontends.torch.capture:capture"),
        capture_ranks=Function("rewright.frontends.torch.ranks:capture_ranks"),
        options=frozenset({"dynamic", "run", "guards_queries", "opaque", "jobs", "ranks", "all_ranks"}),
        building=Function("rewright.frontends.torch.world:without_network"),
    ),
)
