"""The code blocks of a page, and how they are run.

The blocks of a page run in order and share one namespace and one folder:

- ``python`` runs; a ``text`` block directly after it is what it prints;
- ``console`` runs each line that starts with ``$``; the lines after it are what it prints, where a line ``...`` stands
  for any lines and ``...`` at the end of a line for the rest of it, and times are not compared;
- a ``{code-block}`` with a ``:caption:`` is a file of that name, and so is a block that begins with ``# name.py``;
- ``sh`` holds targets of the Makefile, which must exist (running them here would not end);
- a block with another ``{directive}`` belongs to Sphinx;
- every other block must be ``text`` (a figure), ``toml`` or ``json`` (a fragment).
"""

from __future__ import annotations

import io
import linecache
import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from rewright.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(?P<language>\{code-block\} \w+|\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_CAPTION = re.compile(r"\A:caption: (?P<name>\S+)\n\n")
_NAME = re.compile(r"\A# (?P<name>\w+\.py)\n")
_TERMINAL = {"NO_COLOR": "1", "COLUMNS": "100"}
_SECONDS = re.compile(r"\d[\d,]*(\.\d+)? ?s\b")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, text, first line, the file it is written to, and whether it follows at once."""

    language: str
    text: str
    line: int
    file: str
    follows: bool


def prose(page: Path) -> list[tuple[int, str]]:
    """The lines of a page that are in no block and no table, with their numbers."""
    found: list[tuple[int, str]] = []
    is_inside = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        is_fence = line.lstrip().startswith("```")
        is_inside ^= is_fence
        if not (is_inside or is_fence or line.startswith("|")):
            found.append((number, line))
    return found


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text, found, end = page.read_text(), list[Block](), 0
    for match in _FENCE.finditer(text):
        language = match["language"].removeprefix("{code-block} ")
        caption = _CAPTION.match(match["body"])
        body = match["body"][caption.end() :] if caption else match["body"]
        caption = caption or _NAME.match(body)
        line = text.count("\n", 0, match.start()) + 2
        follows = not text[end : match.start()].strip()
        found.append(Block(language, body, line, caption["name"] if caption else "", follows))
        end = match.end()
    return found


def run_page(page: Path, folder: Path) -> None:
    """Run the blocks of a page in a folder; raises AssertionError where one prints something else."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    before, printed = "", ""
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.file:
            (folder / block.file).write_text(block.text)
        elif block.language == "python":
            printed = run_python(block, where, namespace)
        elif block.language == "console":
            run_console(block, where, folder)
        elif block.language == "sh":
            check_targets(block, where)
        elif block.language == "text" and before == "python" and block.follows:
            assert printed == block.text, f"{where}: the block above prints\n{printed}"
        else:
            assert block.language in ("text", "toml", "json"), (
                f"{where}: a {block.language} block is not run by anything"
            )
        before = block.language if not block.file else ""


def run_python(block: Block, where: str, namespace: dict[str, Any]) -> str:
    """Run a block and return what it prints."""
    name = f"<{where}>"
    linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
    stream = io.StringIO()
    with redirect_stdout(stream):
        exec(compile(block.text, name, "exec"), namespace)
    return stream.getvalue()


def run_console(block: Block, where: str, folder: Path) -> None:
    """Run the commands of a block and compare what they print."""
    for command, expected in commands(block.text):
        words = shlex.split(command)
        # A process of its own would import PyTorch once more, which takes longer than most commands.
        known = words[:1] == ["rewright"] and words[1] not in ("demo", "env", "optimize")
        here = known and not set(command) & set(";|&>$")
        printed = run_here(words[1:], folder) if here else run_outside(command, folder)
        assert matches(expected, printed), f"{where}: $ {command} prints\n{printed}"


def run_outside(command: str, folder: Path) -> str:
    """What a command of the shell prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | _TERMINAL | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return finished.stdout


def run_here(arguments: list[str], folder: Path) -> str:
    """What ``rewright`` prints, run in this process; the modules that it imports from the folder are forgotten."""
    stream = io.StringIO()
    with (
        chdir(folder),
        mock.patch.dict(os.environ, _TERMINAL),
        mock.patch.object(sys, "path", list(sys.path)),
        redirect_stdout(stream),
        redirect_stderr(stream),
    ):
        run(arguments)
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]
    return stream.getvalue()


def check_targets(block: Block, where: str) -> None:
    """Every line is ``make`` and a target that the Makefile has."""
    makefile = (ROOT / "Makefile").read_text()
    for line in block.text.splitlines():
        target = re.fullmatch(r"make ([\w-]+)( +#.*)?", line)
        assert target, f"{where}: {line} is no target"
        assert re.search(rf"^(.+ )?{target[1]}( .+)?:", makefile, re.MULTILINE), f"{where}: there is no {line}"


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output below it."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2].rstrip("\n")) for part in parts]


def matches(expected: str, printed: str) -> bool:
    """Whether an output is the expected one, times aside; ``...`` stands for any lines, or for the rest of a line."""
    pattern = "\n".join(_line_pattern(line) for line in _SECONDS.sub("N s", expected).split("\n"))
    return re.fullmatch(pattern, _SECONDS.sub("N s", printed).rstrip("\n")) is not None


def _line_pattern(line: str) -> str:
    if line == "...":
        return "(?s:.*)"
    return re.escape(line[:-3]) + "[^\n]*" if line.endswith("...") else re.escape(line)
