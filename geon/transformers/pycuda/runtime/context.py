"""CUDA context handling: entering it, graph capture, and objects that must be freed inside of it.

A ``device`` here is a ``gpu.GpuDevice``, one stream of a GPU. Each has a lock of its own, which
orders the submissions of threads to that stream; work on several streams of a GPU is submitted side
by side. Finalisers may run in any thread between any two steps, so they take none of these locks.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

from ....op_graph.core.collection import without_collecting

CAPTURES = threading.RLock()
"""Held while a graph is captured: meanwhile no other thread waits for a whole context, which the
driver refuses. The lock of a stream is taken before it."""


class Entered:
    """A ``with`` block in which a device's context is current for this thread.

    Errors of the driver become device errors with the text ``what``, formatted with ``values`` only
    then.
    """

    __slots__ = ("device", "values", "what")

    def __init__(self, device: Any, what: str, values: tuple[Any, ...]) -> None:
        self.device, self.what, self.values = device, what, values

    def __enter__(self) -> None:
        device = self.device
        device.lock.acquire()
        try:
            if device.lost is not None:
                device.refuse_lost()
            if device.depth == 0:
                device.context.push()
            device.depth += 1
        except BaseException:
            device.lock.release()
            raise

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        device = self.device
        try:
            if isinstance(error, device.driver.Error):
                raise device.translated(self.what.format(*self.values), error) from None
        finally:
            device.depth -= 1
            if device.depth == 0:
                device.context.pop()
            device.lock.release()


class Owned:
    """A PyCUDA object that is freed in its device's context; elsewhere it would leak.

    It may be dropped in any thread, so freeing it waits for no lock of a stream.
    """

    __slots__ = ("device", "made")

    def __init__(self, device: Any, made: Any) -> None:
        self.device, self.made = device, made

    def __del__(self) -> None:
        if self.device.lost is None and not sys.is_finalizing():
            with pushed(self.device.context):
                self.made = None


class Graph:
    """A captured CUDA graph; calling it launches it."""

    def __init__(self, device: Any, bindings: Any, made: Any) -> None:
        self.device, self.bindings, self.made = device, bindings, made

    def __call__(self) -> None:
        with self.device.entered("a graph is launched"):
            self.device.done(self.bindings.cuGraphLaunch(self.made, self.device.stream.handle))

    def __del__(self) -> None:
        if self.device.lost is None and not sys.is_finalizing():
            with pushed(self.device.context):
                self.bindings.cuGraphExecDestroy(self.made)


@contextlib.contextmanager
def pushed(context: Any) -> Iterator[None]:
    """Return a ``with`` block in which a context is current for this thread, without a lock."""
    context.push()
    try:
        yield
    finally:
        context.pop()


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """Return a ``with`` block in which a graph is captured, by one thread at a time.

    Garbage collection is disabled meanwhile: a finaliser could do what capture forbids.
    """
    with CAPTURES, without_collecting():
        yield
