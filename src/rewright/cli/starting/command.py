"""``rewright init``: begin the claims of a repository."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Annotated

import typer
from rich.console import Console

from rewright.cli.starting.guessing import CHECK
from rewright.cli.starting.kinds import CLAIMS, KINDS, begin, kind_of
from rewright.cli.starting.reading import read_repository
from rewright.ir.errors import RewrightError


def init(
    folder: Annotated[Path, typer.Argument(help="The folder of the repository.")] = Path(),
    kind: Annotated[str | None, typer.Option(metavar="KIND", help=f"One of {', '.join(KINDS)}.")] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="The class or function to compare.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> int:
    """Begin a claim: two programs, their mesh, and a test.

    Nothing of the repository is run. What could not be read is guessed, and marked.

    Exit status: 0 written, 3 input error.
    """
    if not folder.is_dir():
        raise RewrightError(f"there is no folder {folder}; name the one of your model")
    if kind is not None and kind not in KINDS:
        raise RewrightError(f"--kind {kind} is none; use one of {', '.join(KINDS)}")
    repository = read_repository(folder.resolve())
    begun = begin(repository, kind or kind_of(repository), model)
    about = f"What {CLAIMS}.py claims, as a test."
    files = {
        f"{CLAIMS}.py": begun.claims,
        f"test_{CLAIMS}.py": Template(begun.test).substitute(about=about, claims=CLAIMS),
    }
    if there := [name for name in files if (folder / name).exists() and not force]:
        raise RewrightError(f"{folder / there[0]} is there already; --force overwrites it")
    for name, text in files.items():
        try:
            (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise RewrightError(f"cannot write {folder / name}: {error.strerror}; name another folder") from None
    out = Console(soft_wrap=True, highlight=False, markup=False)
    guesses = begun.claims.count(CHECK)
    out.print(f"{begun.kind}: {begun.found}")
    out.print(f"wrote {folder / f'{CLAIMS}.py'}" + (f"; {guesses} lines in it end in 'check'" if guesses else ""))
    out.print(f"wrote {folder / f'test_{CLAIMS}.py'}")
    place = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    out.print(f"next: {place}{begun.command or f'pytest test_{CLAIMS}.py'}")
    return 0
