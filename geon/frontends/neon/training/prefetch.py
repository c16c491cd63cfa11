"""``Prefetch``: batches that a thread makes before they are asked for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import at_least_one
from .data import Data, Ended, MadeOf

if TYPE_CHECKING:
    from .data import Batch


class Prefetch(MadeOf):
    """``data``, of which a thread makes up to ``ahead`` batches before they are asked for.

    They are the same batches in the same order, as arrays of their own: data may make each in the
    memory of the one before. What the thread raises is raised where its batch is
    asked for. When the epoch ends, early or by Ctrl-C too, the thread ends after the batch that it
    is at. Raises ``ArgumentError`` for an ``ahead`` that is no integer of at least 1.
    """

    def __init__(self, data: Any, ahead: int = 2) -> None:
        at_least_one("Prefetch", "ahead", ahead)
        super().__init__(data)
        self.ahead = ahead

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from the one of number ``start`` on."""
        worker = Worker(self.ahead)
        thread = threading.Thread(
            target=worker.run, args=(self.data, number, start), name="geon prefetch", daemon=True
        )
        try:
            thread.start()
            while True:
                batch, error = worker.made.get()
                if error is not None:
                    raise error
                if batch is None:
                    return
                yield batch
        finally:
            worker.stop()
            if thread.is_alive():
                thread.join()


def own(batch: Batch) -> Batch:
    """A batch whose arrays nobody else writes into; what is mapped from a file is read."""
    return tuple([part.copy() if isinstance(part, np.ndarray) else part for part in batch])


class Worker:
    """What the thread does: it puts pairs into a queue, of a batch and an error."""

    def __init__(self, ahead: int) -> None:
        self.made: queue.Queue[tuple[Batch | None, BaseException | None]] = queue.Queue(ahead)
        self.stopped = threading.Event()

    def run(self, data: Data, number: int, start: int) -> None:
        """Make batches until there are no more, one raises, or nobody asks for more."""
        try:
            with Ended(data.epoch(number, start)) as batches:
                for batch in batches:
                    self.put(own(batch), None)
                    if self.stopped.is_set():
                        return
            self.put(None, None)
        except BaseException as error:  # raised again where the batch is asked for
            self.put(None, error)

    def put(self, batch: Batch | None, error: BaseException | None) -> None:
        """Wait for a place in the queue, unless nobody asks for more."""
        while not self.stopped.is_set():
            try:
                self.made.put((batch, error), timeout=0.1)
                return
            except queue.Full:
                pass

    def stop(self) -> None:
        """Let the thread end; one that waits for a place gets it."""
        self.stopped.set()
        while not self.made.empty():
            self.made.get_nowait()
