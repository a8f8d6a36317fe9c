"""Packages that rewright works with: which versions it asks for, which are here, and how to get one.

The versions are those of rewright's own metadata, where ``pyproject.toml`` puts them; nothing here repeats them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet


@dataclass(frozen=True)
class Package:
    """A package as an index names it, and the versions of it that rewright is tested with."""

    name: str
    wanted: SpecifierSet
    is_needed: bool = False
    """Whether nothing of rewright runs without it; others are of an extra."""

    @property
    def version(self) -> str:
        """The version that is installed; empty where none is."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return ""

    @property
    def fits(self) -> bool:
        """Whether it is installed in a version that is wanted."""
        return bool(self.version) and self.wanted.contains(self.version, prereleases=True)

    @property
    def versions(self) -> str:
        """Those that are wanted, the oldest first."""
        return ",".join(sorted(set(map(str, self.wanted)), key=lambda text: (text.startswith("<"), text)))

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install '{self.name}{self.versions}'"


@cache
def known() -> dict[str, Package]:
    """All packages that rewright requires, or that an extra of it does for users."""
    try:
        texts = metadata.requires("rewright") or []
    except metadata.PackageNotFoundError:  # a checkout that is on the path, and not installed
        texts = []
    found: dict[str, Package] = {}
    for needed in map(Requirement, texts):
        marker = str(needed.marker or "")
        if not any(f'extra == "{name}"' in marker for name in ("dev", "docs", "browser")):
            before = found.get(needed.name, Package(needed.name, SpecifierSet()))
            is_needed = before.is_needed or "extra" not in marker
            found[needed.name] = Package(needed.name, before.wanted & needed.specifier, is_needed)
    return found


def package(name: str) -> Package:
    """One package, of any version where rewright asks for none."""
    return known().get(name, Package(name, SpecifierSet()))


def missing(name: str, what: str) -> str:
    """The sentence of an error: ``what`` needs a package that is not installed, and how to get it."""
    if name not in known():  # it may be a name that nobody, or somebody else, owns
        return f"{what} needs the package {name}, which is not installed here; install it, or correct the import"
    return f"{what} needs the package {name}, which is not installed; run {package(name).command}"


def no_gpu(text: str) -> str:
    """What to do where an error of PyTorch's says that there is no GPU; empty for other errors."""
    says = ("not compiled with CUDA", "NVIDIA driver", "No CUDA GPUs")
    gone = any(part in text for part in says)
    return "build it on the CPU or on the meta device: no weight is read, and nothing runs on a GPU" if gone else ""
