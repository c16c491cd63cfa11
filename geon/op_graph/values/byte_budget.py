"""A byte budget of values that others hold: those not used for longest are dropped first."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar
from weakref import ref

Holder = TypeVar("Holder")


class ByteBudget(Generic[Holder]):
    """Limits the bytes of values, each of which has a holder, to ``most``.

    ``drop(holder)`` drops a value. Holders are referred to weakly: a value whose holder dies counts
    no longer. ``lock`` is reentrant; it is held while values are counted and dropped, but not when
    a holder dies or ``drop_later`` is called, which may be at any time.
    """

    def __init__(
        self, most: int, drop: Callable[[Holder], object], lock: AbstractContextManager[Any]
    ) -> None:
        self.most, self.taken, self._drop, self._lock = most, 0, drop, lock
        self._sizes: OrderedDict[ref[Holder], int] = OrderedDict()  # least recently used first
        self._dead: deque[ref[Holder]] = deque()
        self._later: deque[Holder] = deque()
        self.drop_later = self._later.append  # drop the value of a holder at the next count

    def count(self, holder: Holder, size: int) -> None:
        """Count a value of ``size`` bytes as the one that was used last; drop others if needed."""
        with self._lock:
            known = ref(holder, self._dead.append)
            self._forget(known)
            self._sizes[known] = size
            self.taken += size
            self.limit(self.most)

    def _forget(self, known: ref[Holder]) -> None:
        self.taken -= self._sizes.pop(known, 0)

    def limit(self, most: int) -> None:
        """Set the limit, and drop values until they take no more bytes."""
        with self._lock:
            self.most = most
            while self._dead:
                self._forget(self._dead.popleft())
            while self._later:
                self._drop(self._later.popleft())
            while self.taken > most and self._sizes:
                known: Any = next(iter(self._sizes))
                self._forget(known)
                holder = known()
                if holder is not None:
                    self._drop(holder)
