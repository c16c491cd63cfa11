"""Futures: calls that were started and are waited for later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from ...errors import IndexRangeError, LinearAlgebraError, NonFiniteError


class Pending(Protocol):
    """A call in flight; each target has its own implementation."""

    def done(self) -> bool:
        """Return True if the call has ended, without waiting."""

    def ahead(self) -> tuple[Any, ...]:
        """Return the values that stay on a device, without waiting; else as ``finish``."""

    def finish(self) -> tuple[Any, ...]:
        """Wait, and return the values or raise the call's error."""


class Started:
    """A started call: ``result()`` waits for it and returns what the call returns."""

    def __init__(
        self, ended: Callable[[], bool], finished: Callable[[], Any], ahead: Callable[[], Any]
    ) -> None:
        self._ended, self._finished, self._ahead = ended, finished, ahead
        self._lock = threading.Lock()
        self._asked = False
        self._value: Any = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Return True if the call has ended, so that ``result`` does not wait."""
        return self._asked or self._ended()

    def result(self) -> Any:
        """Wait for the end of the call and return its results, the same objects each time.

        Raises errors that depend on computed values: ``IndexRangeError``, ``NonFiniteError``,
        ``LinearAlgebraError``, and
        ``DeviceError`` if the device failed meanwhile.
        """
        with self._lock:
            if not self._asked:
                try:
                    self._value = self._finished()
                except Exception as error:
                    self._error = error
                self._asked = True
            if self._error is not None:
                raise self._error
            return self._value

    def on_device(self) -> Any:
        """Return results that stay on the device (``on_device=True``) before they are computed.

        Further computations on that device may be given them at once: they read them after the
        call. Errors that depend on computed values are still raised by ``result`` alone. Results
        on the host are waited for.
        """
        return self.result() if self._asked else self._ahead()

    def then(self, make: Callable[[Any], Any]) -> Started:
        """Return the same call with ``make`` applied to its result."""
        return Started(self.done, lambda: make(self.result()), lambda: make(self.on_device()))

    def __repr__(self) -> str:
        return f"<started call, {'done' if self.done() else 'on its way'}>"


class FinishedCall:
    """A call that ran when it was started."""

    def __init__(self, run: Callable[[], tuple[Any, ...]]) -> None:
        self.values: tuple[Any, ...] = ()
        self.error: Exception | None = None
        try:
            self.values = run()
        except (IndexRangeError, LinearAlgebraError, NonFiniteError) as error:
            self.error = error

    def done(self) -> bool:
        """Return True."""
        return True

    def ahead(self) -> tuple[Any, ...]:
        """Return the values, or raise the call's error."""
        return self.finish()

    def finish(self) -> tuple[Any, ...]:
        """Return the values, or raise the call's error."""
        if self.error is not None:
            raise self.error
        return self.values
