"""Calls: feeding arrays, binding lengths, choosing an arena, running the program.

This file imports NumPy, the standard library, geon's errors and its neighbours ``feeding``,
``gate`` and ``place`` alone: its text is part of the modules that ``Transformer.write`` makes.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque

import numpy as np

from ..errors import ArgumentError, AxisError, ClosedError, FeedError, GuardError, SizeError
from .feeding import make_feed
from .gate import Gate, Writing
from .place import place

BINDINGS_KEPT = 64
MAX_BYTES = 2**63 - 1


class Dim:
    """A length that depends on open names: ``of`` computes it, ``text`` shows it."""

    def __init__(self, text, names, of):
        self.text, self.names, self.of = text, tuple(names), of

    def __repr__(self):
        return self.text


class Slot:
    """A variable as the runtime sees it: what it is called, its dtype and its axes."""

    def __init__(self, label, dtype, axes, dims):
        self.label, self.dtype, self.axes, self.dims = label, np.dtype(dtype), tuple(axes), dims
        self.array = None
        self.ready = False


class State:
    """The storage of a transformer: one array for each variable, and the gate all calls pass."""

    def __init__(self):
        self.gate = Gate()
        self.lock = threading.RLock()
        self.epoch = 0
        self.lost = None

    def allocate(self, slot, lengths):
        """Give ``slot`` memory, its open lengths taken from ``lengths``."""
        if slot.array is not None:
            return
        missing = [d for d in slot.dims if not isinstance(d, int) and not known(d, lengths)]
        if missing:
            raise AxisError(
                f"{slot.label} has the open length {missing[0]}, which nothing gives yet: set the "
                "axis's length, call a computation with data, or give lengths="
            )
        shape = tuple(resolve(d, lengths) for d in slot.dims)
        check_size(np.dtype(slot.dtype).itemsize * int(np.prod(shape, dtype=object)), slot.label)
        slot.array = np.zeros(shape, slot.dtype)

    def usable(self):
        """Raise ``ClosedError`` when the transformer was closed or its state was lost."""
        if self.lost is not None:
            raise ClosedError(self.lost)


def known(dim, lengths):
    """Whether ``lengths`` has every open name of ``dim``."""
    return isinstance(dim, int) or all(name in lengths for name in dim.names)


def resolve(dim, lengths):
    """The integer that ``dim`` is under ``lengths``."""
    return dim if isinstance(dim, int) else dim.of(lengths)


def check_size(size, what):
    """Raise ``SizeError`` for a size beyond 63 bits or beyond this machine's memory."""
    if size > MAX_BYTES:
        raise SizeError(f"{what} needs {size} bytes, more than a 64-bit size can say")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise SizeError(
            f"{what} needs {size:,} bytes and this machine has {memory:,}; nothing was allocated. "
            "Use smaller lengths or a smaller batch"
        )


def new_arena(size, alignment=64):
    """``size`` bytes of aligned memory."""
    raw = np.empty(size + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size]


class Binding:
    """A program under given lengths: where its arena is laid out, and arenas not in use."""

    def __init__(self, lengths, offsets, arena_bytes, epoch):
        self.lengths, self.offsets, self.arena_bytes = lengths, offsets, arena_bytes
        self.epoch = epoch
        self.free = deque()


