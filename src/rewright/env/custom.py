"""A user's own rewrites: any function from program to program is a pass, whose sites are split, tested and chosen."""

from __future__ import annotations

from collections.abc import Callable

from rewright.env.dryrun import DryRun, dry_change
from rewright.env.episode import Source
from rewright.env.hlo.program import Program
from rewright.env.module import HloModule
from rewright.env.session import Change, Session
from rewright.ir.errors import RewrightError

Rewrite = Callable[[Program], Program]


def dry_custom(session: Session, module: HloModule, rewrite: Rewrite, name: str, tested: bool = True) -> DryRun:
    """What a function would do to a module, as alternatives; each is tested, and a wrong one is marked.

    Raises RewrightError where the function fails, or makes what is no module.
    """
    base = session.canonical(module)
    try:
        program = rewrite(base.program)
    except RewrightError:
        raise
    except Exception as error:
        raise RewrightError(f"the rewrite {name!r:.60} fails ({type(error).__name__}: {error!s:.80})") from None
    after = base.replaced(program)
    session.fingerprint(after)
    return dry_change(session, Change(base, after, name, "", 0), tested=tested)


def source(rewrite: Rewrite, name: str) -> Source:
    """The rewrite as the source of an episode's alternatives, in place of XLA's passes."""
    return lambda session, module: dry_custom(session, module, rewrite, name)
