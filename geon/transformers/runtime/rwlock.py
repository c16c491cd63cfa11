"""The lock that calls take: those that write variables exclude all others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from signal import SIGINT, default_int_handler
from typing import Any

from ...errors import UnavailableError

try:  # what is below the functions of signal, which take ten times as long for their enumerations
    # A module of CPython without type stubs, hence the ignored error of the checker.
    from _signal import getsignal, signal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal, signal


class ReadersWriterLock:
    """Many readers or one writer; nobody who waits is passed by for ever.

    Whoever waits holds ``_turn``, so that those who come later queue behind. A thread may enter
    again what it is in: a handler of a signal that calls does, between any two steps of what is
    below, and leaves before these go on. So the locks are such that one thread may take them twice.
    """

    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # how often each thread reads
        self._readers = 0
        self._writer: int | None = None
        self._depth = 0
        self._renew()

    def _renew(self) -> None:
        self._turn = threading.RLock()
        self._lock = threading.RLock()
        self._condition = threading.Condition(self._lock)

    def enter_read(self) -> None:
        """Wait until nobody else writes."""
        own = threading.get_ident()
        if self._writer == own:
            self._depth += 1
            return
        if own in self._held:  # whoever waits to write waits for this thread
            with self._lock:
                self._count(own, 1)
            return
        with self._turn, self._lock:
            while self._writer is not None:
                self._condition.wait()
            self._count(own, 1)

    def leave_read(self) -> None:
        """Let writers in, where this was the last reader."""
        own = threading.get_ident()
        if self._writer == own:
            self.leave_write()
            return
        with self._lock:
            self._count(own, -1)
            if not self._readers:
                self._condition.notify_all()

    def _count(self, thread: int, more: int) -> None:
        """One more reader or one fewer; a thread is known to read for as long as it is counted."""
        count = self._held.get(thread, 0) + more
        if more > 0:
            self._held[thread] = count
        self._readers += more
        if count:
            self._held[thread] = count
        else:
            del self._held[thread]

    def enter_write(self) -> None:
        """Wait until nobody else reads or writes; ``UnavailableError`` in a thread that reads."""
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
        """Let others in, where this was the outermost block."""
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._writer = None
                self._condition.notify_all()

    def forget_others(self) -> None:
        """In a forked child: no other thread reads or waits; none writes, as a fork reads."""
        own = threading.get_ident()
        self._held = {thread: n for thread, n in self._held.items() if thread == own}
        self._readers = sum(self._held.values())
        self._renew()


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
