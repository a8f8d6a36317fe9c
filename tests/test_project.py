"""Files around the package: what a new user, a contributor and a release take."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import rewright
from rewright.cli.main import VERBS, run

yaml = pytest.importorskip("yaml", reason="comes with the extra models")
ROOT = Path(__file__).parents[1]
WORKFLOWS = [ROOT / "action.yml", *sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_others_are_pinned_by_the_digest_of_a_commit(path: Path) -> None:
    used = re.findall(r"uses:\s*(\S+)(.*)", path.read_text())
    for name, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name), name
        assert re.search(r"# v\d", comment), name


@pytest.mark.parametrize("path", [*WORKFLOWS, *sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))], ids=str)
def test_files_for_the_host_can_be_read(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_nothing_installs_a_name_that_nobody_owns() -> None:
    """Until there is a release, whoever takes the name on the index runs code where it is installed."""
    files = [*PAGES, *WORKFLOWS, *(ROOT / "src").rglob("*.py")]
    wrong = [path for path in files if re.search(r"pip install[^\n$]*[ '\"]rewright\b(?!/)", path.read_text())]
    assert wrong == []


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert rewright.__version__ == project["version"] == citation["version"]
    assert f"## {rewright.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_help_of_all_commands_is_that_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """That of all imports none of them, and so has lines of its own."""
    for name, verb in VERBS.items():
        assert run([name, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert verb.about in text


def test_what_files_name_is_there() -> None:
    for name in ("CONTRIBUTING.md", "README.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), f"{name} names {target}"
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["entry"].split()[0] for hook in hooks] == ["rewright"]
    copied = re.findall(r"^COPY (.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert all((ROOT / name).exists() for line in copied for name in line.split())
