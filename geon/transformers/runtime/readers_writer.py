"""The lock that calls take: those that write variables exclude all others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from signal import SIGINT, default_int_handler
from typing import Any

try:  # what is below the functions of signal, which take ten times as long for their enumerations
    from _signal import getsignal, signal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal, signal


class ReadersWriterLock:
    """Many readers or one writer; nobody who waits is passed by for ever.

    Whoever waits holds ``_turn``, so that those who come later queue behind.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        self._readers = 0
        self._writer: int | None = None
        self._depth = 0

    def enter_read(self) -> None:
        """Wait until nobody else writes."""
        if self._writer == threading.get_ident():
            self._depth += 1
            return
        with self._turn, self._lock:
            while self._writer is not None:
                self._condition.wait()
            self._readers += 1

    def leave_read(self) -> None:
        """Let writers in, where this was the last reader."""
        if self._writer == threading.get_ident():
            self.leave_write()
            return
        with self._lock:
            self._readers -= 1
            if not self._readers:
                self._condition.notify_all()

    def enter_write(self) -> None:
        """Wait until nobody else reads or writes."""
        if self._writer == threading.get_ident():
            self._depth += 1
            return
        with self._turn, self._lock:
            while self._writer is not None or self._readers:
                self._condition.wait()
            self._writer = threading.get_ident()
            self._depth = 1

    def leave_write(self) -> None:
        """Let others in, where this was the outermost block."""
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._writer = None
                self._condition.notify_all()


_noted: list[Reading] = []  # blocks in which Ctrl-C came, and is an error at their end


class Reading:
    """A block that reads variables, while nobody writes; Ctrl-C waits for its end.

    The handler of the main thread is replaced before the lock is taken and put back after it is
    released: an interrupt in between would leave it taken.
    """

    __slots__ = ("lock", "pending", "previous")

    def __init__(self, lock: ReadersWriterLock) -> None:
        self.lock = lock
        self.previous: Callable[..., Any] | None = None
        self.pending: tuple[int, Any] | None = None

    def enter(self) -> None:
        """Take the lock with others that read."""
        self.lock.enter_read()

    def leave(self) -> None:
        """Release the lock."""
        self.lock.leave_read()

    def __enter__(self) -> Any:
        if threading.current_thread() is threading.main_thread():
            handler = getsignal(SIGINT)
            if callable(handler):
                self.previous = handler
                signal(SIGINT, self._note)
        self.enter()
        return self

    def _note(self, number: int, frame: Any) -> None:
        self.pending = (number, frame)
        if raises_at_once():
            _noted.append(self)

    def __exit__(self, *_: object) -> None:
        self.leave()
        if self.previous is not None:
            signal(SIGINT, self.previous)
            if self.pending is not None:
                _noted.clear()
                self.previous(*self.pending)


class Writing(Reading):
    """A block that writes variables: alone, and Ctrl-C waits for its end."""

    __slots__ = ()

    def enter(self) -> None:
        """Take the lock alone."""
        self.lock.enter_write()

    def leave(self) -> None:
        """Release the lock."""
        self.lock.leave_write()


def raises_at_once() -> bool:
    """Whether Ctrl-C raises ``KeyboardInterrupt`` in this thread, now or at the end of a block.

    It does in the main thread, unless the user has a handler of his own.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    handler: Any = getsignal(SIGINT)
    while getattr(handler, "__func__", None) is Reading._note:
        handler = handler.__self__.previous
    return handler is default_int_handler


def stop_if_interrupted() -> None:
    """Raise ``KeyboardInterrupt`` where Ctrl-C waits for the end of a block of this thread."""
    if _noted and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
