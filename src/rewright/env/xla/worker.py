"""A worker process for XLA: one that ends or takes too long is replaced, and the caller gets an error of one line."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import threading
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
    """Requests to an :class:`rewright.env.xla.adapter.Adapter` in another process, one at a time.

    Each request has a number that its answer repeats, and a request that is interrupted ends the process: no answer is
    ever taken for that of another request.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        check_version()
        self.seconds = seconds
        self.started = 0
        """How many processes there have been."""
        self.closed = False
        self._lock = threading.RLock()
        self._requests = 0
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._finalizer: weakref.finalize[..., Worker] | None = None

    def call(self, method: str, *arguments: Any, seconds: float | None = None, **keywords: Any) -> Any:
        """The answer to a request; raises XlaError where XLA refuses, XlaCrash where its process ends, or has to be.

        Raises RewrightError where the worker was closed.
        """
        with self._lock:
            if self.closed:
                raise RewrightError("the session was closed; make a new one: Session()")
            return self._call(method, arguments, keywords, self.seconds if seconds is None else seconds)

    def _call(self, method: str, arguments: tuple[Any, ...], keywords: dict[str, Any], seconds: float) -> Any:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        self._requests += 1
        try:
            send(process.stdin, (self._requests, method, arguments, keywords))
            number, kind, value = self._answer(process, seconds)
        except TimeoutError as error:
            self._stop()
            why = f"XLA took longer than {error} s in {method}"
            raise XlaTimeout(f"{why}; its process is replaced, choose something else") from None
        except (EOFError, OSError):
            why = self._last_words()
            self._stop()
            raise XlaCrash(f"XLA ended its process in {method}{why}; it is replaced, choose something else") from None
        except BaseException:
            # An interrupt, or an argument that cannot be sent: what is still on its way answers this request.
            self._stop()
            raise
        if number != self._requests:
            self._stop()
            raise XlaCrash(f"XLA answered another request than {method}; its process is replaced, ask again")
        if kind == "failed":
            raise XlaError(f"XLA refuses {method}: {value}")
        return value

    def close(self) -> None:
        """End the process for good; a request that comes later is an error."""
        self.closed = True
        self._stop()

    def _stop(self) -> None:
        """End the process; the next request starts another."""
        if self._finalizer is not None:
            self._finalizer()
        self._process, self._log, self._finalizer = None, None, None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():
            # After a fork the process belongs to the parent, who still talks to it.
            self._owner, self._process, self._log, self._finalizer = os.getpid(), None, None, None
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
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
        self._finalizer = weakref.finalize(self, _end, process, self._log, os.getpid())
        try:
            _, kind, value = self._answer(process, _START_SECONDS)
        except (EOFError, OSError):
            why = self._last_words()
            self._stop()
            raise XlaError(f"the process for XLA does not start{why}; check the installation of jax") from None
        except BaseException:
            self._stop()
            raise
        if kind == "refused":
            self._stop()
            raise XlaError(str(value))
        return process

    def _answer(self, process: subprocess.Popen[bytes], seconds: float) -> tuple[int, str, Any]:
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


def _end(process: subprocess.Popen[bytes], log: IO[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, log):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:
                continue
