"""Complex arrays at the edge of programs, which compute with both parts as one real array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def as_parts(value: Any) -> Any:
    """Return a complex array as a view with a further last axis: its real and imaginary parts.

    Any other value is returned as it is.
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind != "c":
        return value
    return value[..., None].view(value.real.dtype)


def as_numbers(value: Any) -> Any:
    """Return an array of parts as a view of complex numbers; the inverse of ``as_parts``."""
    if value.dtype.kind == "c":
        return value
    wide = np.result_type(value.dtype, np.complex64)
    return value.view(wide).reshape(value.shape[:-1])


class PartDestinations:
    """The ``out=`` arrays of a call, as a program without complex values takes them."""

    def __init__(self, out: Any, is_complex: Sequence[bool]) -> None:
        self.out, self.is_complex = out, is_complex
        self.arrays = tuple(map(as_parts, out.arrays))

    def check(self, lengths: Mapping[str, int]) -> None:
        """Raise ``FeedError`` for an array that has another shape than its result."""
        self.out.check(lengths)

    def direct(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arrays that can be written while the inputs are read; None for the others."""
        return tuple(map(as_parts, self.out.direct(inputs)))

    def filled(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values, copied to the given arrays."""
        for array, value in zip(self.arrays, values, strict=True):
            if array is not None and value is not array:
                np.copyto(array, value)
        return tuple(values)


class ComplexCall:
    """A call whose inputs or results are complex, around the call of a program without these.

    ``feeds`` has a function from a user's value to a complex array for each complex input, and None
    for others. ``is_complex`` says so of each result.
    """

    enter: Any = None
    begin: Any = None

    def __init__(
        self,
        call: Any,
        feeds: Sequence[Callable[[Any], Array] | None],
        is_complex: Sequence[bool],
    ) -> None:
        self.call, self.feeds, self.is_complex = call, feeds, is_complex
        if hasattr(call, "start"):
            self.start = self._started

    def fed(self, values: Sequence[Any]) -> list[Any]:
        """Return the values with complex arrays as arrays of parts."""
        pairs = zip(self.feeds, values, strict=True)
        return [value if feed is None else as_parts(feed(value)) for feed, value in pairs]

    def __call__(self, *values: Any, out: Any = None) -> Any:
        """Return the results for these values."""
        if out is None:
            return self.results(self.call(*self.fed(values)), None)
        parts = PartDestinations(out, self.is_complex)
        return self.results(self.call(*self.fed(values), out=parts), out)

    def results(self, values: Sequence[Any], out: Any) -> tuple[Any, ...]:
        """Return the program's results as the user's arrays."""
        made = [
            as_numbers(value) if is_complex else value
            for value, is_complex in zip(values, self.is_complex, strict=True)
        ]
        if out is not None:
            made = [m if a is None else a for m, a in zip(made, out.arrays, strict=True)]
        return tuple(made)

    def _started(self, *values: Any, out: Any = None) -> Any:
        parts = None if out is None else PartDestinations(out, self.is_complex)
        return _PendingComplex(self.call.start(*self.fed(values), out=parts), self, out)


class _PendingComplex:
    """A started call whose results are complex."""

    def __init__(self, pending: Any, call: ComplexCall, out: Any) -> None:
        self.pending, self.call, self.out = pending, call, out

    def done(self) -> bool:
        """Return True if the call has ended, without waiting."""
        return bool(self.pending.done())

    def ahead(self) -> tuple[Any, ...]:
        """Return the values that stay on a device, else wait for them."""
        return self.call.results(self.pending.ahead(), self.out)

    def finish(self) -> tuple[Any, ...]:
        """Wait, and return the values or raise the call's error."""
        return self.call.results(self.pending.finish(), self.out)
