"""Tests of what an older PyTorch has not."""

from __future__ import annotations

from importlib import metadata

import pytest
from packaging.version import Version


def has(package: str, version: str) -> bool:
    """Whether a package is of this version or a later one."""
    return Version(metadata.version(package)).release >= Version(version).release


def since(version: str, reason: str) -> pytest.MarkDecorator:
    """Skip where PyTorch is older than that."""
    return pytest.mark.skipif(not has("torch", version), reason=f"PyTorch before {version} {reason}")
