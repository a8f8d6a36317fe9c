"""What an audit imports: no engine, and not more code than there was."""

import pytest

from bench.lines import counted
from bench.trusted import CHECKS, imported

ENGINES = {"lifting", "refine", "blame", "interp", "frontends", "rules", "optimize", "env", "egraph"}
BOUNDS = {
    "certificate of a refinement": 19_087,
    "certificate of an equivalence": 20_030,
    "certificate of a kernel": 21_988,
}
"""Lines of code without comments and docstrings; the bounds go down, and up only for a law that nothing else shows.

The last ones were those of rows that sorts have put in order (about 440 lines), of floats of 8 bits (about 140, with
what is refused of them), of the condition under which a kernel is proved, which an audit shows (about 40), of what
a choice leaves out (17), of what programs in tiles leave to be said: variances, values of maxima, ties (about 120).
"""


@pytest.mark.parametrize("check", BOUNDS)
def test_an_audit_imports_no_engine(check: str) -> None:
    files = imported(CHECKS[check])
    packages = {path.parts[path.parts.index("rewright") + 1] for path in files}
    assert not packages & ENGINES
    assert sum(counted(path)["code"] for path in files) <= BOUNDS[check]
