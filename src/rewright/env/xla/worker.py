"""A worker process for XLA: one that ends or takes too long is replaced, and the caller gets an error of one line."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import weakref
from typing import IO, Any

from rewright.env.xla.adapter import check_version
from rewright.env.xla.serve import receive, send
from rewright.ir.errors import RewrightError

_START_SECONDS = 120.0


class XlaError(RewrightError):
    """XLA refused a module or a request; the message is XLA's, on one line."""


class XlaCrash(XlaError):
    """XLA ended its process, or took too long; the next request gets a new process."""


class XlaTimeout(XlaCrash):
    """XLA took too long."""


class Worker:
    """Requests to an :class:`rewright.env.xla.adapter.Adapter` in another process."""

    def __init__(self, seconds: float = 60.0) -> None:
        check_version()
        self.seconds = seconds
        self.started = 0
        """How many processes there have been."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._finalizer: weakref.finalize[..., Worker] | None = None

    def call(self, method: str, *arguments: Any, seconds: float | None = None, **keywords: Any) -> Any:
        """The answer to a request; raises XlaError where XLA refuses, XlaCrash where its process ends, or has to be."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            send(process.stdin, (method, arguments, keywords))
            kind, value = self._answer(process, self.seconds if seconds is None else seconds)
        except TimeoutError as error:
            self.close()
            why = f"XLA took longer than {error} s in {method}"
            raise XlaTimeout(f"{why}; its process is replaced, choose something else") from None
        except (EOFError, BrokenPipeError, OSError):
            why = self._last_words()
            self.close()
            raise XlaCrash(f"XLA ended its process in {method}{why}; it is replaced, choose something else") from None
        if kind == "failed":
            raise XlaError(f"XLA refuses {method}: {value}")
        return value

    def close(self) -> None:
        """End the process; the next request starts another."""
        if self._finalizer is not None:
            self._finalizer()
        self._process, self._log, self._finalizer = None, None, None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        code = "import sys; sys.path[:] = sys.argv[1:]; from rewright.env.xla.serve import main; main()"
        surroundings = os.environ | {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
        process = subprocess.Popen(
            [sys.executable, "-c", code, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=surroundings,
        )
        self._process, self.started = process, self.started + 1
        self._finalizer = weakref.finalize(self, _end, process, self._log)
        try:
            kind, value = self._answer(process, _START_SECONDS)
        except (EOFError, OSError):
            why = self._last_words()
            self.close()
            raise XlaError(f"the process for XLA does not start{why}; check the installation of jax") from None
        if kind == "refused":
            self.close()
            raise XlaError(str(value))
        return process

    def _answer(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[str, Any]:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        if not ready:
            raise TimeoutError(f"{seconds:g}")
        return receive(process.stdout)

    def _last_words(self) -> str:
        """What the process printed last, shortened; empty where it printed nothing."""
        if self._log is None:
            return ""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(self._log.tell() - 20_000, 0))
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        telling = [line for line in lines if line.startswith("F") or "Check failed" in line or "Error" in line]
        return f" ({telling[0].strip()[:160]})" if telling else ""


def _end(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, log):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:
                continue
