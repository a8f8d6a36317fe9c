"""Capture of programs that are written in Python: which framework a program is of, and its frontend."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, cast

from rewright.ir.errors import CaptureError, RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram

Framework = Literal["torch", "jax"]
_ROOTS: dict[str, Framework] = {"torch": "torch", "jax": "jax", "jaxlib": "jax"}
_DEPTH = 4
"""Functions that are called by functions that are called, and so on, are read for what they name so often."""


def capture(
    program: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    backward: bool = False,
    dynamic: Any = None,
    run: bool = False,
    guards_queries: bool = False,
    opaque: bool = False,
    validate: bool = True,
    framework: Framework | None = None,
) -> Graph:
    """One sequential program as a graph.

    ``program`` is a torch module or function, an ExportedProgram, a ``.pt2`` file, an fx.GraphModule, or a JAX
    function (under ``jit`` or not) on arrays or ``jax.ShapeDtypeStruct``. No weight is read. Inputs are parameters and
    buffers by qualified name, and arguments by name and path (``input_ids``, ``params.w``); outputs are ``output``, or
    the path in what is returned (``loss``, ``output.0``).

    With ``backward`` the gradients are outputs too, as ``grad:<input>``: of torch's parameters, or of the first
    argument of a JAX function of one number. ``dynamic`` keeps sizes of torch programs symbolic:
    ``{"input_ids": {0: "batch", 1: "sequence"}}``. ``framework`` is told by the program where it is not given. Raises
    CaptureError and UnsupportedOperator.

    With ``run`` a torch program runs once on its real tensors and is recorded as it goes, for programs that look at
    values; it is then captured for inputs that give these values, and the graph says under assumptions which they are.

    ``guards_queries`` says what the attention of a torch program gives a query that a mask keeps all keys from: zero,
    as PyTorch's kernels do, where it is set, and else what ``softmax`` written out gives, which is no number. So it is
    with ``logsumexp`` of what is infinite, which is infinite, and written out no number. With ``opaque`` an operator
    of a torch program that is not supported is an opaque call, where all that it does is to compute its results.

    With ``validate`` the capture is checked: every distinct call is run by PyTorch beside what it was lowered to. A
    difference is a CaptureError that names the call and its line. What was checked, and what could not be, is kept with
    the graph and told with verdicts.
    """
    which = framework or framework_of(program, (args, kwargs))
    options = _options(which, backward, dynamic) | {"validate": validate}
    options |= _running(which, "run", run, run)
    if which == "torch":  # JAX has attention written out
        options |= {"guards_queries": guards_queries, "opaque": opaque}
    return _frontend(which).capture(program, args, kwargs, **options)


def capture_ranks(
    build: Callable[[Any], Any],
    mesh: Mapping[str, int],
    *,
    backward: bool = False,
    dynamic: Any = None,
    jobs: int = 1,
    ranks: str = "traced",
    all_ranks: bool = False,
    validate: bool = True,
    framework: Framework | None = None,
) -> RankProgram:
    """The programs of all ranks of a mesh, with how they hold inputs and outputs.

    ``build(mesh)`` returns ``(program, args)`` or ``(program, args, kwargs)``. For torch it is called once per rank
    with a ``DeviceMesh`` under which nothing communicates, in ``jobs`` processes, and placements are read off DTensors.
    For JAX it is called once with a ``jax.sharding.Mesh`` of virtual CPU devices, the program is what XLA's SPMD
    partitioner makes of a function under ``jit`` with shardings or of a ``shard_map``, and placements are read off the
    shardings. The rest is as in :func:`capture`. Raises CaptureError and UnsupportedOperator.

    Of a torch mesh of more than 16 ranks some are captured, and the rest is taken to be like them but for numbers that
    are affine in mesh coordinates; the verdict's assumptions say so. ``all_ranks`` captures every one.

    ``ranks="threads"`` runs all ranks of a torch program together instead, on the real tensors that ``build`` returns,
    and records what they do: for programs that look at values (token counts), pipeline schedules, and gradient
    reducers. ``"processes"`` forks one process per rank, for code that keeps its rank in a global. Such a capture is
    of one run, and the verdict's assumptions name the values that the program looked at.
    """
    which = framework or framework_of(build, ())
    options = _options(which, backward, dynamic) | {"validate": validate}
    options |= {"jobs": jobs, "all_ranks": all_ranks} if which == "torch" else {}
    options |= _running(which, "ranks", ranks, ranks != "traced")
    try:
        return _frontend(which).capture_ranks(build, mesh, **options)
    except CaptureError as error:
        if which == framework or not any(text in str(error) for text in ("jax", "std::bad_cast")):
            raise
        other = "torch" if which == "jax" else "jax"
        raise CaptureError(f"{error}; if it is a program of {other}, say framework={other!r}") from None


def framework_of(program: Any, arguments: Any) -> Framework:
    """Which framework a program is of: by its type, its arguments, and the names that a function uses.

    Raises CaptureError where a function uses both.
    """
    for value in (program, *_leaves(arguments)):
        found = _ROOTS.get(type(value).__module__.split(".")[0])
        if found is not None:
            return found
    used = _used(program)
    if len(used) > 1:
        name = getattr(program, "__name__", "the program")
        raise CaptureError(f"{name} uses torch and jax; say which of them it is a program of: framework='jax'")
    if used:
        return used.pop()
    return "jax" if "jax" in sys.modules and "torch" not in sys.modules else "torch"


def _leaves(value: Any) -> Iterator[Any]:
    """The values in nested dictionaries, lists and tuples."""
    if isinstance(value, Mapping):
        value = tuple(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        for part in cast("Sequence[Any]", value):
            yield from _leaves(part)
    else:
        yield value


def _used(program: Any) -> set[Framework]:
    """The frameworks among what a function names, and what functions of those names do, else among its module's."""
    functions, seen = [found] if (found := _function(program)) is not None else [], set[CodeType]()
    modules = [v for f in functions for v in f.__globals__.values() if isinstance(v, ModuleType)]
    for depth in range(_DEPTH):
        named = [value for function in functions for value in _values(function)]
        roots = _roots(named)
        if len(roots) == 1 or (roots and not depth):  # what others wrote for both frameworks tells nothing
            return roots
        seen |= {function.__code__ for function in functions}
        functions = [f for value in named if (f := _function(value)) is not None and f.__code__ not in seen]
    return _roots(modules)


