"""Errors of models and their files."""

from __future__ import annotations

from ...errors import GeonError


class ModelError(GeonError, ValueError):
    """A model that cannot be read or built; the message names the node and the reason."""
