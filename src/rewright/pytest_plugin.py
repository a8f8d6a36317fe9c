"""Claims as tests: ``assert_refines``, ``assert_equivalent``, ``assert_kernel``, as functions and fixtures of pytest.

pytest loads this module at every start where rewright is installed, so nothing heavy is imported before it is used.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import pytest

if TYPE_CHECKING:
    from rewright.ir.graph import Graph
    from rewright.ir.placement import RankProgram
    from rewright.refine.relations.given import Given
    from rewright.refine.verdict import Verdict

Program = Union["Graph", str, Path, "tuple[Any, ...]"]
"""A graph, a saved one, or a module (or function) with its arguments, which is captured."""
Ranks = Union["RankProgram", "Sequence[Graph]", str, Path, Callable[[Any], Any]]
"""Programs of all ranks, saved ones, or a function of the mesh that builds them."""


class NotProved(AssertionError):
    """A claim that was not proved; the message is the report, and ``verdict`` the verdict."""

    def __init__(self, report: str, verdict: Any) -> None:
        super().__init__(report)
        self.verdict = verdict


def assert_refines(
    sequential: Program,
    distributed: Ranks,
    *,
    mesh: Mapping[str, int] | None = None,
    relations: Given | None = None,
    expect: Given | None = None,
    backward: bool = False,
    budget: float | None = None,
    audit: bool | None = None,
    allow_vacuous: bool = False,
    require_collectives: bool = False,
) -> Verdict:
    """Assert that the ranks compute what the sequential program computes, and return the verdict.

    Args:
        sequential: a graph, a file of one, or ``(module, args)`` or ``(module, args, kwargs)``.
        distributed: a RankProgram, the graphs of all ranks, a file of them, or a function of the mesh that returns
            ``(module, args)``.
        mesh: axes and sizes, for a function.
        relations: how the ranks hold inputs, as for ``rewright.refine``.
        expect: how they should hold outputs.
        backward: capture the gradients too.
        budget: seconds after which the claim fails as unknown.
        audit: have the independent checker confirm the proof, which it does for small programs anyway.
        allow_vacuous: take a proof that says nothing of a plan as one.
        require_collectives: take a proof about ranks that call no collective for one that says nothing.

    Raises NotProved, with the report of ``rewright refine`` as its message, for every other verdict than *proved*,
    and RewrightError for programs that cannot be compared.
    """
    __tracebackhide__ = True
    from rewright.refine import refine

    left = _program(sequential, backward)
    ranks = _ranks(distributed, mesh, backward)
    asked = partial(refine, allow_vacuous=allow_vacuous, require_collectives=require_collectives)
    verdict = asked(left, ranks, relations, expect, budget, audit=audit)
    if verdict.status != "proved":
        raise NotProved(_report(verdict), verdict)
    return verdict


def assert_equivalent(
    left: Program,
    right: Program,
    *,
    inputs: Any = None,
    relations: Given | None = None,
    budget: float | None = None,
) -> Any:
    """Assert that two implementations compute the same function, and return the verdict of ``rewright.equiv``.

    Raises NotProved where the verdict is not ``proved``, and RewrightError for programs that cannot be compared.
    """
    __tracebackhide__ = True
    import rewright
    from rewright.ir.errors import RewrightError

    compare = getattr(rewright, "equiv", None)
    if compare is None:
        raise RewrightError("this version of rewright has no equiv; install one that has, to compare implementations")
    verdict = compare(_program(left, False), _program(right, False), inputs=inputs, relations=relations, budget=budget)
    if verdict.status != "proved":
        raise NotProved(_report(verdict), verdict)
    return verdict


def assert_kernel(
    reference: Callable[..., Any],
    launcher: Callable[..., Any],
    args: Sequence[Any],
    *,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    budget: float | None = None,
    given: Callable[..., Any] | None = None,
) -> Any:
    """Assert that a function that launches Triton kernels computes its reference; returns the verdict.

    The arguments are those of ``rewright.kernel``. Raises NotProved where the verdict is not ``proved``, and
    RewrightError where Triton is not installed or the reference cannot be captured.
    """
    __tracebackhide__ = True
    from rewright.kernel.engine import kernel

    verdict = kernel(reference, launcher, args, dynamic=dynamic, budget=budget, given=given)
    if verdict.status != "proved":
        raise NotProved(_report(verdict), verdict)
    return verdict


def _program(given: Program, backward: bool) -> Graph:
    from rewright.frontends.files import load
    from rewright.ir.errors import RewrightError
    from rewright.ir.graph import Graph

    if isinstance(given, tuple):
        from rewright.frontends.capture import capture

        if len(given) not in (2, 3):
            raise RewrightError(f"a program to capture has {len(given)} parts; give (module, args) or with kwargs")
        return capture(*given, backward=backward)
    found = load(given) if isinstance(given, str | Path) else given
    if not isinstance(found, Graph):
        raise RewrightError("the sequential program is one of several ranks; give them as the distributed one")
    return found


def _ranks(given: Ranks, mesh: Mapping[str, int] | None, backward: bool) -> RankProgram | Sequence[Graph]:
    from rewright.frontends.files import load
    from rewright.ir.errors import RewrightError
    from rewright.ir.placement import RankProgram

    if isinstance(given, str | Path):
        found = load(given)
        return found if isinstance(found, RankProgram) else [found]
    if callable(given):
        if mesh is None:
            raise RewrightError('a function of all ranks needs a mesh; give one, for example mesh={"tp": 8}')
        from rewright.frontends.capture import capture_ranks

        return capture_ranks(given, mesh=dict(mesh), backward=backward)
    return given


def _report(verdict: Any) -> str:
    """The report as it stands in a terminal, without colour."""
    from rich.console import Console

    from rewright.refine.verdict import Verdict
    from rewright.report import print_verdict

    if not isinstance(verdict, Verdict):
        return str(verdict)
    stream = io.StringIO()
    print_verdict(verdict, Console(file=stream, width=120, color_system=None))
    return stream.getvalue().rstrip()


@pytest.fixture(name="assert_refines", scope="session")
def assert_refines_fixture() -> Callable[..., Any]:
    """:func:`assert_refines`, for tests that import nothing."""
    return assert_refines


@pytest.fixture(name="assert_equivalent", scope="session")
def assert_equivalent_fixture() -> Callable[..., Any]:
    """:func:`assert_equivalent`, for tests that import nothing."""
    return assert_equivalent


@pytest.fixture(name="assert_kernel", scope="session")
def assert_kernel_fixture() -> Callable[..., Any]:
    """:func:`assert_kernel`, for tests that import nothing."""
    return assert_kernel
