"""Functions of the user's files: found, called, and what is said where that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewright.cli.userfile import find_function, is_function_name
from rewright.ir.errors import RewrightError


def write(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


def test_what_names_a_function() -> None:
    assert is_function_name("a/b.py:build")
    assert is_function_name("b.py")
    assert not is_function_name("graph.json")
    assert not is_function_name("ranks.rwt")


def test_a_function_is_found_and_called(tmp_path: Path) -> None:
    (tmp_path / "beside_the_program.py").write_text("value = 3\n")
    path = write(tmp_path, "from beside_the_program import value\ndef build(mesh):\n    return abs, (value, mesh)\n")
    assert find_function(f"{path}:build")("m") == (abs, (3, "m"), {})


def test_arguments_may_be_keywords(tmp_path: Path) -> None:
    path = write(tmp_path, "def a():\n    return abs, {'x': 1}\ndef b():\n    return abs, (2,), {'x': 1}\n")
    assert find_function(f"{path}:a")() == (abs, (), {"x": 1})
    assert find_function(f"{path}:b")() == (abs, (2,), {"x": 1})


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        ("def build(mesh): pass\n", "biuld", r"program\.py has no function 'biuld'; did you mean 'build'\?"),
        ("x = 1\n", "x", r"has no function 'x'; there is none at all"),
        ("def build(:\n", "build", r"importing program\.py stopped at line 1: invalid syntax"),
        (
            "import torhc\n",
            "build",
            r"importing program\.py:1 needs the package torhc, which is not installed here; install it, or correct",
        ),
        ("x = 1\ny = z\n", "build", r"program\.py:2: NameError: name 'z' is not defined; correct the file"),
        ("raise SystemExit\n", "build", r"program\.py:1: SystemExit; correct the file"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, source: str, name: str, message: str) -> None:
    with pytest.raises(RewrightError, match=message) as caught:
        find_function(f"{write(tmp_path, source)}:{name}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("1 / 0", r"running build stopped at program\.py:2: ZeroDivisionError: division by zero"),
        ("return None", r"build returned nothing; return \(module, args\), or \(module, args, kwargs\)"),
        ("return 1, 2", r"build returned a tuple of int, int; return"),
        ("return abs, (1,), 3", r"build returned a tuple of builtin_function_or_method, tuple, int; return"),
        ("return abs", r"build returned a value of type builtin_function_or_method; return"),
    ],
)
def test_functions_that_cannot_be_used(tmp_path: Path, body: str, message: str) -> None:
    function = find_function(f"{write(tmp_path, f'def build():{chr(10)}    {body}{chr(10)}')}:build")
    with pytest.raises(RewrightError, match=message):
        function()


def test_a_file_without_function_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RewrightError, match=r"write .*program\.py:function"):
        find_function(str(write(tmp_path, "")))
    with pytest.raises(RewrightError, match=r"there is no file missing\.py; check the path"):
        find_function("missing.py:build")


def test_a_function_of_ranks_without_a_mesh_and_the_other_way_round(tmp_path: Path) -> None:
    path = write(tmp_path, "def one(): pass\ndef ranks(mesh): pass\n")
    with pytest.raises(RewrightError, match=r"ranks\(mesh\) is called without arguments; give its ranks with --mesh"):
        find_function(f"{path}:ranks")()
    with pytest.raises(RewrightError, match=r"one\(\) is called with the mesh; write one\(mesh\), or leave --mesh out"):
        find_function(f"{path}:one")("mesh")


def test_what_the_file_prints_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "print('importing')\ndef build():\n    print('building')\n    return abs, (1,)\n")
    find_function(f"{path}:build")()
    assert capsys.readouterr() == ("", "importing\nbuilding\n")
