"""Values for parameters, by their names and annotations: small sizes that fit each other, for a person to check."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from rewright.cli.starting.reading import Module, Parameter, Repository

CHECK = "  # check"
"""What a guess ends its line with."""
WIDTH = 32
_SIZES = (
    (r"vocab", 64),
    (r"head_?dim|head_?size|dim_head|d_head|d_k", 8),
    (r"kv|groups", 2),
    (r"head", 4),
    (r"top_?k|active", 2),
    (r"expert", 4),
    (r"block_size|seq|length|context|ctx|position|max_len", 16),
    (r"layer|depth|block", 2),
    (r"ffn|ff|inner|intermediate|mlp|hidden_dim|hidden_features", 64),
    (r"class", 16),
    (r"batch", 2),
    (r"dim|width|emb|hidden|model|channel|feature|size|in_|out_", WIDTH),
)
"""Sizes by what a name contains; the first that fits. Heads of 8 are four of a width of 32."""
_TOKENS = re.compile(r"^(x?_?idx|ids|.*tokens?|.*input_ids|.*_ids|labels?|targets?|y_true|positions?)$")
_IMAGES = re.compile(r"image|pixel|img")
_GROUPS = re.compile(r"(^|_)(pg|group|process_group|mesh|device_mesh)$")


def is_group(parameter: Parameter) -> bool:
    """Whether a parameter is a mesh, or a process group."""
    return bool(_GROUPS.search(parameter.name)) or "ProcessGroup" in parameter.annotation


def size_of(name: str) -> int | None:
    """A size for a name; None where it says none."""
    return next((size for pattern, size in _SIZES if re.search(pattern, name.lower())), None)


def call_of(repository: Repository, module: Module, group: str) -> str:
    """A call of a class, with sizes for what it needs, and ``group`` for a mesh or a process group."""
    given: list[str] = []
    for parameter in module.init:
        if is_group(parameter):
            if group != "None" or not parameter.has_default:
                given.append(f"{parameter.name}={group}")
        elif not parameter.has_default or _config(repository, parameter) is not None:
            given.append(f"{parameter.name}={value_of(repository, parameter)}")
    return f"{module.name}({', '.join(given)})"


def value_of(repository: Repository, parameter: Parameter) -> str:
    """An expression for a parameter: of a dataclass of the repository a call, else a number."""
    if (config := _config(repository, parameter)) is not None:
        fields = [f for f in config.fields if size_of(f.name) is not None and _is_whole(f)]
        needed = [f for f in config.fields if not f.has_default and f not in fields]
        said = [f"{f.name}={size_of(f.name)}" for f in fields]
        said += [f"{f.name}={_plain(f)}" for f in needed]
        said += [f"{f.name}=0.0" for f in config.fields if "dropout" in f.name and f not in needed]
        return f"{config.name}({', '.join(said)})"
    return _plain(parameter)


def configs_of(repository: Repository, module: Module) -> list[Module]:
    """The dataclasses of the repository that a class is made with."""
    found = (_config(repository, parameter) for parameter in module.init)
    return [config for config in found if config is not None]


def inputs_of(module: Module, uses: Collection[str]) -> list[str]:
    """Lines that make what ``forward`` needs, each for one parameter, in a tuple."""
    needed = [p for p in module.forward if not p.has_default] or list(module.forward[:1])
    return [f"{_input(p, first=n == 0, embeds='Embedding' in uses)},{CHECK}: {p.name}" for n, p in enumerate(needed)]


def axes_of(parameters: Sequence[Parameter], mesh: Mapping[str, int]) -> dict[str, int]:
    """The axes of a mesh that a function takes one by one; all of them where it takes the mesh whole."""
    named = [_axis(p.name, mesh) for p in parameters if "mesh" in p.name]
    return {a: mesh[a] for a in named if a} if named and None not in named else dict(mesh)


def arguments_of(parameters: Sequence[Parameter], axes: Collection[str]) -> tuple[str, bool]:
    """The arguments of a function that spreads a model, and whether all of them are known."""
    given: list[str] = []
    is_known = True
    for number, p in enumerate(parameters):
        if "mesh" in p.name:
            axis = _axis(p.name, axes)
            given.append(f"{p.name}=mesh" + (f'["{axis}"]' if axis and len(axes) > 1 else ""))
        elif number == 0 or p.name in ("model", "module"):
            given.append(f"{p.name}=sharded")
        elif p.name in ("world_size", "tp_size"):
            given.append(f"{p.name}=mesh.size()")
        elif not p.has_default:
            given.append(f"{p.name}=...")
            is_known = False
    return ", ".join(given), is_known


def _axis(name: str, axes: Collection[str]) -> str | None:
    return next((a for a in axes if re.search(rf"(^|_){re.escape(a)}(_|$)", name)), None)


def _config(repository: Repository, parameter: Parameter) -> Module | None:
    """The class of the repository that a parameter is, where that has fields."""
    name = parameter.annotation.rpartition(".")[2].strip("'\"")
    found = repository.classes.get(name)
    if found is None and re.search(r"config|args$|params$", parameter.name.lower()):
        named = [c for c in repository.classes.values() if c.fields and re.search(r"(Config|Args)$", c.name)]
        found = named[0] if len(named) == 1 else None
    return found if found is not None and found.fields and not found.forward else None


def _is_whole(parameter: Parameter) -> bool:
    return parameter.annotation.replace("Optional[int]", "int") in ("int", "int | None", "")


def _plain(parameter: Parameter) -> str:
    kind, name = parameter.annotation, parameter.name
    if kind == "bool":
        return "False"
    if kind == "str":
        return '""'
    if "dropout" in name:
        return "0.0"
    if kind == "float":
        return "1e-5" if "eps" in name else "1.0"
    return str(size_of(name) or 8)


def _input(parameter: Parameter, first: bool, embeds: bool) -> str:
    if _IMAGES.search(parameter.name):
        return "torch.zeros(2, 3, 32, 32)"
    if _TOKENS.match(parameter.name) or (first and embeds):
        return "torch.zeros(2, 8, dtype=torch.long)"
    return f"torch.zeros(2, 8, {WIDTH})"


__all__ = ["CHECK", "arguments_of", "axes_of", "call_of", "configs_of", "inputs_of", "is_group", "value_of"]
