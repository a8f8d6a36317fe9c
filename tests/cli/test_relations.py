"""Relations files: what is read, and the one line for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.cli.relations import check_relations, read_relations
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh
from rewright.ir.types import DType, TensorType

MESH = Mesh.of({"dp": 2, "tp": 2})


def write(folder: Path, text: str) -> Path:
    path = folder / "relations.toml"
    path.write_text(text)
    return path


def test_both_tables_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [relations]
        "layers.*.weight" = "Shard(0)"
        x = ["Shard(0)", "Replicate()"]
        [expect]
        logits = "Replicate()"
        """,
    )
    read = read_relations(path)
    assert read.relations == {"layers.*.weight": "Shard(0)", "x": ["Shard(0)", "Replicate()"]}
    assert read.expect == {"logits": "Replicate()"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[relations\n", r"relations\.toml is no TOML: .*line 1"),
        ("[relation]\n", r"'relation' is no table of a relations file; did you mean 'relations'\?"),
        ("expect = 1\n", r"'expect' is no table"),
        ("[relations]\nx = 1\n", r"relations\.'x' is 1; write a placement"),
        ("[expect]\nx = []\n", r"expect\.'x' is \[\]; write a placement"),
        ('[expect]\nx = ["Shard(0)", 1]\n', r"write a placement"),
        ('[expect]\nx = "Shrad(0)"\n', r"relations\.toml: expect\.'x': 'Shrad\(0\)' is no placement; write Replicate"),
        ('[relations]\nx = ["Shard(0)", "Partial(avg)"]\n', r"'Partial\(avg\)' is no placement"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RewrightError, match=message) as caught:
        read_relations(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RewrightError, match=r"cannot read .*missing\.toml: No such file or directory; check the path"):
        read_relations(tmp_path / "missing.toml")


def check(relations: dict[str, str | list[str]]) -> None:
    names = ["layers.0.up.weight", "layers.1.up.weight", "input_ids"]
    check_relations(Path("r.toml"), relations, dict.fromkeys(names, TensorType((4, 6), DType.F32)), MESH, "input")


def test_names_that_exist_pass_and_others_have_a_hint() -> None:
    check({"layers.*.weight": ["Shard(0)", "Shard(1)"], "input_ids": "input_ids@0"})
    with pytest.raises(RewrightError, match=r"r\.toml: no input .* named 'inputs_ids'; did you mean 'input_ids'\?"):
        check({"inputs_ids": ["Replicate()", "Replicate()"]})


def test_placements_that_do_not_fit_name_file_and_tensor() -> None:
    with pytest.raises(
        RewrightError, match=r"r\.toml: input 'layers\.1\.up\.weight': Shard\(7\) of a tensor with 2 axes"
    ):
        check({"layers.*.weight": ["Replicate()", "Shard(7)"]})
    with pytest.raises(RewrightError, match=r"r\.toml: input 'input_ids': 1 placements for a mesh of 2 axes"):
        check({"input_ids": "Shard(0)"})
    check({"input_ids": "Replicate()", "layers.*": "[Shard(0), Shard(1)]"})
