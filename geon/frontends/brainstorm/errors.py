"""Exceptions of the frontend; each is a ``geon.GeonError`` and a ``ValidationError``."""

from __future__ import annotations

from ...errors import GeonError


class ValidationError(GeonError, ValueError):
    """The root of the frontend's own exceptions."""


class NetworkValidationError(ValidationError):
    """A network, an architecture or a reference into a network that does not fit together."""


class LayerValidationError(ValidationError):
    """A layer with wrong arguments, inputs, outputs or shapes."""


class StructureValidationError(ValidationError):
    """A shape that is no shape of a buffer, or buffers that cannot be combined."""


ShapeValidationError = StructureValidationError


class InitializationError(ValidationError):
    """An initial value that does not fit a parameter."""


class IteratorValidationError(ValidationError):
    """Data that do not fit a data iterator."""
