"""Small programs of many kinds; each calls what users call, and none is there because it works."""

from __future__ import annotations

from bench.optimize.calls.programs import arithmetic, choices, layouts, modules, products, rows, states
from bench.optimize.calls.spec import Program

PROGRAMS: dict[str, Program] = {
    **arithmetic.PROGRAMS,
    **rows.PROGRAMS,
    **products.PROGRAMS,
    **choices.PROGRAMS,
    **layouts.PROGRAMS,
    **states.PROGRAMS,
    **modules.PROGRAMS,
}
