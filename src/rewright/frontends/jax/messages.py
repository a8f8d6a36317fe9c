"""Turns what JAX or the user's function raises into one sentence with the line of the user."""

from __future__ import annotations

import os
from types import TracebackType

from rewright.frontends.jax.library import jax, jaxlib
from rewright.ir.errors import CaptureError

_ROOTS = (
    os.path.dirname(str(jax.__file__)) + os.sep,
    os.path.dirname(str(jaxlib.__file__)) + os.sep,
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    "<",
)


def capture_error(error: Exception, doing: str) -> CaptureError:
    """One sentence for an exception: what was being done, where in the user's file, and what was raised."""
    line = _user_line(error.__traceback__)
    where = f" at {line}" if line else ""
    first = next((text.strip() for text in str(error).splitlines() if text.strip()), "")
    name = type(error).__name__
    what = f"{name}: {first:.200}" if first else name
    return CaptureError(f"{doing} stopped{where}: {what.rstrip('.')}; correct the program{_advice(name)}")


def _advice(name: str) -> str:
    if name in ("ConcretizationTypeError", "TracerBoolConversionError", "TracerIntegerConversionError"):
        return ", which looks at values that are not known while it is traced"
    return ""


def _user_line(traceback: TracebackType | None) -> str:
    """``file.py:88`` of the innermost frame that is neither JAX's nor ours, or an empty string."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_ROOTS) and "site-packages" not in code.co_filename:
            found = f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found
