"""Streams and signals: commands that run in order on a worker thread, side by side with others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Stream:
    """A queue of commands that run one after another, on a thread of its own.

    Commands on several streams run side by side: compiled programs release the interpreter's lock.
    An error of a command is raised by the next ``wait``, and the commands after it are dropped.
    """

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(1, "nnc-stream")
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._last: Future[None] | None = None

    def submit(self, run: Callable[[], Any]) -> None:
        """Add a function to the queue."""
        with self._lock:
            self._last = self._worker.submit(self._guarded, run)

    def _guarded(self, run: Callable[[], Any]) -> None:
        if self._error is not None:
            return
        try:
            run()
        except BaseException as error:
            self._error = error

    def add_callback(self, callback: Callable[[], Any]) -> None:
        """Call a function when all commands that are in the queue now have run."""
        self.submit(callback)

    def emit(self, signal: Signal) -> None:
        """Set a signal when all commands that are in the queue now have run or were dropped."""
        signal.clear()
        with self._lock:
            self._last = self._worker.submit(signal.set)

    def wait_for(self, signal: Signal) -> None:
        """Let the commands that are added from now on wait for a signal."""
        self.submit(signal.wait)

    def wait(self) -> None:
        """Wait until the queue is empty; raise the error of a command that failed."""
        last = self._last
        if last is not None:
            last.result()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Wait, and end the thread."""
        self.wait()
        self._worker.shutdown()


def wait_for_all(streams: Sequence[Stream]) -> None:
    """Wait for all streams, then raise the first error of a command that failed."""
    errors = []
    for stream in streams:
        try:
            stream.wait()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


class Signal(threading.Event):
    """A mark in a stream that other streams wait for; one that was never emitted is set."""

    def __init__(self) -> None:
        super().__init__()
        self.set()
