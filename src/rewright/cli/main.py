"""The ``rewright`` command: parses arguments, runs a command, and turns errors into one line and an exit status."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.text import Text

from rewright import __version__
from rewright.cli.settings import settings
from rewright.cli.watching import WATCH, watch
from rewright.ir.errors import RewrightError

PROVED, REFUTED, UNKNOWN, USAGE = 0, 1, 2, 3
_INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
"""What a disk says that takes no more."""

_UsageError: type[Exception] = next(
    cast("type[Exception]", kind) for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What typer raises for bad arguments; it has no public name for the whole family."""


@dataclass(frozen=True)
class Verb:
    """A command: where it is defined, and the line that ``rewright --help`` has of it."""

    place: str
    about: str
    is_group: bool = False
    """Whether what is at the place builds an application of further commands."""


VERBS = {
    "demo": Verb("rewright.cli.commands:demo", "Prove a Llama over eight ranks, then refute a broken one."),
    "refine": Verb("rewright.cli.commands:refine", "Prove or refute that ranks compute what one program does."),
    "optimize": Verb("rewright.cli.optimize:optimize", "Find fused kernels for a program, and prove them right."),
    "equiv": Verb("rewright.cli.equivalence:equiv", "Prove or refute that two implementations are equal."),
    "kernel": Verb("rewright.cli.kernel:kernel", "Prove or refute that Triton kernels compute their reference."),
    "audit": Verb("rewright.cli.commands:audit", "Verify a certificate again, by the checker alone."),
    "capture": Verb("rewright.cli.commands:capture", "Save a program, or with a mesh those of all ranks."),
    "show": Verb("rewright.cli.commands:show", "Print a saved program, or draw programs around a failure."),
    "rules": Verb(
        "rewright.cli.rules:build_rules_app",
        "The rule library: list it, prove it, prove rules of your own.",
        is_group=True,
    ),
    "env": Verb(
        "rewright.cli.env:build_env_app", "Rewrites of an HLO module as alternatives to choose.", is_group=True
    ),
    "init": Verb("rewright.cli.starting.command:init", "Begin a claim: two programs, their mesh, and a test."),
    "doctor": Verb("rewright.cli.doctor:doctor", "Say what is installed here, and what each command still needs."),
}
"""The commands in the order of the help. What a command imports is imported when it is called."""
_WATCHED = ("refine", "equiv")
_TYPED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""The variables in which shells hand over the words to complete."""


def build_app(called: Collection[str] = tuple(VERBS)) -> typer.Typer:
    """The application; commands that are not among ``called`` have a line of help, and do nothing."""
    app = typer.Typer(
        name="rewright",
        help="Proves that rewritten tensor programs compute what the original computes.",
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before)
    for name, verb in VERBS.items():
        if name not in called:
            app.command(name, help=verb.about)(_nothing)
            continue
        found = _found(verb)
        if verb.is_group:
            app.add_typer(found(), name=name)
        else:
            app.command(name)(found)
    return app


def _found(verb: Verb) -> Any:
    """What is at the place of a command: its function, or what builds its application."""
    module, _, attribute = verb.place.partition(":")
    return getattr(import_module(module), attribute)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"rewright {__version__}")
        raise typer.Exit


def _before(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version, and exit.")
    ] = False,
) -> None:
    """The options before a command."""


def _nothing() -> None:
    """A command that is not called."""


def _words(arguments: Sequence[str]) -> set[str]:
    """What is called, or what a shell wants to complete."""
    first = next((text for text in arguments if not text.startswith("-")), "")
    return {first, *(word for name in _TYPED for word in os.environ.get(name, "").split())}


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status."""
    try:
        app = build_app(_words(arguments))
        verb = next((text for text in arguments if not text.startswith("-")), "")
        if WATCH in arguments and verb in _WATCHED and not {"--help", "-h"} & set(arguments):
            return watch(arguments)
        asks = verb in VERBS and not VERBS[verb].is_group and not {"--help", "-h"} & set(arguments)
        defaults = settings(_found(VERBS[verb]), verb, arguments) if asks else {}
        status = app(
            args=list(arguments) or ["--help"], prog_name="rewright", standalone_mode=False, default_map=defaults
        )
    except RewrightError as error:
        return _fail(str(error))
    except _UsageError as error:
        return _fail(f"{_message(error)}; see rewright --help")
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone: nothing more can be said, and that is no error of ours.
        _close_output()
        return PROVED
    except OSError as error:
        if error.errno not in _FULL:
            return _is_bug(error)
        _close_output()
        return _fail(f"cannot write {error.filename or 'the report'}: {error.strerror}; make room, or write elsewhere")
    except Exception as error:  # not status 1, which says that a program is refuted
        return _is_bug(error)
    if status == _INTERRUPTED:  # typer takes an interrupt for an exit, and says nothing
        return _fail("interrupted", _INTERRUPTED)
    return status if isinstance(status, int) else PROVED


def _is_bug(error: Exception) -> int:
    traceback.print_exception(error)
    return _fail(f"this is a bug of rewright ({type(error).__name__}); report it with the lines above")


def _close_output() -> None:
    """What is left to be printed goes nowhere, so that Python does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    formatted = getattr(error, "format_message", None)
    return (str(formatted()) if callable(formatted) else str(error)).strip().rstrip(".")


def _fail(message: str, status: int = USAGE) -> int:
    line = Text("rewright: ", "bold red").append(" ".join(message.split()), "not bold default")
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)
    return status
