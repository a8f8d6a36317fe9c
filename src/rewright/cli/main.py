"""The ``rewright`` command: parses arguments, runs a command, and turns errors into one line and an exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import cast

import typer
from rich.console import Console
from rich.text import Text

from rewright.cli import commands, env_bench, equivalence
from rewright.cli.env import build_env_app
from rewright.cli.optimize import optimize
from rewright.cli.rules import build_rules_app
from rewright.ir.errors import RewrightError

PROVED, REFUTED, UNKNOWN, USAGE = 0, 1, 2, 3
_INTERRUPTED = 130

_UsageError: type[Exception] = next(
    cast("type[Exception]", kind) for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What typer raises for bad arguments; it has no public name for the whole family."""


def build_app() -> typer.Typer:
    """The application with its commands."""
    app = typer.Typer(
        name="rewright",
        help="Proves that rewritten tensor programs compute what the original computes.",
        add_completion=False,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command("demo")(commands.demo)
    app.command("refine")(commands.refine)
    app.command("optimize")(optimize)
    app.command("equiv")(equivalence.equiv)
    app.command("audit")(commands.audit)
    app.command("capture")(commands.capture)
    app.command("show")(commands.show)
    app.add_typer(build_rules_app(), name="rules")
    app.add_typer(build_env_app(env_bench.bench), name="env")
    return app


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status."""
    try:
        status = build_app()(args=list(arguments) or ["--help"], prog_name="rewright", standalone_mode=False)
    except RewrightError as error:
        return _fail(str(error))
    except _UsageError as error:
        return _fail(f"{_message(error)}; see rewright --help")
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone: nothing more can be said, and that is no error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROVED
    except Exception as error:  # not status 1, which says that a program is refuted
        traceback.print_exc()
        return _fail(f"this is a bug of rewright ({type(error).__name__}); report it with the lines above")
    return status if isinstance(status, int) else PROVED


def main() -> None:
    """The entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def _message(error: Exception) -> str:
    formatted = getattr(error, "format_message", None)
    return (str(formatted()) if callable(formatted) else str(error)).strip().rstrip(".")


def _fail(message: str, status: int = USAGE) -> int:
    line = Text("rewright: ", "bold red").append(" ".join(message.split()), "not bold default")
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)
    return status