def _function(value: Any) -> FunctionType | None:
    """The Python function that is called by calling a value; None where there is none."""
    value = inspect.unwrap(value) if callable(value) else value
    while isinstance(value, partial):
        value = cast("partial[Any]", value).func
    if not isinstance(value, FunctionType | MethodType | type) and not inspect.isbuiltin(value):
        value = vars(cast("type[object]", type(value))).get("__call__", value)
    value = getattr(value, "__func__", value)
    return value if isinstance(value, FunctionType) else None


def _values(function: FunctionType) -> list[object]:
    """What a function names that has a value."""
    namespace = function.__globals__
    named: list[object] = [namespace[name] for name in _names(function.__code__) if name in namespace]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable that has no value yet
            named.append(cell.cell_contents)
    return named


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _roots(values: Sequence[Any]) -> set[Framework]:
    found: set[Framework] = set()
    for value in values:
        own = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for name in (own, type(value).__module__):
            root = _ROOTS.get(name.split(".")[0]) if isinstance(name, str) else None
            if root is not None:
                found.add(root)
    return found


def _options(which: Framework, backward: bool, dynamic: Any) -> dict[str, Any]:
    if which == "torch":
        return {"backward": backward, "dynamic": dynamic}
    if dynamic:
        raise RewrightError("symbolic sizes are for torch programs; give arguments of a JAX function numbers")
    return {"backward": backward}


def _running(which: Framework, name: str, value: object, given: bool) -> dict[str, object]:
    """The option to run a program, where it is given; raises CaptureError for JAX, whose programs are compiled."""
    if given and which != "torch":
        raise CaptureError(f"{name}={value!r} is for torch programs; leave it out for JAX, whose programs are compiled")
    return {name: value} if given else {}


def _frontend(which: Framework) -> Any:
    try:
        return import_module(f"rewright.frontends.{which}")
    except ModuleNotFoundError as error:
        raise RewrightError(f"capture needs the package {error.name}; pip install 'rewright[{which}]'") from None
