"""Readers-writer lock of calls: a call that writes variables excludes all others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from signal import SIGINT, default_int_handler
from typing import Any

from ...errors import UnavailableError

try:  # the functions of signal take ten times as long, for their enumerations
    # A module of CPython without type stubs, hence the ignored error of the checker.
    from _signal import getsignal, signal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal, signal


class ReadersWriterLock:
    """A lock for many readers or one writer, without starvation.

    A waiting thread holds ``_turn``, so that later ones queue behind it. It is reentrant: a signal
    handler may make a call between any two steps of the methods below, and completes before they
    continue. So the inner locks are reentrant too.
    """

    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # number of read locks per thread
        self._readers = 0
        self._writer: int | None = None
        self._depth = 0
        self._renew()

    def _renew(self) -> None:
        self._turn = threading.RLock()
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)

    def enter_read(self) -> None:
        """Wait until no other thread writes."""
        own = threading.get_ident()
        if self._writer == own:
            self._depth += 1
            return
        if own in self._held:  # a waiting writer waits for this thread
            with self._lock:
                self._count(own, 1)
            return
        with self._turn, self._lock:
            while self._writer is not None:
                self._condition.wait()
            self._count(own, 1)

    def leave_read(self) -> None:
        """Release a read lock; wake writers after the last one."""
        own = threading.get_ident()
        if self._writer == own:
            self.leave_write()
            return
        with self._lock:
            self._count(own, -1)
            if not self._readers:
                self._condition.notify_all()

    def _count(self, thread: int, more: int) -> None:
        """Add ``more`` to a thread's read locks; the thread is registered as long as it has any."""
        count = self._held.get(thread, 0) + more
        if more > 0:
            self._held[thread] = count
        self._readers += more
        if count:
            self._held[thread] = count
        else:
            del self._held[thread]

    def enter_write(self) -> None:
        """Wait until no other thread holds the lock; raise ``UnavailableError`` in a reader."""
        own = threading.get_ident()
        if self._writer == own:
            self._depth += 1
            return
        if own in self._held:
            raise UnavailableError(
                "variables cannot be written here: this thread is in a call that reads them, and "
                "was called again by a handler of a signal or by what that call calls; note there "
                "what is to be done, and do it once the call has ended"
            )
        with self._turn, self._lock:
            while self._writer is not None or self._readers:
                self._condition.wait()
            self._writer = own
            self._depth = 1

    def leave_write(self) -> None:
        """Release a write lock; wake others after the outermost one."""
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._writer = None
                self._condition.notify_all()

    def forget_others(self) -> None:
        """Reset the lock in a forked child, which has only this thread; no thread was writing."""
        own = threading.get_ident()
        self._held = {thread: n for thread, n in self._held.items() if thread == own}
        self._readers = sum(self._held.values())
        self._renew()


_noted: list[ReadSection] = []  # blocks during which Ctrl-C was pressed, to be raised at their end


class ReadSection:
    """A ``with`` block that reads variables; no thread writes meanwhile, and Ctrl-C is deferred.

    The handler of the main thread is replaced before the lock is taken and restored after it is
    released: an interrupt in between would leave it locked.
    """

    __slots__ = ("lock", "pending", "previous")

    def __init__(self, lock: ReadersWriterLock) -> None:
        self.lock = lock
        self.previous: Callable[..., Any] | None = None
        self.pending: tuple[int, Any] | None = None

    def enter(self) -> None:
        """Take the lock, shared with other readers."""
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
        try:
            self.enter()
        except BaseException:
            self._end()
            raise
        return self

    def _note(self, number: int, frame: Any) -> None:
        self.pending = (number, frame)
        if raises_at_once():
            _noted.append(self)

    def __exit__(self, *_: object) -> None:
        self.leave()
        self._end()

    def _end(self) -> None:
        if self.previous is not None:
            signal(SIGINT, self.previous)
            if self.pending is not None:
                _noted.clear()
                self.previous(*self.pending)


class Writing(ReadSection):
    """A ``with`` block that writes variables exclusively; Ctrl-C is deferred."""

    __slots__ = ()

    def enter(self) -> None:
        """Take the lock exclusively."""
        self.lock.enter_write()

    def leave(self) -> None:
        """Release the lock."""
        self.lock.leave_write()


def raises_at_once() -> bool:
    """Return True if Ctrl-C raises ``KeyboardInterrupt`` in this thread, now or deferred.

    This holds for the main thread, unless the user has installed another handler.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    handler: Any = getsignal(SIGINT)
    while getattr(handler, "__func__", None) is ReadSection._note:
        handler = handler.__self__.previous
    return handler is default_int_handler


def stop_if_interrupted() -> None:
    """Raise ``KeyboardInterrupt`` if a deferred Ctrl-C is pending in this thread."""
    if _noted and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt
