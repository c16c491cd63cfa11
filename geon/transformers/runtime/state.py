"""State of a transformer: variables' memory, initial values and locking between calls."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn
from weakref import WeakSet

import numpy as np

from ...errors import (
    ArgumentError,
    AxisError,
    ClosedError,
    FeedError,
    SizeError,
)
from .dims import check_size, has_all_lengths, open_sizes, resolve
from .feeding import make_feed_of
from .memory import HOST, Memory
from .rwlock import ReadersWriterLock, ReadSection, Writing
from .variable_slot import Slot as Slot

_alive: WeakSet[State] = WeakSet()
_fork = threading.RLock()  # taken first, by a thread that forks
_forking: list[State] = []  # states locked by the fork


def _hold_all() -> None:
    """Before a fork, wait for writing calls of other threads and block new ones.

    So a child has a consistent state, and no lock is held by a thread that it lacks.
    """
    _fork.acquire()
    for state in sorted(_alive, key=id):
        state.lock.acquire()
        state.access.enter_read()
        _forking.append(state)


def _release_all() -> None:
    while _forking:
        state = _forking.pop()
        state.access.leave_read()
        state.lock.release()
    _fork.release()


def _release_in_child() -> None:
    for state in _forking:
        state.access.forget_others()
    _release_all()


os.register_at_fork(
    before=_hold_all, after_in_parent=_release_all, after_in_child=_release_in_child
)


class State:
    """The storage of a transformer: one value for each variable, and the lock that calls take.

    ``defaults`` returns the default lengths of open names, ``default_origin`` the source of one of
    them; ``memory`` holds the values. Locks are taken in this order: ``lock``, then ``access``.
    """

    def __init__(
        self,
        defaults: Callable[[], Mapping[str, int]] = dict,
        memory: Memory = HOST,
        default_origin: Callable[[str], str] = "the default length of {}".format,
    ) -> None:
        self.memory = memory
        self.access = ReadersWriterLock()
        self.lock = threading.RLock()
        self.defaults, self.default_origin = defaults, default_origin
        self.slots: list[Slot] = []
        self.starting: list[Slot] = []
        self.tentative: list[Slot] = []  # allocated by a call that has not succeeded yet
        self.epoch = 0
        self.version = np.zeros(1, np.int64)  # incremented whenever a variable is written
        # A memoryview: incrementing the NumPy array takes as long as the rest of a set.
        self._version = self.version.data
        self.lost: str | None = None
        _alive.add(self)

    def usable(self) -> None:
        """Raise ``ClosedError`` if the transformer was closed or its state was lost."""
        if self.lost is not None:
            raise ClosedError(self.lost)

    def close(self, reason: str) -> None:
        """Free all memory; from now on everything raises ``ClosedError`` with ``reason``."""
        with self.lock, Writing(self.access):
            self.lost = reason
            self.epoch += 1
            for slot in self.slots:
                slot.value = None
            self.slots.clear()

    # Memory -------------------------------------------------------------------------------------

    def holders(self, name: str) -> dict[int, Slot]:
        """Return the lengths that variables have for an open name, each with its first variable."""
        found: dict[int, Slot] = {}
        for slot in self.slots:
            if name in slot.lengths:
                found.setdefault(slot.lengths[name], slot)
        return found

    def lengths(self) -> dict[str, int]:
        """Return the open lengths that are equal in all variables that have them."""
        found: dict[str, int] = {}
        differing: set[str] = set()
        for slot in self.slots:
            for name, size in slot.lengths.items():
                if found.setdefault(name, size) != size:
                    differing.add(name)
        return {name: size for name, size in found.items() if name not in differing}

    def chosen(self, slot: Slot, lengths: Mapping[str, int]) -> dict[str, int]:
        """Return the open lengths of a variable that has none yet.

        Each variable has its own. A length is that of its initial value and of ``lengths``, else
        the one that all other variables have, else the default. Raises ``AxisError`` if it is
        unknown, if others have several, and if two sources disagree.
        """
        chosen: dict[str, int] = {}
        for dim in slot.dims:
            for name in () if isinstance(dim, int) else dim.names:
                places: list[tuple[str, Mapping[str, int]]] = [
                    ("the initial value", slot.learned),
                    ("the call, lengths= or axis.length", lengths),
                ]
                held = {} if name in lengths else self.holders(name)
                if held and name not in slot.learned:
                    self._refuse_several(slot, name, held)
                    chosen[name] = next(iter(held))
                if name not in lengths and not held:
                    places.append((self.default_origin(name), self.defaults()))
                sizes = [(where, source[name]) for where, source in places if name in source]
                for where, size in sizes[1:]:
                    if size != sizes[0][1]:
                        raise AxisError(
                            f"{slot.label} needs one length for {name}: it is {sizes[0][1]} in "
                            f"{sizes[0][0]} and {size} in {where}; give both the same length"
                        )
                chosen.update((name, size) for _, size in sizes)
            if not has_all_lengths(dim, chosen):
                raise AxisError(
                    f"{slot.label} has the open length {dim}, which nothing gives yet: set the "
                    "axis's length, call a computation with data, or give lengths="
                )
        return chosen

    def _refuse_several(self, slot: Slot, name: str, held: Mapping[int, Slot]) -> None:
        """Raise ``AxisError`` if other variables have several lengths for a name."""
        if len(held) > 1:
            (size, one), (second, other) = list(held.items())[:2]
            raise AxisError(
                f"{slot.label} needs a length for {name}, which is {size} in {one.label} and "
                f"{second} in {other.label}: say which with lengths={{{name}: ...}}, set the "
                "variable to an array, or call a computation with data"
            )

    def shape(self, slot: Slot, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape that a variable has, or gets with these lengths; raise as ``chosen``."""
        chosen = self.chosen(slot, lengths)
        return tuple([resolve(dim, chosen) for dim in slot.dims])

    def allocate(self, slot: Slot, lengths: Mapping[str, int]) -> None:
        """Allocate ``slot``, taking open lengths from ``lengths`` or known ones."""
        if slot.value is None:
            shape = self.shape(slot, lengths)
            check_size(slot.dtype.itemsize * math.prod(shape), slot.label, self.memory.room())
            slot.value, slot.shape = self.memory.allocate(shape, slot.dtype), shape
            self.wrote()
            slot.lengths = self.chosen(slot, lengths)

    def foreseen(self, slots: Iterable[Slot], lengths: Mapping[str, int]) -> dict[str, int]:
        """Return the open lengths that ``slots`` have or would get; raise as ``allocate``."""
        with self.lock:
            found: dict[str, int] = {}
            for slot in slots:
                found.update(slot.lengths)
                if slot.value is None:
                    found.update(self.chosen(slot, {**lengths, **found}))
                    size = math.prod([resolve(dim, found) for dim in slot.dims])
                    check_size(slot.dtype.itemsize * size, slot.label, self.memory.room())
            return found

    def allocatable(self, slot: Slot) -> bool:
        """Return True if ``slot`` has memory, or fits and has lengths that need no call's data.

        Lengths of other variables do not count: a call may bring another length.
        """
        try:
            if slot.value is None:
                for dim in slot.dims:
                    for name in () if isinstance(dim, int) else dim.names:
                        if name not in slot.learned and self.holders(name):
                            return False
                size = slot.dtype.itemsize * math.prod(self.shape(slot, {}))
                check_size(size, slot.label, self.memory.room())
        except (AxisError, SizeError):
            return False
        return True

    def allocate_all(self, lengths: Mapping[str, int]) -> None:
        """Allocate every variable."""
        with self.lock:
            self.usable()
            self.tentative = []
            for slot in self.slots:
                self.allocate(slot, lengths)

    # Initial values -----------------------------------------------------------------------------

    def initialize(self, lengths: Mapping[str, int], force: bool = False) -> None:
        """Set each variable not yet set to its initial value; with ``force``, all that have one."""
        with self.lock:
            self.allocate_all(lengths)
            self.begin(self.slots, force)

    def ensure(
        self, needed: Sequence[Slot], read: Sequence[Slot], lengths: Mapping[str, int]
    ) -> None:
        """Allocate ``needed`` with these lengths; set those in ``read`` that are not set yet.

        Other variables whose lengths are known are initialized too, so that their values do not
        depend on which computation is called first; one of them that fails stays unset. If this
        raises, no variable has received an open length.
        """
        with self.lock:
            self.usable()
            if all(slot.value is not None for slot in needed) and all(s.ready for s in read):
                return
            self.tentative = []
            fresh = [slot for slot in self.slots if slot.value is None]
            try:
                waiting = self.with_reads(needed)
                for slot in waiting:
                    self.allocate(slot, lengths)
                for slot in self.slots:
                    if slot not in waiting and self.allocatable(slot):
                        self.allocate(slot, {})
                slots = [s for s in self.slots if s.value is not None and s not in self.starting]
                self.begin(slots, strict=self.with_reads(read))
                for slot in read:
                    self.require(slot)
            except BaseException:
                self.undo(fresh)
                raise
            self.tentative = fresh

    def with_reads(self, slots: Iterable[Slot]) -> dict[Slot, None]:
        """Return these slots, and those that must be set before them."""
        found = dict.fromkeys(slots)
        stack = list(found)
        while stack:
            slot = stack.pop()
            new = [s for s in slot.reads if not (slot.ready or s in found)]
            found.update(dict.fromkeys(new))
            stack += new
        return found

    def undo(self, slots: Iterable[Slot] | None = None) -> None:
        """Undo the memory and open lengths that a failed call gave variables."""
        with self.lock, Writing(self.access):
            slots = self.tentative if slots is None else slots
            self.tentative = []
            for slot in slots:
                if slot.lengths and slot.alone and slot not in self.starting:
                    slot.value, slot.lengths = None, {}
                    slot.ready = slot.started = False
                    self.epoch += 1

    def require(self, slot: Slot) -> None:
        """Raise ``ArgumentError`` if ``slot`` has no value."""
        if slot.ready:
            return
        if slot in self.starting:
            self.refuse_cycle(self.starting)
        raise ArgumentError(
            f"the {slot.label} is read but has no value: give it initial_value=, or "
            "transformer.set(variable, array)"
        )

    def refuse_cycle(self, slots: Iterable[Slot]) -> NoReturn:
        """Raise for initial values that depend on each other."""
        raise ArgumentError(
            f"the initial values of {', '.join(s.label for s in slots)} depend on each other; "
            "give one of them a value that reads none of the others"
        )

    def begin(
        self, slots: Iterable[Slot], force: bool = False, strict: Iterable[Slot] | None = None
    ) -> None:
        """Set variables to their initial values, in order of dependence.

        Variables that are set already stay unchanged, unless ``force`` is given. A failure raises;
        if ``strict`` is given and does not contain the variable, it stays unset instead.
        """

        def due(slot: Slot) -> bool:
            return slot.start is not None and (force or not (slot.ready or slot.started))

        waiting = list(filter(due, slots))
        while waiting:
            unset = set(waiting)
            turn = [slot for slot in waiting if not unset.intersection(slot.reads)]
            if not turn:
                if strict is None or unset.intersection(strict):
                    self.refuse_cycle(waiting)
                return
            for slot in turn:
                if not due(slot):
                    continue  # already set by another's callable initial value
                try:
                    self.begin_one(slot)
                except Exception:
                    if strict is None or slot in strict:
                        raise
            past = set(turn)
            waiting = [slot for slot in waiting if slot not in past]

    def begin_one(self, slot: Slot) -> None:
        """Set a variable to its initial value; the variables that this reads must have a value."""
        for other in slot.reads:
            self.require(other)
        self.starting.append(slot)
        try:
            if slot.start is not None:
                slot.start()
        finally:
            self.starting.pop()
        slot.started = True

    # Values -------------------------------------------------------------------------------------

    def get(self, slot: Slot) -> Any:
        """Return a copy of a variable's value, initializing it if it is not yet set."""
        while True:
            if not slot.ready:
                self.ensure([slot], [slot], {})
            with ReadSection(self.access):
                self.usable()
                if slot.ready:
                    self.tentative = []
                    array = self.memory.copy_out(slot.value)
                    self.memory.synchronise()
                    return array

    def put(self, slot: Slot, value: Any) -> None:
        """Set a variable from a user's array; raise ``FeedError`` if it does not fit.

        Its open axes take the lengths of the array, whatever they had before.
        """
        with self.lock:
            self.usable()
            array, given = self._fitted(slot, value)
            if slot.value is None:
                self.allocate(slot, given)
            other = self._other_memory(slot, array)
            with Writing(self.access):
                self._move(slot, other, given)
                self._write(slot, array)

    def _fitted(self, slot: Slot, value: Any) -> tuple[Any, Mapping[str, int]]:
        """Return a user's array for a variable, and the variable's open lengths with it."""
        if slot.value is not None and type(value) is np.ndarray and value.flags.c_contiguous:
            if value.dtype == slot.dtype and value.shape == slot.shape:
                return value, slot.lengths
        dims = slot.dims if slot.value is None or slot.lengths else slot.shape
        if slot.feed is None or slot.feed[:2] != (slot.label, dims):
            feed = make_feed_of(self.memory, slot.dtype, slot.axes, dims, slot.label)
            slot.feed = slot.label, dims, feed
        array = slot.feed[2](value)
        if slot.value is not None and array.shape == slot.shape:
            return array, slot.lengths
        given = {**slot.lengths, **dict(open_sizes(slot.dims, array.shape))}
        try:
            shape = self.shape(slot, given)
        except AxisError as error:
            raise FeedError(
                f"{slot.label} was given an array of shape {array.shape}: {error}"
            ) from None
        make_feed_of(self.memory, slot.dtype, slot.axes, shape, slot.label)(value)
        return array, given

    def _other_memory(self, slot: Slot, array: Any) -> Any:
        """Return new memory for a variable that changes its shape; None if it keeps its own."""
        if array.shape == slot.shape:
            return None
        size = slot.dtype.itemsize * math.prod(array.shape)
        check_size(size, slot.label, self.memory.room())
        return self.memory.allocate(array.shape, slot.dtype)

    def _move(self, slot: Slot, memory: Any, lengths: Mapping[str, int]) -> None:
        """Move a variable to other memory with these lengths, if any; calls rebind to it.

        The caller has exclusive access, and writes the variable next.
        """
        if memory is not None:
            slot.value, slot.shape, slot.lengths = memory, tuple(memory.shape), dict(lengths)
            self.epoch += 1

    def share(self, slot: Slot, array: Any) -> None:
        """Make a user's array the memory of a variable, whose value it is from now on."""
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != slot.dtype
            or not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable)
        ):
            shown = f"{type(array).__name__} of dtype {getattr(array, 'dtype', None)}"
            raise FeedError(
                f"{slot.label} cannot share the memory of a {shown}: give a NumPy array of dtype "
                f"{slot.dtype} that is contiguous and can be written"
            )
        with self.lock:
            self.usable()
            _, given = self._fitted(slot, array)
            with Writing(self.access):
                if slot.value is not array:
                    self._move(slot, array, given)
                self.tentative = []
                self.wrote()
                slot.ready = True

    def exchange(self, slot: Slot, value: Any) -> Any:
        """Return a copy of a variable's value and set it to a user's array, atomically."""
        while True:
            if not slot.ready:
                self.ensure([slot], [slot], {})
            with self.lock:
                self.usable()
                if not slot.ready:
                    continue
                array, given = self._fitted(slot, value)
                other = self._other_memory(slot, array)
                with Writing(self.access):
                    old = self.memory.copy_out(slot.value)
                    if other is not None:
                        self.memory.synchronise()  # wait for the copy before its source is freed
                    self._move(slot, other, given)
                    self._write(slot, array)
                return old

    def wrote(self) -> None:
        """Record that a variable was written."""
        self._version[0] += 1

    def _write(self, slot: Slot, array: Any) -> None:
        """Write a fitting array to a variable; the caller has exclusive access."""
        self.tentative = []
        self.wrote()
        self.memory.copy_in(array, slot.value)
        self.memory.synchronise()
        slot.ready = True
