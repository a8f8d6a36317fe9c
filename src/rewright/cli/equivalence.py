"""``rewright equiv``: two implementations of one model, proved equal or shown to differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rewright.cli.commands import STATUS, Json, Mesh, Symbolic, Watch, options, save
from rewright.cli.programs import Source, check_target
from rewright.cli.progress import Progress
from rewright.cli.relations import read_map
from rewright.cli.userfile import find_function
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.proof.container import check_name
from rewright.report import document, print_verdict

if TYPE_CHECKING:
    from rewright.equiv import Equivalence

_CHANGED = 2


def equiv(
    left: Annotated[str, typer.Argument(help="A graph file, or module.py:function.")],
    right: Annotated[str, typer.Argument(help="The other program; with --mesh, the programs of all ranks.")],
    mesh: Mesh = None,
    relations: Annotated[Path | None, typer.Option(metavar="TOML", help="How weights are made of each other.")] = None,
    symbolic: Symbolic = None,
    budget: Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after this long.")] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the proof to this .json.gz.")] = None,
    lemmas: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep what was proved in this .json.")] = None,
    config_sweep: Annotated[bool, typer.Option("--config-sweep", help="Change one field at a time.")] = False,
    watch: Watch = False,
    as_json: Json = False,
) -> int:
    """Prove or refute that two implementations are equal.

    Exit status: 0 proved, 1 refuted, 2 unknown, 3 usage or input error.
    """
    assert not watch, "the command line runs itself again and again"
    if budget is not None and not budget > 0:
        raise RewrightError(f"--budget {budget:g} is no time; give a number of seconds above zero")
    for path in (certificate, lemmas):
        if path is not None:
            check_target(path)
    if certificate is not None:
        check_name(certificate)
    given = read_map(relations) if relations is not None else {}
    progress = Progress()
    source = options(progress, mesh, False, symbolic, 1)
    source.check_options([left, right])
    if config_sweep:
        return _sweep(source, left, right, as_json)
    first = source.sequential(left)
    second = source.distributed([right]) if mesh is not None else source.sequential(right)
    from rewright.equiv import Prover
    from rewright.equiv import equiv as run_equiv

    prover = _prover(lemmas)
    with progress.phase("equiv", f"comparing {len(first):,} nodes"):
        known = source.tables(left), source.tables(right)
        verdict = run_equiv(first, second, known, given or None, budget, prover=prover)
    written = save(verdict, certificate, progress) if certificate is not None else None
    if lemmas is not None and isinstance(prover, Prover):
        from rewright.equiv.lemmas.book import write_book

        write_book(lemmas, verdict.rules)
    _report(verdict, as_json, written)
    return STATUS[verdict.status]


def _prover(lemmas: Path | None) -> Any:
    from rewright.equiv import Prover
    from rewright.equiv.lemmas.book import read_book

    return read_book(lemmas) if lemmas is not None and lemmas.is_file() else Prover()


def _report(verdict: Equivalence, as_json: bool, certificate: Path | None) -> None:
    if as_json:
        found = document(verdict, certificate)
        found["weight_map"] = list(verdict.equations)
        found["lemmas"] = [
            {
                "name": lemma.name,
                "statement": lemma.statement,
                "evidence": lemma.evidence,
                "key": lemma.key,
                "places": [list(p) for p in lemma.places],
            }
            for lemma in verdict.lemmas
        ]
        found["rules"] = [
            {
                "name": rule.name,
                "statement": rule.statement,
                "evidence": rule.evidence,
                "known": rule.earlier,
                "lemmas": [lemma.name for lemma in rule.lemmas],
            }
            for rule in verdict.rules
        ]
        sys.stdout.write(json.dumps(found, indent=2, allow_nan=False) + "\n")
        return
    console = Console()
    print_verdict(verdict, console, sides=("left", "right"))
    if verdict.equations:
        console.print("\n[bold]weight map[/bold]")
        for line in verdict.equations:
            console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    if certificate is not None:
        console.print(f"certificate: {certificate}", soft_wrap=True, highlight=False, markup=False)


# --- one field of the configuration at a time


def _sweep(source: Source, left: str, right: str, as_json: bool) -> int:
    """A table of which fields of a configuration move which side; status 1 where a field moves one side only."""
    sides = [find_function(text) for text in (left, right)]
    fields = {name: value for side in sides for name, value in side.fields().items()}
    if not fields:
        raise RewrightError(
            f"{left} and {right} have no parameters with a default; a sweep changes these, one at a time"
        )
    before = [digest(_capture(source, side, {})) for side in sides]
    rows: list[dict[str, object]] = []
    for name, value in fields.items():
        other = _other(value)
        if other is None:
            continue
        moved = [_moves(source, side, {name: other}, own) for side, own in zip(sides, before, strict=True)]
        rows.append({"field": name, "value": value, "changed": other, "left": moved[0], "right": moved[1]})
    _print_rows(rows, as_json)
    return int(any(row["left"] != row["right"] for row in rows))


def _other(value: object) -> object | None:
    """Another value of a field."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * _CHANGED if value else type(value)(1)
    return None


def _capture(source: Source, side: Any, fields: Mapping[str, object]) -> Any:
    from rewright.frontends.torch.capture import capture

    module, args, kwargs = side(**fields)
    return capture(module, args, kwargs, dynamic=source.symbols)


def _moves(source: Source, side: Any, fields: Mapping[str, object], before: str) -> str:
    """Whether a program changes with a field: yes, no, or that it has no such field or cannot be captured with it."""
    if not set(fields) <= set(side.fields()):
        return "no such field"
    try:
        return "moves" if digest(_capture(source, side, fields)) != before else "stays"
    except RewrightError:
        return "fails"


def _print_rows(rows: list[dict[str, object]], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"schema": 1, "fields": rows}, indent=2) + "\n")
        return
    console = Console()
    for row in [{"field": "field", "changed": "changed to", "left": "left", "right": "right"}, *rows]:
        odd = "" if row["left"] == row["right"] or row["field"] == "field" else "   one side only"
        line = f"{row['field']!s:24} {row['changed']!s:12} {row['left']!s:14} {row['right']!s:14}{odd}"
        console.print(line.rstrip(), soft_wrap=True, highlight=False, markup=False)
