"""Which kind of repository it is, and the texts that begin its claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import TypeVar

from packaging.specifiers import SpecifierSet

from rewright.cli.starting import templates
from rewright.cli.starting.guessing import (
    CHECK,
    arguments_of,
    axes_of,
    call_of,
    configs_of,
    inputs_of,
    is_group,
)
from rewright.cli.starting.reading import Function, Module, Repository
from rewright.ir.errors import RewrightError
from rewright.packages import Package

_SOURCE = 'sys.path.insert(0, str(Path(__file__).parent / "src"))  # needless where the package is installed'
Named = TypeVar("Named", Module, Function)
CLAIMS = "rewright_claims"
"""The module that is written."""
_PLAN = """    # Spread it here as your training does, by the same calls. Its linear layers: {layers}.
    # from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    # parallelize_module(sharded, mesh, {{"*.{first}": ColwiseParallel()}})"""


@dataclass(frozen=True)
class Begun:
    """What is written, and what was found to write it."""

    kind: str
    found: str
    claims: str
    test: str
    command: str


def begin(repository: Repository, kind: str, model: str) -> Begun:
    """The files for a repository; raises RewrightError where it has nothing of the kind, or no such model."""
    return KINDS[kind](repository, model)


def kind_of(repository: Repository) -> str:
    """What a repository is made with; raises RewrightError where that is neither PyTorch nor JAX."""
    seen = repository.imports
    for package, kind in (("torchtitan", "torchtitan"), ("megatron", "megatron")):
        if seen[package]:
            return kind
    if (repository.transformers or repository.pretrained) and seen["transformers"]:
        return "transformers"
    if seen["jax"] and seen["jax"] >= seen["torch"]:
        return "jax"
    if seen["torch"]:
        return "torch"
    raise RewrightError(f"{repository.folder} has no file that imports torch or jax; name the folder of your model")


def _torch(repository: Repository, model: str) -> Begun:
    module = _chosen(repository.roots, model, "a class with a forward")
    mesh = repository.mesh or {"tp": 2}
    grouped = next((p for p in module.init if is_group(p)), None)
    imports = _imports(repository, [module, *configs_of(repository, module)])
    if grouped is not None:
        group = "mesh" if "mesh" in grouped.name else "mesh.get_group()"
        lines = [f"    sharded = {call_of(repository, module, group)}{CHECK}"]
        how = f"by its own {grouped.name}"
    elif plan := next(iter(repository.plans), None):
        mesh = axes_of(plan.parameters, mesh)
        arguments, is_known = arguments_of(plan.parameters, mesh)
        imports += _imports(repository, [plan])
        made = f"{plan.name}({arguments})"
        lines = ["    sharded = sequential()[0]", f"    sharded = {made} or sharded{'' if is_known else CHECK}"]
        how = f"by {plan.name} of {repository.place(plan.file)}"
    else:
        layers = ", ".join(repository.layers(module)[:6]) or "none that was found"
        lines = [
            f"    sharded = sequential()[0]{CHECK}: it is not spread yet",
            _PLAN.format(layers=layers, first=layers.partition(",")[0]),
        ]
        how = "by nothing yet"
    command = _command(mesh)
    text = _fill(
        templates.TORCH,
        about=f"{module.name} on one device, and on the ranks of a mesh, {how}.",
        command=command,
        imports="".join(f"{line}\n" for line in dict.fromkeys(imports)),
        mesh=_shown(mesh),
        inputs="\n".join(f"        {line}" for line in inputs_of(module, _all_uses(repository, module))),
        model=f"{call_of(repository, module, 'None')}.eval()",
        parallel="\n".join(lines),
    )
    return Begun(
        "torch", f"{module.name} of {repository.place(module.file)}, spread {how}", text, templates.TEST, command
    )


