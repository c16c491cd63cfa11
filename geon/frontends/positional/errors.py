"""Errors that all importers raise."""

from __future__ import annotations

from ...errors import GeonError


class UnsupportedError(GeonError, NotImplementedError):
    """Operators of a model that geon does not have; ``names`` maps them to how often they occur."""

    def __init__(self, message: str, names: dict[str, int]) -> None:
        super().__init__(message)
        self.names = names
