"""Exceptions and warnings of the package."""

from __future__ import annotations

from collections.abc import Sequence


class Error(Exception):
    """Why a call failed.

    Attributes
    ----------
    code : str
        A name for programs that stays the same in every version, such as ``"memory"`` or ``"shape"``.
    message : str
        What happened.
    hints : tuple of str
        What to try.
    """

    code: str
    message: str
    hints: tuple[str, ...]

    def __init__(self, message: str, code: str = "bad-request", hints: Sequence[str] = ()) -> None:
        super().__init__(message, code, tuple(hints))
        self.message = message
        self.code = code
        self.hints = tuple(hints)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  try: {hint}" for hint in self.hints)])


class MercerWarning(UserWarning):
    """Something about a result that the user should know."""
