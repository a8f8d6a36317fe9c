"""Configurations of autotuners: which of them a launch takes is found out on a GPU, so each has to be right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from rewright.frontends.triton.launches import replaced_runs, run_configuration, tuners


@dataclass
class Configurations:
    """Those of the autotuners that a launcher has called, without those that differ in options of the compiler."""

    texts: list[str] = field(default_factory=list[str])
    """By number what a launch with it is given; of several autotuners of the one that has the most."""

    def launcher(self, launcher: Callable[..., Any], number: int) -> Callable[..., Any]:
        """The launcher with one configuration of each autotuner, the last one where there are not so many."""

        def chosen(self_: Any, *args: Any, **kwargs: Any) -> Any:
            found = _distinct(_pruned(self_, args, kwargs))
            if len(found) > len(self.texts):
                self.texts = [", ".join(f"{k}={v}" for k, v in config.kwargs.items()) for config in found]
            return run_configuration(self_, found[min(number, len(found) - 1)], args, kwargs)

        @wraps(launcher)
        def run(*args: Any, **kwargs: Any) -> Any:
            tuner: Any = sys.modules.get("triton.runtime.autotuner")
            own = [] if tuner is None else [(cls, chosen) for cls in tuners(tuner.Autotuner)]
            with replaced_runs(own):
                return launcher(*args, **kwargs)

        return run


def _pruned(tuner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
    """The configurations that a program's own rule leaves for some arguments."""
    prune = getattr(tuner, "early_config_prune", None)
    if prune is None:
        return tuner.configs
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    return list(prune(tuner.configs, tuner.nargs, **kwargs)) or tuner.configs


def _distinct(configs: Sequence[Any]) -> list[Any]:
    """Without those that give a kernel the same constants as one before."""
    return list({repr(sorted(config.kwargs.items())): config for config in reversed(configs)}.values())[::-1]
