"""Rules of the house that no linter knows: sizes of files and functions, what the wheel holds, pinned versions."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from rewright import ops

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BESIDE = {"bench", "tests", "zoo"}
"""Packages of a checkout that are not installed."""
ENTRANCES = {
    "rewright.env.compat.pipelines",
    "rewright.env.listing",
    "rewright.frontends.torch.without_cuda",
    "rewright.kernel.random",
    "rewright.optimize.printing.wgsl.renderer",
    "rewright.pytest_plugin",
}
"""Modules that users, the command, pytest and PyTorch import, by documentation or as entry points.

The renderer of WGSL is one, although nothing here runs what it writes.
"""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


def test_nearly_all_functions_fit_a_screen() -> None:
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    assert sum(length < 35 for length in lengths) >= 0.95 * len(lengths)


def test_the_wheel_holds_the_package_alone() -> None:
    """Models to try, injected bugs and benchmarks are folders of the checkout."""
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/rewright"]}
    names = {part for path in SOURCES for part in path.relative_to(ROOT / "src").with_suffix("").parts}
    assert names.isdisjoint(BESIDE | {"mutants", "benchmarks"})


@cache
def imports(path: Path) -> set[str]:
    """The modules that a file imports, by their full names, those named in strings included."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("rewright."):
            found.add(node.value.partition(":")[0])
    return found


def test_the_package_imports_nothing_that_stays_in_the_checkout() -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    forbidding = [own for own in contracts if set(own.get("forbidden_modules", ())) == BESIDE]
    assert [own["source_modules"] for own in forbidding] == [["rewright"]]
    assert [path for path in SOURCES if BESIDE & {name.partition(".")[0] for name in imports(path)}] == []


def test_every_module_is_imported_by_another_or_an_entrance() -> None:
    used = {name for path in SOURCES for name in imports(path)}
    modules = {".".join(p.relative_to(ROOT / "src").with_suffix("").parts) for p in SOURCES if p.stem[:2] != "__"}
    assert modules - used == ENTRANCES


def test_every_dependency_is_pinned() -> None:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for name, group in extras.items() if name != "gpu" for item in group)]
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    names = [re.split(r"[<>=;\[ ]", requirement)[0].lower() for requirement in wanted]
    assert [name for name in names if name not in pinned] == []


def test_continuous_integration_runs_what_a_user_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in script if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make test", "make long"]


def operators_listed(path: Path) -> int:
    """Tuples and unions of three or more operators in a file; families of operators are no list."""
    operators = {operator.__name__ for operator in ops.REGISTRY.values()}
    tree, nested, found = parsed(path), set[int](), 0

    def parts(node: ast.expr) -> list[ast.expr]:
        is_union = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
        return [*parts(node.left), *parts(node.right)] if is_union else [node]

    def is_operator(node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops":
            return node.attr in operators
        return isinstance(node, ast.Name) and node.id in operators

    for node in ast.walk(tree):
        if id(node) in nested:
            continue
        listed = node.elts if isinstance(node, (ast.Tuple, ast.Set, ast.List)) else []
        if isinstance(node, ast.BinOp):
            listed = parts(node)
            nested |= {id(inner) for inner in ast.walk(node)}
        found += sum(map(is_operator, listed)) >= 3
    return found


def operators_named(path: Path) -> set[str]:
    """The operators that a file asks about by class; those that it only makes do not count, nor do families."""
    operators = {operator.__name__ for operator in ops.REGISTRY.values()}
    made = {id(node.func) for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)}
    return {
        node.attr
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ops"
        if node.attr in operators and id(node) not in made
    }


MANY, DISPATCHING = 8, 1
"""How many modules may ask about how many operators each, outside of ``ops`` and front ends; fewer is better."""


def test_few_modules_ask_about_many_operators() -> None:
    """What a module has to know of an operator belongs into a facet of the operator."""
    package = ROOT / "src" / "rewright"
    others = [path for path in SOURCES if path.relative_to(package).parts[0] not in LISTING]
    found = [path.relative_to(package).as_posix() for path in others if len(operators_named(path)) >= MANY]
    assert len(found) <= DISPATCHING, found


LISTING = ("ops", "frontends")
"""The packages that say what operators are, and which operators those of other programs are."""
PACKAGES = sorted({path.relative_to(ROOT / "src" / "rewright").parts[0] for path in SOURCES} - {*LISTING})


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_lists_operators_anew(package: str) -> None:
    """What values may be, and what moves elements, the operators' classes know; lists of operators grow stale."""
    top = ROOT / "src" / "rewright" / package
    paths = [path for path in SOURCES if path == top or top in path.parents]
    assert sum(map(operators_listed, paths)) == 0


def assigned_from_outside(path: Path) -> list[str]:
    """The attributes that a file assigns of other objects than ``self``."""
    found: list[str] = []
    for node in ast.walk(parsed(path)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else targets
        places = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
        found += [ast.unparse(p) for p in places if isinstance(p, ast.Attribute) and ast.unparse(p.value) != "self"]
    return found


WITHOUT_MODES = ("analysis", "claims", "lifting")
"""The packages in which nobody sets an attribute of an object from outside; more is better."""


@pytest.mark.parametrize("package", WITHOUT_MODES)
def test_no_mode_is_set_from_outside(package: str) -> None:
    """What an object does is given when it is made, or is a scope of its own."""
    paths = [path for path in SOURCES if ROOT / "src" / "rewright" / package in path.parents]
    assert {path.name: found for path in paths if (found := assigned_from_outside(path))} == {}


MODULES = {
    ".".join(part for part in path.relative_to(ROOT / "src").with_suffix("").parts if part != "__init__"): path
    for path in SOURCES
}
CHAIN = 24
"""Modules that a chain of imports has at most."""


@cache
def needs(module: str) -> frozenset[str]:
    """The modules of the package that a module needs to be imported; those for annotations alone do not count."""
    found: set[str] = set()
    stack: list[ast.AST] = [parsed(MODULES[module])]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else node.module for name in named}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not is_for_types(node):
            stack += ast.iter_child_nodes(node)
    return frozenset(found & MODULES.keys())


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


@cache
def longest_chain(module: str) -> tuple[str, ...]:
    """The longest chain of imports that begins at a module."""
    return (module, *max(map(longest_chain, sorted(needs(module))), key=len, default=()))


def test_no_import_circle() -> None:
    left = {module: needs(module) for module in MODULES}
    while ready := {module for module, below in left.items() if not below & left.keys()}:
        left = {module: below for module, below in left.items() if module not in ready}
    assert left == {}, "what is left are the circles and what imports them"


def test_no_chain_of_imports_is_long() -> None:
    """The chain below a module is what has to be read, one after the other, before it is understood."""
    found = max(map(longest_chain, MODULES), key=len)
    assert len(found) <= CHAIN, "\n".join(found)
