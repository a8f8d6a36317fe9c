"""What is guessed of parameters: sizes that fit each other, and inputs by name."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from rewright.cli.starting.guessing import arguments_of, axes_of, call_of, inputs_of, size_of
from rewright.cli.starting.reading import Module, Parameter, Repository, read_repository


def parameters(text: str) -> tuple[Parameter, ...]:
    """Those of a function, written as in Python."""
    given = ast.parse(f"def f({text}): pass").body[0].args  # type: ignore[attr-defined]
    first = len(given.args) - len(given.defaults)
    return tuple(
        Parameter(a.arg, ast.unparse(a.annotation) if a.annotation else "", n >= first)
        for n, a in enumerate(given.args)
    )


def test_heads_of_a_size_make_a_width() -> None:
    heads, size, width = (size_of(name) for name in ("num_heads", "head_dim", "d_model"))
    assert heads is not None and size is not None
    assert heads * size == width


@pytest.mark.parametrize(
    ("names", "made"),
    [
        ("tokens", "torch.zeros(2, 8, dtype=torch.long)"),
        ("input_ids: torch.Tensor", "torch.zeros(2, 8, dtype=torch.long)"),
        ("x", "torch.zeros(2, 8, 32)"),
        ("pixel_values", "torch.zeros(2, 3, 32, 32)"),
    ],
)
def test_an_input_is_of_the_kind_that_its_name_says(names: str, made: str, tmp_path: Path) -> None:
    module = Module(tmp_path, "Net", (), (), parameters(f"{names}, mask=None"), frozenset())
    optional = replace(module, forward=tuple(replace(p, has_default=True) for p in module.forward))
    for one in (module, optional):
        assert [line.partition(",  #")[0] for line in inputs_of(one, ())] == [made]


@pytest.mark.parametrize(
    ("signature", "arguments", "axes"),
    [
        ("model, mesh", "model=sharded, mesh=mesh", {"dp": 2, "tp": 2}),
        ("model, tp_mesh", "model=sharded, tp_mesh=mesh", {"tp": 2}),
        ("model, dp_mesh, tp_mesh", 'model=sharded, dp_mesh=mesh["dp"], tp_mesh=mesh["tp"]', {"dp": 2, "tp": 2}),
        ("module, mesh, config", "module=sharded, mesh=mesh, config=...", {"dp": 2, "tp": 2}),
        ("net, mesh, strict=True", "net=sharded, mesh=mesh", {"dp": 2, "tp": 2}),
    ],
)
def test_the_arguments_of_a_plan(signature: str, arguments: str, axes: dict[str, int]) -> None:
    found = axes_of(parameters(signature), {"dp": 2, "tp": 2})
    assert found == axes
    assert arguments_of(parameters(signature), found) == (arguments, "..." not in arguments)


def test_a_configuration_is_made_small(tmp_path: Path) -> None:
    fields = parameters(
        "name: str, dim: int = 4096, n_heads: int = 32, vocab_size: int = 128256, norm_eps: float = 1e-5"
    )
    config = Module(tmp_path, "ModelArgs", (), (), (), frozenset(), fields)
    repository = Repository(tmp_path, classes={"ModelArgs": config})
    module = Module(tmp_path, "Net", (), parameters("args: ModelArgs, group=None"), (), frozenset())

    assert call_of(repository, module, "None") == 'Net(args=ModelArgs(dim=32, n_heads=4, vocab_size=64, name=""))'
    assert call_of(repository, module, "mesh.get_group()").endswith("group=mesh.get_group())")


def test_environments_and_tests_are_not_read(tmp_path: Path) -> None:
    for place in ("env/lib/a.py", "tests/b.py", "pkg/test_c.py", ".hidden/d.py", "pkg/e.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(f"from torch import nn\nclass {place[-4].upper()}(nn.Module): pass\n")
    (tmp_path / "env" / "pyvenv.cfg").touch()

    assert [module.name for module in read_repository(tmp_path).modules] == ["E"]
