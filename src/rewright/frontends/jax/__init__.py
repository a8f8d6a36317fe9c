"""JAX programs: traced and lowered by JAX, read as HLO; nothing is computed and nothing global changes.

Read ``capture``, then ``ranks``; attention is written out in these programs, so that no option says what it means.
"""

from rewright.frontends.frontend import Frontend, Function, Programs

_COMPILED = "{} is for torch programs; leave it out for JAX, whose programs are compiled"
FRONTEND = Frontend(
    "jax",
    Programs(
        packages=("jax", "jaxlib"),
        capture=Function("rewright.frontends.jax.capture:capture"),
        capture_ranks=Function("rewright.frontends.jax.ranks:capture_ranks"),
        refused={
            "dynamic": "symbolic sizes are for torch programs; give arguments of a JAX function numbers",
            "run": _COMPILED,
            "ranks": _COMPILED,
        },
    ),
)