class Call:
    """A compiled computation with its storage: call it with one value for each placeholder.

    ``bind``, ``run`` and ``sizes`` are the program's; ``inputs`` has (label, dtype, dims) for each
    placeholder, ``slots`` the variables, ``constants`` the large arrays; ``guards`` has (relation,
    left, right, message) to check for each new binding; ``fixed`` the lengths that were asked for
    and ``defaults`` gives the default ones, read at the first binding; ``ensure`` makes variables
    ready before first use.
    """

    def __init__(
        self, program, inputs, slots, constants, guards, state, writes, fixed, defaults, ensure
    ):
        self.bind, self.run, self.sizes = program
        self.inputs, self.slots, self.constants = inputs, slots, constants
        self.guards, self.state, self.writes = guards, state, writes
        self.fixed, self.defaults, self.ensure = fixed, defaults, ensure
        self.chosen = None
        feeds = [make_feed(np.dtype(dtype), dims, label) for label, dtype, dims in inputs]
        self.feeds = feeds
        self.open = any(not isinstance(d, int) for _, _, dims in inputs for d in dims)
        self.bindings = {}
        self.reads = bool(slots)

    def __call__(self, *values):
        """The results for these values, one for each placeholder."""
        arrays = [feed(value) for feed, value in zip(self.feeds, values, strict=True)]
        key = tuple([array.shape for array in arrays]) if self.open else ()
        binding = self.bindings.get(key)
        if binding is None or binding.epoch != self.state.epoch:
            binding = self.new_binding(key, arrays)
        if not self.reads:
            return self.execute(binding, arrays)
        if self.writes:
            with Writing(self.state.gate):
                self.state.usable()
                results = self.execute(binding, arrays)
                for slot in self.writes:
                    slot.ready = True
                return results
        self.state.gate.enter_read()
        try:
            self.state.usable()
            return self.execute(binding, arrays)
        finally:
            self.state.gate.leave_read()

    def execute(self, binding, arrays):
        """Run the program in an arena that no other call is using."""
        try:
            bound, context = binding.free.pop()
        except IndexError:
            bound, context = self.new_arena(binding)
        results = context.run(self.run, bound, *arrays)
        binding.free.append((bound, context))
        return results

    def new_arena(self, binding):
        """An arena under ``binding``, with a context in which NumPy does not warn."""
        arena = new_arena(binding.arena_bytes)
        variables = [slot.array for slot in self.slots]
        bound = self.bind(arena, binding.offsets, variables, self.constants, binding.lengths)
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        return bound, context

    def new_binding(self, key, arrays):
        """Lengths from the data, the variables and what was asked for; then offsets."""
        self.state.usable()
        lengths = self.bind_lengths(arrays)
        self.ensure(lengths)
        lengths = self.bind_lengths(arrays)
        self.check_guards(lengths)
        sizes, lifetimes, rest = self.sizes(lengths)
        for size in sizes:
            check_size(size, "an intermediate value")
        offsets, total = place(sizes, lifetimes)
        check_size(total + rest, "this computation")
        binding = Binding(lengths, offsets, total, self.state.epoch)
        while len(self.bindings) >= BINDINGS_KEPT:
            self.bindings.pop(next(iter(self.bindings)), None)
        self.bindings[key] = binding
        return binding

    def bind_lengths(self, arrays):
        """The integer of every open name; ``FeedError`` where two places disagree."""
        with self.state.lock:
            if self.chosen is None:
                self.chosen = self.defaults()
        lengths = {**self.chosen, **self.fixed}
        origin = dict.fromkeys(self.chosen, "the default set by axis.length")
        origin.update(dict.fromkeys(self.fixed, "lengths="))
        held = [(s.label, s.dims, s.array.shape) for s in self.slots if s.array is not None]
        given = [
            (label, dims, array.shape)
            for (label, _, dims), array in zip(self.inputs, arrays, strict=True)
        ]
        for label, dims, shape in [*held, *given]:
            for dim, size in zip(dims, shape, strict=True):
                if isinstance(dim, int) or dim.text not in dim.names:
                    continue
                if lengths.setdefault(dim.text, size) != size:
                    raise FeedError(
                        f"axis length {dim.text} is {size} in {label} and {lengths[dim.text]} in "
                        f"{origin[dim.text]}; one call has one length for it: give data of one "
                        "length, or leave the axis open, with neither default nor lengths="
                    )
                origin.setdefault(dim.text, label)
        for label, dims, shape in given:
            for dim, size in zip(dims, shape, strict=True):
                if not isinstance(dim, int) and known(dim, lengths) and dim.of(lengths) != size:
                    raise FeedError(
                        f"{label} has length {size} where {dim} = {dim.of(lengths)} is needed"
                    )
        return lengths

    def check_guards(self, lengths):
        """Raise ``GuardError`` for an assumption made while building that does not hold."""
        for relation, left, right, message in self.guards:
            if not (known(left, lengths) and known(right, lengths)):
                continue
            a, b = resolve(left, lengths), resolve(right, lengths)
            if not (a == b if relation == "==" else a <= b):
                names = {n: lengths[n] for d in (left, right) if not isinstance(d, int)
                         for n in d.names}  # fmt: skip
                where = ", ".join(f"{name} = {size}" for name, size in names.items())
                raise GuardError(f"{message}\nhere {where}: {left} = {a}, {right} = {b}")


def arrange(names, count, args, keywords):
    """Positional and keyword arguments as one value for each placeholder, in order."""
    if len(args) > count:
        raise ArgumentError(f"{count} values are needed ({listed(names)}), {len(args)} were given")
    values = list(args)
    rest = names[len(args) :]
    for name in keywords:
        if name not in names:
            raise ArgumentError(
                f"there is no placeholder named {name!r}; there are {listed(names)}"
            )
        if name not in rest:
            raise ArgumentError(f"placeholder {name!r} was given twice, by position and by name")
    for position, name in enumerate(rest, len(args)):
        if name is None or name not in keywords:
            label = repr(name) if name is not None else f"number {position + 1}"
            raise ArgumentError(
                f"placeholder {label} was not given; {count} values are needed ({listed(names)}) "
                f"and {len(args) + len(keywords)} were given"
            )
        values.append(keywords[name])
    return values


def listed(names):
    """Placeholder names for a message."""
    return ", ".join(name or f"#{k + 1}" for k, name in enumerate(names)) or "none"
