"""The errors that a user can cause: one sentence with what, where, and what to do."""

from __future__ import annotations


class RewrightError(Exception):
    """Bad input. The message is one line; the command line prints it and exits with status 3."""


class TypeMismatch(RewrightError):
    """An operator applied to operands whose shapes or dtypes do not fit."""


class NotKnown(RewrightError):
    """A value that the arithmetic cannot tell, though it may well have one: nothing follows from that it is missing."""


class NotDefined(RewrightError):
    """A function at arguments where it has no finite value: it is not a number there, or infinite with either sign."""


class UnsupportedOperator(RewrightError):
    """A program contains an operator that has no lowering; the message names it and its source line."""


class CaptureError(RewrightError):
    """A program could not be captured; the message names the source line and what to change."""


class ContradictoryRelations(RewrightError):
    """The relations given for the inputs cannot all hold."""


class Refused(RewrightError):
    """A certificate that proves nothing; the message names the first step that is wrong."""


class OtherPrograms(Refused):
    """A certificate for other programs than those that were given."""


class Damaged(Refused):
    """A certificate that was changed after it was written, where nothing else was found to be wrong."""
