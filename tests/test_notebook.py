"""Verdicts in a notebook: the HTML report in a frame, registered when rewright is imported."""

from __future__ import annotations

import subprocess
import sys
from html import unescape

from IPython.core.interactiveshell import InteractiveShell

from rewright import notebook
from rewright.refine import refine
from tests.refine.stacks import stack


def test_a_verdict_is_shown_as_its_report() -> None:
    shell = InteractiveShell.instance()
    notebook.register()
    verdict = refine(*stack(2, dropped=[0]))
    data, _ = shell.display_formatter.format(verdict)
    html = data["text/html"]
    assert html.startswith("<iframe")
    inner = unescape(html.partition('srcdoc="')[2].rpartition('"')[0])
    assert "missing reduction" in inner
    assert inner.count("<svg") == 2
    assert "<iframe" not in inner
    InteractiveShell.clear_instance()


def test_without_a_notebook_nothing_is_registered() -> None:
    code = "import sys, rewright; assert 'rewright.notebook' not in sys.modules and 'IPython' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_rewright_in_a_notebook_registers() -> None:
    code = (
        "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance(); "
        "import rewright; "
        "found = shell.display_formatter.formatters['text/html'].lookup_by_type('rewright.refine.verdict.Verdict'); "
        "assert found.__module__ == 'rewright.notebook'"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
