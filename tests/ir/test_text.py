"""The text form: files are parsed, printed and compared with the CHECK: lines in them; refused ones with ERROR:."""

from pathlib import Path

import pytest

from rewright.ir.errors import RewrightError
from rewright.ir.text import print_graph
from rewright.ops.files import parse
from tests.filecheck import directives, file_check

HERE = Path(__file__).parent


def files(folder: str) -> list[Path]:
    return sorted((HERE / folder).glob("*.txt"))


@pytest.mark.parametrize("path", files("programs"), ids=lambda path: path.stem)
def test_printed_programs_look_as_expected(path: Path) -> None:
    file_check(path, print_graph(parse(path.read_text())))


@pytest.mark.parametrize("path", files("programs"), ids=lambda path: path.stem)
def test_printing_and_parsing_give_the_same_text(path: Path) -> None:
    printed = print_graph(parse(path.read_text()))
    assert print_graph(parse(printed)) == printed


@pytest.mark.parametrize("name", ["attention", "rank", "renamed_inputs"])
def test_parsing_gives_back_an_equal_graph(name: str) -> None:
    graph = parse((HERE / "programs" / f"{name}.txt").read_text())
    again = parse(print_graph(graph))
    assert again == graph
    assert list(again.inputs) == list(graph.inputs)
    assert again.metadata == graph.metadata


@pytest.mark.parametrize("path", files("refused"), ids=lambda path: path.stem)
def test_a_bad_text_is_refused_in_one_line(path: Path) -> None:
    ((_, expected),) = directives(path)
    with pytest.raises(RewrightError) as caught:
        parse(path.read_text())
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_locations_can_be_left_out() -> None:
    graph = parse((HERE / "programs" / "attention.txt").read_text())
    assert "loc(" in print_graph(graph)
    assert "loc(" not in print_graph(graph, spans=False)


def test_the_empty_text() -> None:
    with pytest.raises(RewrightError, match="line 1: the text ends before the closing }"):
        parse("")


def test_a_name_may_hold_any_character() -> None:
    text = 'graph "a\\"b\\n\\u2028" {\n}\n'
    assert parse(text).name == 'a"b\n\u2028'
    assert print_graph(parse(text)) == text
