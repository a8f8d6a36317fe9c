"""What a repository has, read from its source: nothing of it is run."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

MOST_FILES, MOST_BYTES = 2000, 1 << 20
"""So many files are read, none of which is larger."""
PLANS = frozenset({"parallelize_module", "fully_shard", "distribute_module", "distribute_tensor", "shard_map"})
"""Calls that spread a model over ranks."""
MODULES = frozenset({"Module", "LightningModule", "ModelMixin", "PreTrainedModel"})
"""Classes of modules that repositories begin with."""
_LEFT_OUT = frozenset({"build", "dist", "docs", "node_modules", "site-packages", "test", "tests", "__pycache__"})


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, or a field of a dataclass."""

    name: str
    annotation: str
    has_default: bool


@dataclass(frozen=True)
class Function:
    """A function at the top of a file."""

    file: Path
    name: str
    parameters: tuple[Parameter, ...]
    calls: frozenset[str]
    is_jitted: bool


@dataclass(frozen=True)
class Module:
    """A class, with what its ``__init__`` and its ``forward`` take."""

    file: Path
    name: str
    bases: tuple[str, ...]
    init: tuple[Parameter, ...]
    forward: tuple[Parameter, ...]
    uses: frozenset[str]
    """What its methods call."""
    fields: tuple[Parameter, ...] = ()
    """Annotated names of the class: of a dataclass, its fields."""
    layers: tuple[str, ...] = ()
    """The attributes that are linear layers."""


@dataclass
class Repository:
    """The names and imports of the files under a folder."""

    folder: Path
    imports: Counter[str] = field(default_factory=Counter[str])
    """How many files import each package."""
    modules: list[Module] = field(default_factory=list[Module])
    classes: dict[str, Module] = field(default_factory=dict[str, Module])
    """All classes by name."""
    functions: list[Function] = field(default_factory=list[Function])
    mesh: dict[str, int] = field(default_factory=dict[str, int])
    """The axes of the first mesh that is written out."""
    pretrained: list[str] = field(default_factory=list[str])
    """Names given to ``from_pretrained``."""
    transformers: list[str] = field(default_factory=list[str])
    """Classes of models that are imported from Transformers."""

    @property
    def plans(self) -> list[Function]:
        """The functions that spread a model, with the most steps first."""
        found = [f for f in self.functions if f.calls & PLANS and len(f.parameters) > 1]
        callers = {f.name for f in found}
        more = [f for f in self.functions if f.calls & callers and f not in found and len(f.parameters) > 1]
        return [*more, *found]

    @cached_property
    def roots(self) -> list[Module]:
        """The modules that no other one makes, those of the most parts first."""
        used = frozenset[str]().union(*(m.uses - {m.name} for m in self.modules))
        free = [m for m in self.modules if m.name not in used and m.forward]
        return sorted(free or [m for m in self.modules if m.forward], key=lambda m: -len(self._parts(m)))

    def layers(self, module: Module) -> list[str]:
        """The names of the linear layers in a module and in what it is made of."""
        parts = [self.classes[name] for name in self.classes if name in self._parts(module)]
        return list(dict.fromkeys(layer for part in parts for layer in part.layers))

    def _parts(self, module: Module) -> set[str]:
        found: set[str] = set()
        stack = [module.name]
        while stack:
            name = stack.pop()
            if name in self.classes and name not in found:
                found.add(name)
                stack.extend(self.classes[name].uses)
        return found

    def place(self, file: Path) -> str:
        """A file as it is imported from the folder."""
        parts = list(file.relative_to(self.folder).with_suffix("").parts)
        parts = parts[1:] if parts[0] == "src" else parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_repository(folder: Path) -> Repository:
    """Read the Python files of a folder; those that are no Python are left out."""
    found = Repository(folder)
    for file in _files(folder):
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        _Reader(found, file).read(tree)
    known = set(MODULES)
    while more := {c.name for c in found.classes.values() if known & set(c.bases)} - known:
        known |= more
    found.modules = [c for c in found.classes.values() if known & set(c.bases)]
    return found


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for root, folders, names in os.walk(folder):
        here = Path(root)
        inside = [f for f in folders if f not in _LEFT_OUT and not f.startswith(".")]
        folders[:] = sorted(f for f in inside if not (here / f / "pyvenv.cfg").exists())
        for name in sorted(names):
            file = here / name
            is_test = name.startswith(("test_", "rewright_claims")) or name == "conftest.py"
            if name.endswith(".py") and not is_test and file.stat().st_size <= MOST_BYTES:
                count += 1
                if count > MOST_FILES:
                    return
                yield file


