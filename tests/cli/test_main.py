"""The command before any of its verbs: help, version, completion, an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rewright
from rewright.cli.main import run

MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
from rewright.__main__ import main
main()
"""
VERB = """
import time
def sequential():
    print("started", flush=True)
    time.sleep(60)
"""


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rewright {rewright.__version__}\n"
    done = subprocess.run([sys.executable, "-m", "rewright", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rewright {rewright.__version__}\n"


def test_the_help_imports_no_verb() -> None:
    code = "import sys; from rewright.cli.main import run; run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "refine" in done.stdout
    assert not any(
        f"'{name}'" in done.stdout for name in ("numpy", "torch", "z3", "rewright.ops", "rewright.cli.commands")
    )


@pytest.mark.parametrize(
    ("words", "found"),
    [("rewright re", ["refine"]), ("rewright refine --ma", ["--matrix"]), ("rewright env pl", ["play"])],
)
def test_a_shell_completes_words(words: str, found: list[str]) -> None:
    asked = {"_REWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = [sys.executable, "-c", "from rewright.__main__ import main; main()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **asked})
    assert done.stdout.split() == found


ENDINGS = """
import atexit, sys, tempfile, threading
from rewright.__main__ import main
folder = tempfile.TemporaryDirectory()
print(folder.name)
atexit.register(print, "the last line")
if "thread" in sys.argv:
    threading.Timer(0.2, print, ["a thread"]).start()
sys.argv = ["rewright", "refine", "missing.py:a", "missing.py:b"]
main()
"""


@pytest.mark.parametrize("words", [[], ["thread"]])
def test_what_waits_for_the_end_of_the_process_is_done(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", ENDINGS, *words], capture_output=True, text=True, check=False)
    folder, *rest = done.stdout.splitlines()

    assert done.returncode == 3
    assert sorted(rest) == sorted(["a thread", "the last line"] if words else ["the last line"])
    assert not Path(folder).exists()


def test_output_that_nobody_reads_is_no_error() -> None:
    command = f"{sys.executable} -m rewright --help | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def interrupted(folder: Path, word: str, *options: str) -> tuple[int, str]:
    """The status, and what is said, of a command that gets an interrupt once it has said a word."""
    command = [sys.executable, *options, "-c", MAIN, "refine", "model.py:sequential", "model.py:sequential"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if word in line:
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        return process.wait(30), said


def test_an_interrupt_is_one_line_and_status_130(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(VERB)

    assert interrupted(tmp_path, "started") == (130, "rewright: interrupted\n")


def test_an_interrupt_while_a_verb_is_imported(tmp_path: Path) -> None:
    """Which takes a second, in which nothing has been said yet."""
    (tmp_path / "model.py").write_text(VERB)

    status, said = interrupted(tmp_path, "rewright.ir", "-X", "importtime")

    assert status == 130
    assert [line for line in said.splitlines() if not line.startswith("import time:")] == ["rewright: interrupted"]
