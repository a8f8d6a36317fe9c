"""What inputs and outputs of a traced JAX function are called: paths into its arguments and its result."""

from __future__ import annotations

from collections.abc import Sequence

from rewright.frontends.hlo.reading import dotted_path


def input_names(paths: Sequence[str]) -> list[str]:
    """``params['w']`` is ``params.w``, ``past[0].k`` is ``past.0.k``; numbered where that is not unique."""
    names = [dotted_path(path) for path in paths]
    return _unique(names, [f"argument.{place}" for place in range(len(names))])


def output_names(paths: Sequence[str]) -> list[str]:
    """``result`` is ``output``, ``result[0]`` is ``output.0``, and ``result['loss']`` is ``loss``.

    Numbered where that is not unique.
    """
    names = [_output(dotted_path(path)) for path in paths]
    numbered = ["output"] if len(names) == 1 else [f"output.{place}" for place in range(len(names))]
    return _unique(names, numbered)


def _output(path: str) -> str:
    rest = path.removeprefix("result").removeprefix(".")
    if not rest:
        return "output"
    return f"output.{rest}" if rest.split(".")[0].isdecimal() else rest


def _unique(names: Sequence[str], otherwise: list[str]) -> list[str]:
    return list(names) if all(names) and len(set(names)) == len(names) else otherwise
