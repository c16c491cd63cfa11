"""Orders kernels for low peak memory: a pure function of a graph of numbers.

Two orders are built and the one with the lower peak is used. On a tie, it is the one in which
values wait less for their readers, which then find them in cache. The first order is depth-first.
The second looks further than one kernel: when all readers of a value are ready, it runs them, and
kernels that they make ready, as soon as this leaves less memory in use than before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from ....lazy_dataclasses import dataclass
from ...sizes.limits import MAX_CANDIDATES, MAX_SEARCHED

MAX_READERS = MAX_CANDIDATES  # remaining readers of a value that are run together
# Look-ahead, in kernels, until less memory is in use than at the start.
MAX_LOOKAHEAD_KERNELS = MAX_SEARCHED


@dataclass(frozen=True, eq=False, slots=True)
class KernelStep:
    """A kernel as numbers.

    ``reads`` and ``makes`` are the values in the arena that it reads and computes. ``joins`` are
    pairs of a value that it computes and one that it reads, whose memory the first may overwrite.
    ``after`` are the steps that wait for this one, once per reason. ``rank`` is its position in a
    depth-first order. ``early`` steps run before all others.
    """

    reads: tuple[int, ...]
    makes: tuple[int, ...]
    joins: tuple[tuple[int, int], ...]
    after: tuple[int, ...]
    rank: tuple[int, ...]
    early: bool = False


def order_of_least_memory(
    steps: Sequence[KernelStep], sizes: Sequence[int]
) -> tuple[list[int], int]:
    """Return the numbers of all steps in the better of two orders, and its peak in bytes.

    ``sizes`` are those of values, in bytes.
    """
    graph = _OrderGraph(steps, sizes)
    orders = [_Listing(graph, ahead).run() for ahead in (False, True)]
    assert all(len(order) == len(steps) for order in orders), "the schedule has a cycle"
    costs = [graph.cost(order) for order in orders]
    best = costs.index(min(costs))
    return orders[best], costs[best][0]


class _OrderGraph:
    """Data that all orders share."""

    def __init__(self, steps: Sequence[KernelStep], sizes: Sequence[int]) -> None:
        self.steps, self.sizes = steps, sizes
        self.readers: list[list[int]] = [[] for _ in sizes]
        self.waits = [0] * len(steps)
        self.made = [sum(sizes[v] for v in step.makes) for step in steps]
        for k, step in enumerate(steps):
            for v in step.reads:
                self.readers[v].append(k)
            for after in step.after:
                self.waits[after] += 1

    def freed(self, k: int, left: Sequence[int]) -> int:
        """Return the bytes of the values that a step is the last one to read.

        ``left`` has for each value the number of readers that have not run, this step included.
        """
        return sum(self.sizes[v] for v in self.steps[k].reads if left[v] == 1)

    def rise(self, k: int, left: Sequence[int]) -> int:
        """Return the additional bytes in use while a step runs."""
        rise, used = self.made[k], set[int]()
        for made, read in self.steps[k].joins if rise else ():
            if left[read] == 1 and made not in used and read not in used:
                used |= {made, read}
                rise -= self.sizes[made]
        return rise

    def cost(self, order: Sequence[int]) -> tuple[int, int]:
        """Return the peak bytes of an order, and the sum of the bytes in use after each step."""
        left = [len(readers) for readers in self.readers]
        now = peak = total = 0
        for k in order:
            peak = max(peak, now + self.rise(k, left))
            now += self.made[k] - self.freed(k, left)
            total += now
            for v in self.steps[k].reads:
                left[v] -= 1
        return peak, total


class _Listing:
    """List scheduling: an order that grows by ready steps.

    With ``ahead``, the readers of a value run together to free memory.
    """

    def __init__(self, graph: _OrderGraph, ahead: bool) -> None:
        self.graph, self.ahead = graph, ahead
        self.left = [len(readers) for readers in graph.readers]  # readers that have not run
        self.unready = self.left.copy()  # those of ``left`` that wait for other steps
        self.waits = graph.waits.copy()
        self.done = [False] * len(graph.steps)
        self.early = sum(step.early for step in graph.steps)  # early steps that have not run
        self.order: list[int] = []
        self.ready: list[tuple[bool, bool, tuple[int, ...], int]] = []
        self.touched: dict[int, None] = {}  # values whose remaining readers have changed
        self.closing: list[tuple[int, int, int]] = []  # heap of (peak, bytes after, value to free)

    def run(self) -> list[int]:
        """Return the order."""
        for k, waits in enumerate(self.waits):
            if not waits:
                self.make_ready(k)
        while self.ready:
            if self.ahead and self.close():
                continue
            k = heapq.heappop(self.ready)[-1]
            if not self.done[k]:
                for other in self.better_first(k):
                    self.step(other)
                self.step(k)
        return self.order

    def push(self, k: int) -> None:
        """Queue a ready step; before others if it frees as much as it allocates.

        With look-ahead, a step that allocates nothing comes first, as it never delays others.
        """
        step, made = self.graph.steps[k], self.graph.made[k]
        free = self.ahead and not made
        grows = not (free or 0 < self.graph.freed(k, self.left) >= made)
        heapq.heappush(self.ready, (not step.early, grows, step.rank, k))

    def make_ready(self, k: int) -> None:
        """Record that a step waits for nothing more."""
        for v in self.graph.steps[k].reads:
            self.unready[v] -= 1
            if not self.unready[v]:
                self.touched[v] = None
        self.push(k)

    def step(self, k: int) -> None:
        """Run a step."""
        step = self.graph.steps[k]
        self.done[k] = True
        self.order.append(k)
        for v in step.reads:
            self.left[v] -= 1
            if self.left[v] and not self.unready[v]:
                self.touched[v] = None
                if self.left[v] == 1:
                    self.push(next(self.remaining(v)))
        for after in step.after:
            self.waits[after] -= 1
            if not self.waits[after]:
                self.make_ready(after)
        self.early -= step.early
        if step.early and not self.early:  # all early steps have run: other readers may follow
            self.touched = {v: None for v, left in enumerate(self.left) if left}

    def remaining(self, v: int) -> Iterator[int]:
        """Return the readers of a value that have not run."""
        return (k for k in self.graph.readers[v] if not self.done[k])

    def better_first(self, k: int) -> list[int]:
        """Return ready steps with smaller results after which step ``k`` can run in place.

        They are all other readers of the value that ``k`` may overwrite.
        """
        made, steps = self.graph.made, self.graph.steps
        for _, v in steps[k].joins:
            if not self.unready[v] and 1 < self.left[v] <= MAX_READERS:
                others = [each for each in self.remaining(v) if each != k]
                if all(made[each] < made[k] and self.may_run(each) for each in others):
                    return others
        return []

    def may_run(self, k: int) -> bool:
        """Return True if no early step must run before."""
        return self.graph.steps[k].early or not self.early

    # Look-ahead ---------------------------------------------------------------------------------

    def close(self) -> bool:
        """Free the value with the lowest meanwhile peak, if less memory is in use after.

        Return False if there is none.
        """
        for v in self.touched:
            found = self.together(v)
            if found is not None:
                heapq.heappush(self.closing, (found[0], found[1], v))
        self.touched = {}
        while self.closing:
            *cost, v = heapq.heappop(self.closing)
            found = self.together(v)
            if found is None:
                continue
            peak, now, steps = found
            if [peak, now] > cost and self.closing:  # steps that ran since have raised the cost
                heapq.heappush(self.closing, (peak, now, v))
                continue
            for k in steps:
                self.step(k)
            return True
        return False

    def together(self, v: int) -> tuple[int, int, list[int]] | None:
        """Return how to free a value: bytes at peak, bytes afterwards, and the steps.

        The steps are its readers and some that become ready. Return None if memory in use does not
        fall.
        """
        graph = self.graph
        if self.unready[v] or not 0 < self.left[v] <= MAX_READERS:
            return None
        readers = list(self.remaining(v))
        if not all(map(self.may_run, readers)):
            return None
        joining = {k for k in readers if any(read == v for _, read in graph.steps[k].joins)}
        readers.sort(key=lambda k: (k in joining, graph.made[k], graph.steps[k].rank))
        possible = readers[::-1]
        order: list[int] = []
        now = peak = 0
        while possible and len(order) < MAX_LOOKAHEAD_KERNELS:
            k = possible.pop()
            change = graph.made[k] - graph.freed(k, self.left)
            if self.done[k] or (len(order) >= len(readers) and change > 0):
                continue
            peak = max(peak, now + graph.rise(k, self.left))
            now += change
            order.append(k)
            self.done[k] = True
            for read in graph.steps[k].reads:
                self.left[read] -= 1
            for after in graph.steps[k].after:
                self.waits[after] -= 1
            if len(order) < len(readers):
                continue
            if now < 0:
                break
            possible += self.made_possible(order if len(order) == len(readers) else [k])
        for k in order:
            self.done[k] = False
            for read in graph.steps[k].reads:
                self.left[read] += 1
            for after in graph.steps[k].after:
                self.waits[after] += 1
        return (peak, now, order) if now < 0 else None

    def made_possible(self, steps: Sequence[int]) -> Iterator[int]:
        """Yield steps that are ready after ``steps``, or are now last readers of a value."""
        for k in steps:
            for v in self.graph.steps[k].reads:
                if self.left[v] == 1:
                    last = next(self.remaining(v))
                    if not self.waits[last] and self.may_run(last):
                        yield last
            for after in self.graph.steps[k].after:
                if not self.waits[after] and self.may_run(after):
                    yield after
