"""Tests of what an older PyTorch, or an older Transformers, has not."""

from __future__ import annotations

from importlib import metadata, util

import pytest
from packaging.version import Version


def has(package: str, version: str) -> bool:
    """Whether a package is of this version or a later one."""
    found = metadata.version(package) if util.find_spec(package) is not None else "0"
    return Version(found).release >= Version(version).release


def since(version: str, reason: str) -> pytest.MarkDecorator:
    """Skip where PyTorch is older than that."""
    return pytest.mark.skipif(not has("torch", version), reason=f"PyTorch before {version} {reason}")


def of_transformers_5(reason: str) -> pytest.MarkDecorator:
    """Skip where Transformers is older than that."""
    return pytest.mark.skipif(not has("transformers", "5"), reason=f"Transformers before 5 {reason}")
