"""A tenth of the operators of PyTorch, a sample of each: captured graphs compute what it computes, or are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")


@pytest.mark.parametrize(("part", "count"), [("3/50", 14), pytest.param("3/10", 70, marks=pytest.mark.long)])
def test_a_tenth_of_the_operators_of_pytorch(part: str, count: int) -> None:
    """In a process of its own: the database sets global switches of PyTorch."""
    command = [sys.executable, "-m", "bench.conformance", "--part", part, "--most", "1", "--jobs", "1"]
    done = subprocess.run([*command, "--dtypes", "float64,int64"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| **supported, of {count}** |" in done.stdout
