"""Verdicts in notebooks: the page of the HTML report, instead of a line of text.

``import rewright`` in a notebook calls :func:`register`. Nothing of the reports is imported before a verdict is shown.
"""

from __future__ import annotations

import sys
from html import escape
from typing import Any

_HEIGHT = 640
"""Of the frame that a report is shown in, in pixels; it scrolls."""


def register() -> None:
    """Show verdicts as pages wherever IPython shows HTML; nothing where there is no notebook."""
    module: Any = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    formatters: Any = getattr(getattr(shell, "display_formatter", None), "formatters", {})
    if "text/html" in formatters:
        formatters["text/html"].for_type_by_name("rewright.refine.verdict", "Verdict", show)


def show(verdict: Any) -> str:
    """The report of a verdict as HTML in a frame of its own, so that styles of page and notebook stay apart."""
    from rewright.report import Claim, draw_finding, page

    drawings = tuple(draw_finding(verdict, finding, alone=False) or "" for finding in verdict.findings)
    seconds = sum(verdict.stats.seconds.values())
    html = escape(page([Claim("", verdict, seconds, drawings)], "Verdict"))
    style = f"width: 100%; height: {_HEIGHT}px; border: 0"
    return f'<iframe style="{style}" title="{verdict.status}" srcdoc="{html}"></iframe>'
