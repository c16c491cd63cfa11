"""Streams of a simulated GPU: work that is done late, in any order that events allow.

A ``Scheduler`` runs the work of its queues when somebody waits, each time from a queue that it
draws. So what must be ordered, and is not, gives wrong values for some seed. A ``Capture`` holds
work of several queues as a graph.
"""

import collections
import random
import threading
from typing import NamedTuple


class Place(NamedTuple):
    """A place in a queue, and all places before it, by queue."""

    queue: object
    number: int
    earlier: dict


class Wait(NamedTuple):
    """An item of a queue that is done once another queue has come to a place."""

    queue: object
    number: int


class Queue:
    """Items that are done in their order; ``begun`` and ``done`` count them.

    ``earlier`` has the number of the last item of each queue that comes before what is added next.
    """

    capture = None

    def __init__(self, kept=True):
        self.kept = kept
        self.waiting = collections.deque()
        self.begun = self.done = 0
        self.earlier = {}

    def add(self, item):
        self.waiting.append(item)
        self.begun += 1
        self.earlier[self] = self.begun

    def place(self):
        return Place(self, self.begun, dict(self.earlier))

    def follow(self, place):
        self.add(Wait(place.queue, place.number))
        for queue, number in place.earlier.items():
            self.earlier[queue] = max(number, self.earlier.get(queue, 0))

    def follows(self, place):
        """Whether what is added next comes after a place."""
        return self.earlier.get(place.queue, 0) >= place.number

    def is_ready(self):
        head = self.waiting[0]
        return not isinstance(head, Wait) or head.queue.done >= head.number

    def run(self):
        item = self.waiting.popleft()
        self.done += 1
        if not isinstance(item, Wait):
            item()


class Scheduler:
    """Queues of one device; ``order`` has the queue of each item that was run.

    One queue goes first for some time, and another one comes last.
    """

    def __init__(self, seed=0):
        self.random, self.lock = random.Random(seed), threading.RLock()
        self.queues, self.order = [], []

    def queue(self, kept=True):
        """A new queue; one that is not kept is dropped once it is empty."""
        made = Queue(kept)
        with self.lock:
            self.queues.append(made)
        return made

    def step(self):
        """Run the next item of any queue; False where none can be run."""
        with self.lock:
            self.queues = [queue for queue in self.queues if queue.kept or queue.waiting]
            ready = [queue for queue in self.queues if queue.waiting and queue.is_ready()]
            if not ready:
                return False
            if self.random.random() < 0.05:
                self.random.shuffle(self.queues)  # of those that can run, the first one does
            chosen = ready[0]
            self.order.append(chosen)
            chosen.run()
            return True

    def run_until(self, ends):
        with self.lock:
            while not ends():
                assert self.step(), "queues wait for places that are never reached"

    def run_what_can_be_run(self):
        while self.step():
            pass

    def run_all(self):
        with self.lock:
            self.run_what_can_be_run()
            assert not any(queue.waiting for queue in self.queues), "queues wait for each other"


class Capture:
    """A graph of the work of several queues, which all meet at the end of the first."""

    def __init__(self):
        self.queues = {}  # by stream, the first one in front

    def queue(self, stream):
        """The work of a stream, which is captured from now on."""
        if stream not in self.queues:
            self.queues[stream] = Queue()
            self.queues[stream].capture = self
        return self.queues[stream]

    def check(self):
        first = next(iter(self.queues.values()))
        for queue in self.queues.values():
            assert first.follows(queue.place()), "a captured graph has lanes that were not joined"

    def launch(self, scheduler, target):
        """Add the work to a queue, and that of other lanes to queues of their own."""
        with scheduler.lock:
            lanes, bases, start = {}, {}, target.place()
            for number, queue in enumerate(self.queues.values()):
                lanes[queue] = scheduler.queue(kept=False) if number else target
                if number:
                    lanes[queue].follow(start)
                bases[queue] = lanes[queue].begun
            for queue, lane in lanes.items():
                for item in queue.waiting:
                    if isinstance(item, Wait):
                        item = Wait(lanes[item.queue], bases[item.queue] + item.number)
                    lane.add(item)
