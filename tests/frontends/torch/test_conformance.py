"""A tenth of the operators of PyTorch, a sample of each: captured graphs compute what it computes, or are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")


def test_a_tenth_of_the_operators_of_pytorch() -> None:
    """In a process of its own: the database sets global switches of PyTorch."""
    command = [sys.executable, "-m", "bench.conformance", "--part", "3/10", "--most", "1", "--jobs", "1"]
    done = subprocess.run([*command, "--dtypes", "float64,int64"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| **supported, of 70** |" in done.stdout
