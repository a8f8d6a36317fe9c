"""Settings of the documentation; the table of operators is read off the operators themselves."""

from __future__ import annotations

import inspect
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from sphinx.application import Sphinx

project = "Rewright"
author = "The Rewright authors"
copyright = "The Rewright authors"
release = import_module("rewright").__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "reference/_operators.md"]
html_theme = "furo"
html_title = "Rewright"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_preserve_defaults = True


def operator_table() -> str:
    """One row per operator: its name, its attributes, and what it computes."""
    registry = import_module("rewright.ops").REGISTRY
    rows = ["| operator | attributes | what it computes |", "|---|---|---|"]
    for name, operator in sorted(registry.items()):
        attributes = ", ".join(f"`{field.name}`" for field in fields(operator))
        sentence = (inspect.getdoc(operator) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| `{name}` | {attributes} | {sentence} |")
    return "\n".join([*rows, ""])


def write_tables(app: Sphinx) -> None:
    """Write what pages include."""
    target = Path(app.srcdir) / "reference" / "_operators.md"
    table = operator_table()
    if not target.exists() or target.read_text() != table:
        target.write_text(table)


def setup(app: Sphinx) -> None:
    """Connect the table of operators to the build."""
    app.connect("builder-inited", write_tables)
