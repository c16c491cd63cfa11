"""A call that was begun and is waited for later: what ``start`` of a computation gives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from ...errors import IndexRangeError, NonFiniteError


class Pending(Protocol):
    """A call on its way, as a target has it."""

    def done(self) -> bool:
        """Whether it has ended; does not wait."""

    def finish(self) -> tuple[Any, ...]:
        """Wait, and give the values, or raise what went wrong; asked once."""


class Started:
    """A call that was begun: ``result()`` waits for what the call would have given."""

    def __init__(self, ended: Callable[[], bool], finished: Callable[[], Any]) -> None:
        self._ended, self._finished = ended, finished
        self._lock = threading.Lock()
        self._asked = False
        self._value: Any = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether the call has ended, so that ``result`` does not wait."""
        return self._asked or self._ended()

    def result(self) -> Any:
        """What the call gives, the same objects each time; waits until it has ended.

        Raises what depends on values that were computed: ``IndexRangeError``, ``NonFiniteError``,
        and ``DeviceError`` where the device failed meanwhile.
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

    def then(self, make: Callable[[Any], Any]) -> Started:
        """The same call, whose result is what ``make`` makes of this one's."""
        return Started(self.done, lambda: make(self.result()))

    def __repr__(self) -> str:
        return f"<started call, {'done' if self.done() else 'on its way'}>"


class Ended:
    """A call that ran when it was begun."""

    def __init__(self, run: Callable[[], tuple[Any, ...]]) -> None:
        self.values: tuple[Any, ...] = ()
        self.error: Exception | None = None
        try:
            self.values = run()
        except (IndexRangeError, NonFiniteError) as error:
            self.error = error

    def done(self) -> bool:
        """It has ended."""
        return True

    def finish(self) -> tuple[Any, ...]:
        """The values; raises what was wrong with them."""
        if self.error is not None:
            raise self.error
        return self.values
