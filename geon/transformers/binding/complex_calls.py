"""Calls with complex inputs and results, which programs take and return as real arrays of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from ..runtime.complex_arrays import ComplexCall, as_parts
from ..runtime.feeding import make_feed
from .call_values import input_of

if TYPE_CHECKING:
    from ..compile import CompileStages
    from ..runtime.memory import Memory


def with_complex(call: Any, stages: CompileStages, memory: Memory) -> ComplexCall:
    """Return a call of the program of ``stages`` that takes and returns complex arrays.

    Raises ``ArgumentError`` for complex results that are to stay on a device.
    """
    if stages.request.on_device and not memory.on_host and any(stages.is_complex):
        raise ArgumentError(
            "on_device=True returns arrays of the device, which are real: return geon.real(z) and "
            "geon.imag(z), or leave it out"
        )
    return ComplexCall(call, _feeds(stages), stages.is_complex)


def program_values(stages: CompileStages, values: Sequence[Any]) -> Sequence[Any]:
    """Return the values of inputs as the program of ``stages`` takes them: complex ones as parts.

    Raises ``FeedError`` if a complex one does not fit.
    """
    if stages.complex_leaves is None:
        return values
    pairs = zip(_feeds(stages), values, strict=True)
    return [value if feed is None else as_parts(feed(value)) for feed, value in pairs]


def _feeds(stages: CompileStages) -> list[Any]:
    """Return the conversion of a user's value for each complex input, None for others."""
    feeds = []
    for leaf in stages.inputs:
        z = stages.stands_for(leaf)
        label, dtype, names, dims = input_of(z)
        feeds.append(None if z is leaf else make_feed(dtype, names, dims, label))
    return feeds
