"""What a verdict trusts, by lines of code: ``make trusted``.

The modules that each check imports are counted, in a fresh process, without blank lines, comments and docstrings.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench.lines import counted
from bench.tables import print_table

CHECKS = {
    "certificate of a refinement": "rewright.proof.checker",
    "certificate of an equivalence": "rewright.equiv.audit",
    "certificate of a kernel": "rewright.kernel.certificate",
    "certificate of a rewritten module": "rewright.env.certificate",
    "capture from PyTorch": "rewright.frontends.torch.capture",
    "capture from JAX": "rewright.frontends.jax.capture",
}
SHOWN = (
    "ir",
    "terms",
    "ops",
    "analysis",
    "claims",
    "proof",
    "rules",
    "lifting",
    "refine",
    "equiv",
    "interp",
    "env",
    "frontends",
)


def imported(module: str) -> list[Path]:
    """The files of this package that importing a module loads."""
    code = (
        f"import sys, {module}\n"
        "print(*[m.__file__ for n, m in sys.modules.items() if n.startswith('rewright') and m.__file__], sep='\\n')"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [Path(line) for line in found.stdout.splitlines()]


def main() -> None:
    """Print the table."""
    rows: list[list[object]] = []
    for name, module in CHECKS.items():
        files = imported(module)
        count: Counter[str] = Counter()
        for path in files:
            parts = path.parts[path.parts.index("rewright") + 1 :]
            count[parts[0] if parts[0] in SHOWN else "other"] += counted(path)["code"]
        shares = ", ".join(f"{package} {lines:,}" for package, lines in count.most_common() if lines)
        rows.append([name, len(files), f"{sum(count.values()):,}", shares])
    print_table(["what", "modules", "lines", "of which"], rows)


if __name__ == "__main__":
    main()
