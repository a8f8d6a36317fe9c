"""Why a certificate proves nothing."""

from __future__ import annotations

from rewright.ir.errors import RewrightError


class Refused(RewrightError):
    """A certificate that proves nothing; the message names the first step that is wrong."""


class OtherPrograms(Refused):
    """A certificate for other programs than those that were given."""


class Damaged(Refused):
    """A certificate that was changed after it was written, where nothing else was found to be wrong."""
