"""Calls of compiled programs: feed arrays, bind lengths, choose an arena, run."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import AxisError, FeedError, GuardError, SizeError
from .arena import place
from .complex_arrays import as_parts
from .dims import Lengths, check_size, has_all_lengths, implied_sizes, open_sizes, resolve
from .feeding import make_feed_of
from .loop_steps import shown_steps
from .rwlock import ReadSection, Writing
from .state import Slot, State
from .value_errors import UNCONVERGED, convergence_error

MAX_BINDINGS = 64
Array = np.ndarray[Any, Any]


class Binding:
    """The arena layout of a program for given lengths."""

    def __init__(
        self, lengths: dict[str, int], offsets: Sequence[int], arena_bytes: int, epoch: int
    ) -> None:
        self.lengths, self.offsets, self.arena_bytes = lengths, offsets, arena_bytes
        self.epoch = epoch


class Workspace:
    """Arena memory that one call at a time uses, and the program's bound state in it.

    ``entry`` is the program's fast path into this workspace, or None. ``steady`` is state that a
    kind of call may keep for its next call.
    """

    def __init__(self) -> None:
        self.arena: Any = None
        self.size = -1
        self.bound: dict[Binding, Any] = {}
        self.entry: Any = None
        self.steady: Any = None
        self.context = contextvars.copy_context()
        self.context.run(np.seterr, all="ignore")

    def clear(self) -> None:
        """Drop all bound state."""
        self.bound.clear()
        self.steady = None
        if self.entry is not None:
            self.entry.forget()


class CompiledCall:
    """A compiled computation with its storage; call it with one value for each placeholder.

    ``functions`` are the program's bind, run and sizes. A program with a fast path has two more:
    one that makes an ``entry`` for inputs of given dtypes (or None), and one that runs the program
    with arrays for its results. ``inputs`` has (label, dtype, axis names, dims) for each
    placeholder. ``slots`` are the variables; ``read`` are those whose old value is used, ``writes``
    those that get a new value. ``constants`` are the large arrays, in the memory of ``state``.
    ``guards`` has (relation, left, right, message) to check for each new binding. ``fixed`` are the
    lengths that were requested, and ``specialization`` describes those that the program is compiled
    for. ``alignment`` is that of the arena and its buffers, in bytes. Default lengths are read at
    the first binding.

    ``enter`` is None until there is an entry; it then returns the tuple of results, or
    NotImplemented for values that need the general path. ``begin`` is the same for asynchronous
    calls.
    """

    enter: Any = None
    begin: Any = None

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        inputs: Sequence[tuple[str, Any, Sequence[str], Sequence[Any]]],
        slots: Sequence[Slot],
        read: Sequence[Slot],
        writes: Sequence[Slot],
        constants: Sequence[Any],
        guards: Sequence[tuple[str, Any, Any, str]],
        fixed: Mapping[str, int],
        state: State,
        alignment: int,
        specialization: str = "",
    ) -> None:
        self.specialization = specialization
        self.bind, self.run, self.sizes = functions[:3]
        self.make_entry: Any = None
        self.run_into: Any = None
        if len(functions) > 3:
            self.make_entry, self.run_into = functions[3:]
        self.entry: Any = None
        self.entry_epoch = 0
        self.inputs, self.slots, self.read, self.writes = inputs, slots, read, writes
        self.constants, self.guards, self.fixed, self.state = constants, guards, fixed, state
        self.alignment = alignment
        self.feeds = [
            make_feed_of(state.memory, np.dtype(dtype), axes, dims, label)
            for label, dtype, axes, dims in inputs
        ]
        self.open = any(not isinstance(d, int) for *_, dims in inputs for d in dims)
        self.lock = threading.Lock()
        self.defaults: dict[str, int] | None = None
        self.origins: dict[str, str] = {}  # source of each default length
        self.bindings: dict[tuple[Any, ...], Binding] = {}
        self.free: deque[Workspace] = deque()

    def __call__(self, *values: Any, out: Any = None) -> Any:
        """Return the results for these values, one for each placeholder; in the arrays of ``out``.

        ``out`` has ``arrays`` (one for each result, or None), ``check(lengths)``,
        ``direct(inputs)`` (those that can be written while the inputs are read) and
        ``filled(results)``.
        """
        arrays = values
        if self.entry is not None:
            if not self.entry.fits(*values):
                arrays = self.fed(values)
            results = self.entered(arrays, out)
            if results is not NotImplemented:
                return results
        if arrays is values:
            arrays = self.fed(values)
        key = tuple([array.shape for array in arrays]) if self.open else ()
        if not self.slots:
            return self.execute(self.binding(key, arrays), arrays, out)
        try:
            while True:
                binding = self.binding(key, arrays)
                with (Writing if self.writes else ReadSection)(self.state.access):
                    self.state.usable()
                    if binding.epoch != self.state.epoch:
                        continue  # another call failed and released the memory that this one found
                    results = self.execute(binding, arrays, out)
                    for slot in self.writes:
                        slot.ready = True
                    if self.state.tentative:
                        self.state.tentative = []
                    return results
        except BaseException:
            if self.state.tentative:
                self.state.undo()
            raise

    def fed(self, values: Sequence[Any]) -> tuple[Array, ...]:
        """Return these values as arrays; raise ``FeedError`` if they do not fit."""
        try:
            return tuple([feed(value) for feed, value in zip(self.feeds, values, strict=True)])
        except FeedError as error:
            self.note_specialization(error)
            raise

    def note_specialization(self, error: AxisError | FeedError) -> None:
        """Extend an error about lengths by those that the program was compiled for."""
        if self.specialization:
            error.args = (
                f"{error}\nthis computation is for {self.specialization}; give such data, or leave "
                "specialize= out for all lengths",
            )

    def entered(self, values: Sequence[Any], out: Any) -> Any:
        """Return the results by the fast path; NotImplemented if it refuses these values."""
        if not self.slots:
            return self.tried(values, out)
        with (Writing if self.writes else ReadSection)(self.state.access):
            if self.entry_epoch != self.state.epoch:
                return NotImplemented  # variables have moved or were freed
            results = self.tried(values, out)
            if self.state.tentative and results is not NotImplemented:
                self.state.tentative = []
            return results

    def tried(self, values: Sequence[Any], out: Any) -> Any:
        """Return the entry's results for these values."""
        entry = self.entry
        return entry.enter(*values) if out is None else entry.enter_into(out.arrays, *values)

    def binding(self, key: tuple[Any, ...], arrays: Sequence[Array]) -> Binding:
        """Return the binding for these shapes, cached or new."""
        binding = self.bindings.get(key)
        if binding is None or binding.epoch != self.state.epoch:
            binding = self.new_binding(key, arrays)
        return binding

    def execute(self, binding: Binding, arrays: Sequence[Array], out: Any = None) -> Any:
        """Run the program in a free workspace."""
        if out is not None:
            out.check(binding.lengths)
        space = self.claimed()
        try:
            bound = space.bound.get(binding)
            again = bound is not None
            if bound is None:
                bound = self.bind_in(space, binding)
            if out is None:
                results = space.context.run(self.run, bound, *arrays)
            elif self.run_into is None:
                results = out.filled(space.context.run(self.run, bound, *arrays))
            else:
                results = out.filled(self.run_into(bound, out.direct(arrays), *arrays))
            if again and self.make_entry is not None:
                self.remember(space, bound, binding, arrays)
            return results
        finally:
            self.released(space)

    def claimed(self) -> Workspace:
        """Return a free workspace, or a new one."""
        entered = None
        try:
            space = self.free.pop()
            if space.entry is not None and not space.entry.claim():
                entered = space
                space = self.free.pop()
        except IndexError:
            space = Workspace()
        if entered is not None:
            self.free.append(entered)
        return space

    def released(self, space: Workspace) -> None:
        """Return a workspace to the free list; one with an entry is reused first."""
        if space.entry is not None:
            space.entry.release()
            self.free.append(space)
        elif self.entry is not None:
            self.free.appendleft(space)
        else:
            self.free.append(space)

    def remember(
        self, space: Workspace, bound: Any, binding: Binding, arrays: Sequence[Array]
    ) -> None:
        """Enable the fast path in ``space`` for calls with inputs of these shapes.

        The entry is made at the second call, since many programs are called once.
        """
        with self.lock:
            if self.entry is None and self.make_entry is not None:
                made = self.make_entry([dtype for _, dtype, *_ in self.inputs])
                if made is None:
                    self.make_entry = None
                    return
                made.claim()
                space.entry = self.entry = made
        if space.entry is not None:
            if self.entry_epoch != binding.epoch:
                space.entry.forget()
                self.entry_epoch = binding.epoch
            space.entry.remember(bound, [array.shape for array in arrays], binding.epoch)
            entry = space.entry
            self.enter = partial(entry.enter_unlocked, self.state) if self.slots else entry.enter

    def bind_in(self, space: Workspace, binding: Binding) -> Any:
        """Bind the program in a workspace, growing its arena if needed; return bound state."""
        size = binding.arena_bytes
        if any(other.epoch != binding.epoch for other in space.bound):
            space.clear()  # it refers to memory that variables had
        if space.size < size:
            space.clear()
            space.arena, space.size = None, -1  # freed first; valid if the allocation fails
            space.arena = self.state.memory.allocate((size,), np.uint8, self.alignment)
            space.size = size
        elif len(space.bound) >= MAX_BINDINGS:
            space.clear()
        variables = [as_parts(slot.value) for slot in self.slots]
        bound = self.bind(space.arena, binding.offsets, variables, self.constants, binding.lengths)
        space.bound[binding] = bound
        return bound

    def new_binding(self, key: tuple[Any, ...], arrays: Sequence[Array]) -> Binding:
        """Return a new binding; lengths come from the data, the variables and the options."""
        try:
            return self.made_binding(key, arrays)
        except (AxisError, FeedError) as error:
            self.note_specialization(error)
            raise

    def made_binding(self, key: tuple[Any, ...], arrays: Sequence[Array]) -> Binding:
        """Return a new binding, after allocating and initializing the variables."""
        self.state.usable()
        lengths = self.bind_lengths(arrays)
        self.check_guards(lengths)
        foreseen = Lengths({**lengths, **self.state.foreseen(self.slots, lengths)})
        offsets, total, outside = self.layout(foreseen)
        self.check_room(total + outside, foreseen, arrays)  # before anything is allocated
        self.state.ensure(self.slots, self.read, foreseen)
        epoch = self.state.epoch
        lengths = self.bind_lengths(arrays)
        self.check_guards(lengths)
        if lengths != foreseen:
            offsets, total, outside = self.layout(lengths)
        self.check_room(total + outside, lengths, arrays)
        binding = Binding(lengths, offsets, total, epoch)
        with self.lock:
            while len(self.bindings) >= MAX_BINDINGS:
                del self.bindings[next(iter(self.bindings))]
            self.bindings[key] = binding
        return binding

    def layout(self, lengths: dict[str, int]) -> tuple[Sequence[int], int, int]:
        """Return arena offsets, the arena's bytes, and the bytes of results and copies."""
        sizes, lifetimes, outside = self.sizes(lengths)
        return *place(sizes, lifetimes, self.alignment), outside

    def check_room(self, needed: int, lengths: dict[str, int], arrays: Sequence[Array]) -> None:
        """Raise ``SizeError`` if the memory has no room for the bytes that a call needs."""
        try:
            room = self.state.memory.room()
            held = max([self.reusable(space) for space in list(self.free)], default=0)
            if not self.state.memory.on_host:  # host inputs are copied to the device
                needed += sum([array.nbytes for array in arrays if isinstance(array, np.ndarray)])
            room = room._replace(most=room.most + max(held, 0))
            check_size(needed, "this computation", room)
        except SizeError as error:
            error.lengths = lengths
            raise

    def reusable(self, space: Workspace) -> int:
        """Return the bytes of a workspace that a call need not allocate again."""
        return space.size

    def bind_lengths(self, arrays: Sequence[Array]) -> dict[str, int]:
        """Return the integer of every open name; raise ``FeedError`` if two sources disagree."""
        with self.lock:
            if self.defaults is None:
                self.defaults = dict(self.state.defaults())
                self.origins = {name: self.state.default_origin(name) for name in self.defaults}
        lengths = Lengths({**self.defaults, **self.fixed})
        origin = {**self.origins, **dict.fromkeys(self.fixed, "lengths=")}
        held = [(s.label, s.dims, s.shape) for s in self.slots if s.value is not None]
        given = [
            (label, dims, array.shape)
            for (label, _, _, dims), array in zip(self.inputs, arrays, strict=True)
        ]
        sizes = [(s.label, name, size) for s in self.slots for name, size in s.lengths.items()]
        sizes += [
            (label, name, size)
            for label, dims, shape in given
            for name, size in open_sizes(dims, shape)
        ]
        for label, name, size in sizes:
            if lengths.setdefault(name, size) != size:
                cure = "give data of one length"
                if origin[name] in [s.label for s in self.slots]:
                    cure += ", or set the variable to an array of the other length"
                else:
                    cure += ", or leave the axis open, with neither default nor lengths="
                raise FeedError(
                    f"axis length {name} is {size} in {label} and {lengths[name]} in "
                    f"{origin[name]}; one call has one length for it: {cure}"
                )
            origin.setdefault(name, label)
        for _, dims, shape in given:  # of names that no length is
            for name, size in implied_sizes(dims, shape):
                lengths.setdefault(name, size)
        for label, dims, shape in [*held, *given]:
            for dim, size in zip(dims, shape, strict=True):
                if has_all_lengths(dim, lengths) and resolve(dim, lengths) != size:
                    raise FeedError(
                        f"{label} has length {size} where {dim} = {resolve(dim, lengths)} is needed"
                    )
        return lengths

    def check_guards(self, lengths: Mapping[str, int]) -> None:
        """Raise ``GuardError`` if an assumption made while building the graph does not hold."""
        for relation, left, right, message in self.guards:
            if not (has_all_lengths(left, lengths) and has_all_lengths(right, lengths)):
                continue
            a, b = resolve(left, lengths), resolve(right, lengths)
            if not (a == b if relation == "==" else a <= b):
                names = {n: lengths[n] for d in (left, right) if not isinstance(d, int)
                         for n in d.names}  # fmt: skip
                where = ", ".join(f"{name} = {size}" for name, size in names.items())
                raise GuardError(
                    f"{message}\nin this call {where}: {left} {relation} {right} is needed, and "
                    f"{a} {relation} {b} is false"
                )


def explain_error(error: Exception, describe: Callable[[int], str | None]) -> Exception:
    """Return a kernel's error extended by its op, from ``describe(kernel)``, and its loop steps.

    Other errors are returned unchanged.
    """
    kernel = getattr(error, "kernel", None)
    if kernel is None:
        return error
    shown = f"{describe(kernel)}"
    if shown.endswith(UNCONVERGED):
        return convergence_error(f"{shown}{shown_steps(error)}")
    return type(error)(f"{shown}{shown_steps(error)}: {error}")
