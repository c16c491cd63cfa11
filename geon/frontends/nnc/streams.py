"""Streams and signals: commands that run in order, side by side with those of other streams."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

POLL_SECONDS = 1e-4  # between two looks at a signal that is waited for with a timeout

Mark = tuple[Any, Any]  # a stream of a GPU, and an event of it


class _Lanes:
    """Numbers from 0 on, the smallest free one first.

    Streams that are made and closed in turn get the same numbers, and so the same CUDA streams and
    compiled programs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Return a number that nobody has."""
        with self._lock:
            if not self._free:
                self._count += 1
                return self._count - 1
            number = min(self._free)
            self._free.remove(number)
            return number

    def give_back(self, number: int) -> None:
        """Let others take a number. Finalisers call this, so it takes no lock."""
        self._free.append(number)


_lanes = _Lanes()
_thread = threading.local()  # its ``stream`` is a weak reference to that of this thread


def current_stream() -> Stream | None:
    """Return the stream whose commands this thread runs; None in a thread of the user."""
    found: Callable[[], Stream | None] = getattr(_thread, "stream", lambda: None)
    return found()


def _enter(stream: weakref.ref[Stream]) -> None:
    _thread.stream = stream


class Stream:
    """A queue of commands that run one after another.

    A thread of its own runs them, side by side with those of other streams: compiled programs
    release the interpreter's lock. On each GPU, the stream has a CUDA stream of its own, numbered
    ``lane``, to which the thread submits commands without waiting for them, as long as their
    results stay there. An error of a command is raised by the next ``wait``, and the commands that
    have not begun are dropped.
    """

    def __init__(self) -> None:
        self.lane = _lanes.take()
        self._release = weakref.finalize(self, _lanes.give_back, self.lane)
        self._worker = ThreadPoolExecutor(1, "nnc-stream", _enter, (weakref.ref(self),))
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._is_closed = False
        # The following are used by the thread alone.
        self._devices: set[Any] = set()  # streams of GPUs that commands were submitted to
        self._marks: list[Mark] = []  # of signals, which later commands come after
        self._calls: deque[Any] = deque()  # that GPUs may not have done yet

    def submit(self, run: Callable[[], Any]) -> None:
        """Add a function to the queue."""
        self._add(self._guarded, run)

    def _add(self, function: Callable[..., Any], *args: Any) -> Future[None]:
        with self._lock:
            return self._worker.submit(function, *args)

    def _guarded(self, run: Callable[[], Any]) -> None:
        if self._error is None:
            self._note_error(run)

    def _note_error(self, run: Callable[[], Any]) -> None:
        try:
            run()
        except BaseException as error:
            self._error = self._error or error

    def add_callback(self, callback: Callable[[], Any]) -> None:
        """Call a function when all commands that are in the queue now have run."""

        def run() -> None:
            self._settle()
            callback()

        self.submit(run)

    def emit(self, signal: Signal) -> None:
        """Set a signal when all commands that are in the queue now have run or were dropped.

        On GPUs, an event is recorded behind those that were submitted there.
        """
        signal.clear()
        self._add(self._emit, signal)

    def _emit(self, signal: Signal) -> None:
        marks = list(self._marks)
        self._note_error(lambda: marks.extend([(each, each.mark()) for each in self._devices]))
        signal.emitted(marks)

    def wait_for(self, signal: Signal) -> None:
        """Let the commands that are added from now on wait for a signal.

        Those on a GPU are submitted once the signal is emitted, and wait for its events there.
        """
        self.submit(lambda: self._marks.extend(signal.marks_when_emitted()))

    def begin_on(self, device: Any) -> None:
        """Prepare the submission of a command to a stream of a GPU, in the thread of this stream.

        The command comes after the signals that this stream waits for.
        """
        self._devices.add(device)
        for other, mark in self._marks:
            if other.owner is device.owner:
                device.follow(mark)
            else:
                other.wait(mark)
        self._marks.clear()

    def add_call(self, call: Any) -> None:
        """Note a started call of this stream, and raise the error of an earlier one that failed."""
        self._calls.append(call)
        while self._calls[0] is not call and self._calls[0].done():
            self._calls.popleft().result()

    def _settle(self) -> None:
        """Wait for all signals and calls; raise the first error of a call."""
        for device, mark in self._marks:
            device.wait(mark)
        self._marks.clear()
        errors = []
        while self._calls:
            try:
                self._calls.popleft().result()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def wait(self) -> None:
        """Wait until all commands have run; raise the error of one that failed."""
        if not self._is_closed:
            self._add(self._note_error, self._settle).result()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Wait, and end the thread."""
        try:
            self.wait()
        finally:
            self._is_closed = True
            self._worker.shutdown()
            self._release()


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
    """A mark in a stream that other streams wait for; one that was never emitted is set.

    On GPUs it is an event of each CUDA stream that the stream has submitted commands to.
    """

    def __init__(self) -> None:
        super().__init__()
        self._marks: Sequence[Mark] = ()
        self.set()

    def emitted(self, marks: Sequence[Mark]) -> None:
        """Let streams come after these events, which were recorded."""
        self._marks = tuple(marks)
        self.set()

    def marks_when_emitted(self) -> Sequence[Mark]:
        """Wait until the signal is emitted, and return its events, which may not have come yet."""
        super().wait()
        return self._marks

    def is_set(self) -> bool:
        """Return True if all commands before the signal have run."""
        return super().is_set() and all(device.passed(mark) for device, mark in self._marks)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all commands before the signal have run; False after ``timeout`` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        if not super().wait(timeout):
            return False
        for device, mark in self._marks:
            while end is not None and not device.passed(mark):
                if time.monotonic() > end:
                    return False
                time.sleep(POLL_SECONDS)
            device.wait(mark)
        return True
