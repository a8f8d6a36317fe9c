"""HloEnv's ``HloModule``: a module with the methods that HloEnv gives it, bound to the session that answers them."""

from __future__ import annotations

from rewright.env.compat.config import HloModuleConfig, module_config
from rewright.env.excerpts import (
    extract_fusions_as_module,
    extract_instructions_as_module,
    extract_random_submodule,
)
from rewright.env.module import HloModule as Module
from rewright.env.repairs import runnable
from rewright.env.session import Session
from rewright.frontends.hlo.module import Module as Parsed
from rewright.ir.errors import RewrightError

FORMATS = ("path", "txt")


class HloModule(Module):
    """``HloModule(path)`` or ``HloModule(text, "txt")``; a session of its own where none is given.

    Raises RewrightError for a file or a text that holds no module.
    """

    def __init__(self, source: str | Module, format: str = "path", session: Session | None = None) -> None:
        self.session: Session = session or (source.session if isinstance(source, HloModule) else Session())
        self.take(source if isinstance(source, Module) else loaded(self.session, source, format))

    def take(self, other: Module) -> None:
        """Become another module, as HloEnv's passes change a module in its place."""
        session = self.session
        self.__dict__.clear()
        self.session = session
        super().__init__(other.program if other.has_program else other.proto, other.late, other.entrance)

    def replaced(self, program: Parsed) -> HloModule:
        """The module with another program, at the same stage, in the same session."""
        return HloModule(super().replaced(program), session=self.session)

    def to_string(self) -> str:
        """The module as HLO text."""
        return self.session.text(self)

    def hash(self) -> int:
        """A number that does not depend on names: equal for equal modules, in every process."""
        return int(self.session.fingerprint(self)[:16], 16)

    def clone(self) -> HloModule:
        """The module again, to be changed on its own."""
        return HloModule(self, session=self.session)

    @property
    def config(self) -> HloModuleConfig:
        """How it is compiled."""
        return module_config(self.session)

    def is_bef_enabled(self) -> bool:
        """Whether it is lowered to the binary executor format of 2022: never."""
        return False

    def cost_analysis(self) -> dict[str, float]:
        """XLA's static analysis: ``flops``, ``transcendentals``, ``bytes accessed``, ``optimal_seconds``."""
        return {"transcendentals": 0.0, "optimal_seconds": self.cost.seconds} | self.session.analysis(self)

    def extract_random_submodule(
        self, instruction_count_threshold: int, height: int, seed: int = 0
    ) -> HloModule | None:
        """A random instruction with all that it needs; None where that is too little."""
        found = extract_random_submodule(self, instruction_count_threshold, height, seed)
        return None if found is None else HloModule(found, session=self.session)

    def extract_instructions_as_module(self, repeat: int = 1000) -> list[tuple[str, HloModule]]:
        """Each instruction that does some work, in words, and as a module that does it ``repeat`` times."""
        found = extract_instructions_as_module(self, repeat)
        return [(words, HloModule(own, session=self.session)) for words, own in found]

    def extract_fusions_as_module(self, repeat: int = 1000) -> list[HloModule]:
        """Each fusion as a module that does it ``repeat`` times."""
        return [HloModule(own, session=self.session) for own in extract_fusions_as_module(self, repeat)]


def loaded(session: Session, source: str, format: str) -> Module:
    """A module from a file or a text; raises RewrightError for another format."""
    if format not in FORMATS:
        raise RewrightError(f"the format {format!r:.40} is not known; give 'path' or 'txt'")
    return runnable(session, session.load(source) if format == "path" else session.parse(source))