class _Reader:
    def __init__(self, found: Repository, file: Path) -> None:
        self.found, self.file = found, file

    def read(self, tree: ast.Module) -> None:
        """Note what a file imports, defines and calls."""
        packages: set[str] = set()
        jitted: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                packages |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                packages.add(node.module.partition(".")[0])
                self._imported(node)
            elif isinstance(node, ast.Call):
                self._call(node, jitted)
        self.found.imports.update(packages)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self.found.classes.setdefault(node.name, self._class(node))
            elif isinstance(node, ast.FunctionDef):
                self.found.functions.append(self._function(node, jitted))

    def _imported(self, node: ast.ImportFrom) -> None:
        if (node.module or "").partition(".")[0] == "transformers":
            names = [alias.name for alias in node.names]
            self.found.transformers += [n for n in names if "For" in n and not n.startswith("Auto")]

    def _call(self, node: ast.Call, jitted: set[str]) -> None:
        name = _name(node.func)
        first = node.args[0] if node.args else None
        if name == "from_pretrained" and isinstance(first, ast.Constant) and isinstance(first.value, str):
            self.found.pretrained.append(first.value)
        elif name == "jit" and isinstance(first, ast.Name):
            jitted.add(first.id)
        elif name in ("init_device_mesh", "make_mesh", "Mesh") and not self.found.mesh:
            self.found.mesh = _axes(node)

    def _class(self, node: ast.ClassDef) -> Module:
        methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        calls = frozenset(_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call))
        fields = [n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
        named = [
            Parameter(cast("ast.Name", n.target).id, ast.unparse(n.annotation), n.value is not None) for n in fields
        ]
        init, forward = (_parameters(methods[n])[1:] if n in methods else () for n in ("__init__", "forward"))
        return Module(
            self.file, node.name, tuple(map(_name, node.bases)), init, forward, calls, tuple(named), _layers(node)
        )

    def _function(self, node: ast.FunctionDef, jitted: set[str]) -> Function:
        calls = frozenset(_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call))
        marks = [_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
        is_partial = any(isinstance(d, ast.Call) and d.args and _name(d.args[0]) == "jit" for d in node.decorator_list)
        is_jitted = "jit" in marks or is_partial or node.name in jitted
        return Function(self.file, node.name, _parameters(node), calls, is_jitted)


def _layers(node: ast.ClassDef) -> tuple[str, ...]:
    """The attributes that methods of a class set to linear layers."""
    found: list[str] = []
    for assign in (n for n in ast.walk(node) if isinstance(n, ast.Assign)):
        target, value = assign.targets[0], assign.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for one, made in pairs:
            if isinstance(one, ast.Attribute) and isinstance(made, ast.Call) and _name(made.func).endswith("Linear"):
                found.append(one.attr)
    return tuple(dict.fromkeys(found))


def _parameters(node: ast.FunctionDef) -> tuple[Parameter, ...]:
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    first = len(plain) - len(given.defaults)
    found = [Parameter(a.arg, _text(a.annotation), n >= first) for n, a in enumerate(plain)]
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return (*found, *(Parameter(a.arg, _text(a.annotation), default is not None) for a, default in pairs))


def _axes(node: ast.Call) -> dict[str, int]:
    """The names of a mesh's axes, where they are written out, and two ranks along each."""
    named: Mapping[str | None, ast.expr] = {k.arg: k.value for k in node.keywords}
    for given in (named.get("mesh_dim_names"), named.get("axis_names"), *node.args[1:]):
        if isinstance(given, (ast.Tuple, ast.List)):
            names = [e.value for e in given.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            if names and len(names) == len(given.elts):
                return dict.fromkeys(names, 2)
    return {}


def _name(node: ast.expr) -> str:
    """The last word of a name with dots."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


__all__ = ["Function", "Module", "Parameter", "Repository", "read_repository"]
