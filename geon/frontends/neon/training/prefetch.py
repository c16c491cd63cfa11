"""``Prefetch``: batches that a thread prepares in advance."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import at_least_one
from .data import ClosingBatches, Data, MadeOf

if TYPE_CHECKING:
    from .data import Batch


class Prefetch(MadeOf):
    """``data``, of which a thread prepares up to ``ahead`` batches in advance.

    They are the same batches in the same order, as copies: data may reuse the memory of the
    previous batch. An error in the thread is raised where its batch is requested. When the epoch
    ends, also early or by Ctrl-C, the thread ends after its current batch. Raises ``ArgumentError``
    unless ``ahead`` is an integer of at least 1.
    """

    def __init__(self, data: Any, ahead: int = 2) -> None:
        at_least_one("Prefetch", "ahead", ahead)
        super().__init__(data)
        self.ahead = ahead

    def epoch(self, number: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, from number ``start`` on."""
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


def own_batch(batch: Batch) -> Batch:
    """Return a batch with copies of its arrays; memory-mapped ones are read."""
    return tuple([part.copy() if isinstance(part, np.ndarray) else part for part in batch])


class Worker:
    """The thread's work: it puts (batch, error) pairs into a queue."""

    def __init__(self, ahead: int) -> None:
        self.made: queue.Queue[tuple[Batch | None, BaseException | None]] = queue.Queue(ahead)
        self.stopped = threading.Event()

    def run(self, data: Data, number: int, start: int) -> None:
        """Make batches until there are no more, one raises, or the consumer stops."""
        try:
            with ClosingBatches(data.epoch(number, start)) as batches:
                for batch in batches:
                    self.put(own_batch(batch), None)
                    if self.stopped.is_set():
                        return
            self.put(None, None)
        except BaseException as error:  # raised again in the consumer
            self.put(None, error)

    def put(self, batch: Batch | None, error: BaseException | None) -> None:
        """Wait for space in the queue, unless the consumer has stopped."""
        while not self.stopped.is_set():
            try:
                self.made.put((batch, error), timeout=0.1)
                return
            except queue.Full:
                pass

    def stop(self) -> None:
        """Let the thread end, and make space if it waits for the queue."""
        self.stopped.set()
        while not self.made.empty():
            self.made.get_nowait()