def _transformers(repository: Repository, model: str) -> Begun:
    known = [
        c for c in dict.fromkeys(repository.transformers) if c.endswith(("ForCausalLM", "ForConditionalGeneration"))
    ]
    names = [name for name in dict.fromkeys(repository.pretrained) if name]
    if model or not names:
        name = model or next(iter(known), "")
        if not name:
            raise RewrightError("no model of Transformers is named in the files; give one: --model LlamaForCausalLM")
        config = f"{name.partition('For')[0]}Config"
        sizes = "vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4"
        fields = {
            "imports": f"from transformers import {config}, {name}",
            "config": f"{config}({sizes}){CHECK}",
            "model": f"{name}(CONFIG)",
        }
    else:
        name = names[0]
        fields = {
            "imports": "from transformers import AutoConfig, AutoModelForCausalLM",
            "config": f'AutoConfig.from_pretrained("{name}"){CHECK}: fewer layers are as good, and faster',
            "model": "AutoModelForCausalLM.from_config(CONFIG)",
        }
    command = _command({"tp": 2})
    text = _fill(templates.TRANSFORMERS, about=f"{name} on one device, and by its tp_plan.", command=command, **fields)
    found = f"{name}, spread by its tp_plan"
    library = Package("transformers", SpecifierSet(">=5"))
    if library.version and not library.fits:
        found += f", which needs Transformers 5: {library.version} splits only models that it loads"
    return Begun("transformers", found, text, templates.TEST, command)


def _jax(repository: Repository, model: str) -> Begun:
    jitted = [f for f in repository.functions if f.is_jitted] or [f for f in repository.functions if f.parameters]
    function = _chosen(jitted, model, "a function that is jitted")
    mesh = repository.mesh or {"dp": 2}
    needed = [p.name for p in function.parameters if not p.has_default]
    command = _command(mesh)
    text = _fill(
        templates.JAX,
        about=f"{function.name} on one device, and as XLA's partitioner spreads it.",
        command=command,
        imports="".join(f"{line}\n" for line in _imports(repository, [function])),
        mesh=_shown(mesh),
        inputs="\n".join(f"    array(16, 16),{CHECK}: {name}" for name in needed),
        specs="\n".join(
            f"    {'P()' if n == 0 and len(needed) > 1 else f'P({next(iter(mesh))!r})'},{CHECK}: how {name} is spread"
            for n, name in enumerate(needed)
        ),
        function=function.name,
    )
    found = f"{function.name} of {repository.place(function.file)}, spread by shardings"
    return Begun("jax", found, text, templates.TEST, command)


def _megatron(repository: Repository, model: str) -> Begun:
    if model:
        raise RewrightError("the file for Megatron makes a GPT; leave --model out, and change the function model in it")
    text = _fill(templates.MEGATRON, about="A model of Megatron-core on one rank, and on several.")
    return Begun("megatron", "a GPT of Megatron-core", text, templates.TEST_OF_PROGRAMS, "")


def _torchtitan(repository: Repository, model: str) -> Begun:
    family = model or "llama3"
    about = f"torchtitan's {family} on one device, and on the ranks of a mesh."
    text = _fill(templates.TORCHTITAN, about=about, family=family, mesh='{"shard": 2, "tp": 2}')
    return Begun("torchtitan", f"torchtitan's {family}", text, templates.TEST_WITH_RELATIONS, "")


KINDS: Mapping[str, Callable[[Repository, str], Begun]] = {
    "torch": _torch,
    "transformers": _transformers,
    "jax": _jax,
    "megatron": _megatron,
    "torchtitan": _torchtitan,
}


def _chosen(found: Sequence[Named], name: str, what: str) -> Named:
    """The one with the name, or the first."""
    if not found:
        raise RewrightError(f"the files have no {what} to begin with; write the two functions by hand")
    if not name:
        return found[0]
    for one in found:
        if one.name == name:
            return one
    raise RewrightError(f"there is no {name} among {', '.join(f.name for f in found[:8])}; name one of these")


def _all_uses(repository: Repository, module: Module) -> frozenset[str]:
    own = module.uses & repository.classes.keys()
    return module.uses.union(*(repository.classes[name].uses for name in own))


def _imports(repository: Repository, found: Sequence[Module | Function]) -> list[str]:
    lines = [f"from {repository.place(one.file)} import {one.name}" for one in found]
    if any(one.file.relative_to(repository.folder).parts[0] == "src" for one in found):
        return ["import sys", "from pathlib import Path", "", _SOURCE, *lines]
    return lines


def _shown(mesh: Mapping[str, int]) -> str:
    return "{" + ", ".join(f'"{axis}": {size}' for axis, size in mesh.items()) + "}"


def _command(mesh: Mapping[str, int]) -> str:
    axes = ",".join(f"{axis}={size}" for axis, size in mesh.items())
    return f"rewright refine {CLAIMS}.py:sequential {CLAIMS}.py:parallel --mesh {axes}"


def _fill(text: str, **fields: str) -> str:
    return Template(text).substitute(fields)


__all__ = ["CLAIMS", "KINDS", "Begun", "begin", "kind_of"]
