"""Asynchronous calls of programs on a device."""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import DeviceError
from ...binding.futures import FinishedCall, Pending
from ...runtime.calls import MAX_BINDINGS, Binding, CompiledCall, Workspace
from ...runtime.rwlock import ReadSection, Writing
from ...runtime.state import State
from ..launches.memory import DeviceArray
from .pinned_buffers import StagedResult

MAX_CALLS_IN_FLIGHT = 2  # max. calls of one computation in flight, each in its own workspace


class CallInFlight:
    """A submitted call of a bound program, which ends once ``settle`` has waited for it.

    ``inputs`` are kept alive until then, and ``left`` are results that stay on the device. ``mark``
    is the event at its end; with ``short``, the fast path has submitted it instead.
    """

    space: Workspace | None = None
    state: State | None = None

    def __init__(
        self,
        bound: Any,
        inputs: Sequence[Any] = (),
        left: Sequence[DeviceArray] = (),
        results: Sequence[StagedResult] = (),
        mark: Any = None,
        short: Any = None,
    ) -> None:
        self.bound, self.inputs, self.left, self.results = bound, inputs, left, results
        self.mark, self.short = mark, short
        self.lock = threading.Lock()
        self.ended = self.asked = False
        self.values: tuple[Any, ...] = ()
        self.error: Exception | None = None

    def owned(
        self, space: Workspace, free: deque[Workspace], state: State, out: Any
    ) -> CallInFlight:
        """Return this call, which gives its workspace back to ``free`` when it has ended.

        Its results go to the arrays of ``out``, if that is not None. A lost device is noted in the
        transformer's ``state``.
        """
        self.space, self.free, self.state, self.out = space, free, state, out
        return self

    def done(self) -> bool:
        """Return True if the call has ended, without waiting."""
        bound, short = self.bound, self.short  # read before ``ended``: another thread may settle
        if self.ended:
            return True
        return bool(short.done() if short is not None else bound.device.passed(self.mark))

    def settle(self) -> None:
        """Wait for the end, keep results or error, and free the workspace."""
        with self.lock:
            if self.ended:
                return
            try:
                self.values = self.collect()
                if self.space is not None and self.out is not None:
                    self.values = self.out.filled(self.values)
            except Exception as error:
                self.error = error
                if self.state is not None:
                    lose(self.state, error)
            self.ended, self.bound, self.short, self.inputs = True, None, None, ()
            self.left = self.results = ()
            if self.space is not None:
                self.free.append(self.space)

    def ahead(self) -> tuple[Any, ...]:
        """Return the results that stay on the device, else wait for those on the host."""
        with self.lock:
            if self.left:
                return tuple(self.left)
        return self.finish()

    def finish(self) -> tuple[Any, ...]:
        """Wait and return the results, or raise the call's error."""
        self.asked = True
        self.settle()
        if self.error is not None:
            raise self.error
        return self.values

    def collect(self) -> tuple[Any, ...]:
        """Wait and return the results; raise the error that a kernel reported."""
        bound, device = self.bound, self.bound.device
        if self.short is not None:
            values = self.short.finish()
            if values.__class__ is tuple:
                return tuple(values)
            raise bound.refused(values)
        try:
            device.wait(self.mark)
        except DeviceError as error:
            raise bound.blamed(error) from None
        if bound.program.module.raises:
            bound.look(bound.report())
        if self.left:
            return tuple(self.left)
        found, waits = [], False
        for result in self.results:
            if result.pinned is not None:
                found.append(result.pinned.copy())
                continue
            found.append(np.empty(result.shape, result.dtype))
            if found[-1].size:
                device.copy_out(found[-1], result.address)
                waits = True
        if waits:
            device.synchronise()
        return tuple(found)

    def __del__(self) -> None:
        if self.space is None:
            return
        self.results, self.out = (), None  # nobody takes them: copies would take a stream's lock
        if not sys.is_finalizing():
            self.settle()  # if waiting was interrupted
        if self.error is not None and not self.asked:
            warnings.warn(
                f"a call that was started failed, and nobody asked for its result: {self.error}",
                RuntimeWarning,
                stacklevel=1,
            )


class CudaCall(CompiledCall):
    """A call that the device executes asynchronously; with ``on_device``, results stay there."""

    on_device = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.in_flight: deque[CallInFlight] = deque()
        weakref.finalize(self, settle_all, self.in_flight)

    def start(self, *values: Any, out: Any = None) -> Pending:
        """Submit a call.

        The first call, and one of a variable without a value, is complete when this returns: it may
        have to undo the assignment of variables.
        """
        arrays = self.fed(values)
        binding = self.binding(
            tuple([array.shape for array in arrays]) if self.open else (), arrays
        )
        with (Writing if self.writes else ReadSection)(self.state.access):
            self.state.usable()
            if (
                binding.epoch == self.state.epoch
                and not self.state.tentative
                and all(slot.ready for slot in self.writes)
            ):
                self.make_room()
                pending = self.begun(binding, arrays, out, waited=False)
                self.in_flight.append(pending)
                return pending
        return FinishedCall(lambda: self(*values, out=out))

    def enter(self, *values: Any) -> Any:
        """Run the fast path of a free workspace; NotImplemented if it does not apply."""
        try:
            space = self.free.pop()
        except IndexError:
            return NotImplemented
        try:
            if space.steady is None:
                return NotImplemented
            bound, short, epoch = space.steady
            found = short.run(bound.device, self.state, epoch, *values)
            if found.__class__ is tuple or found is NotImplemented:
                return found
            raise bound.refused(found)
        except BaseException as error:
            lose(self.state, error)
            raise
        finally:
            self.free.append(space)

    def begin(self, *values: Any) -> Any:
        """Submit the fast path of a free workspace; NotImplemented if it does not apply."""
        self.make_room()
        try:
            space = self.free.pop()
        except IndexError:
            return NotImplemented
        run = None
        try:
            if space.steady is not None:
                bound, short, epoch = space.steady
                run = bound.begun_shortly(short, self.state, epoch, values)
        except BaseException as error:
            lose(self.state, error)
            raise
        finally:
            if run is None:
                self.free.append(space)
        if run is None:
            return NotImplemented
        pending = run.owned(space, self.free, self.state, None)
        self.in_flight.append(pending)
        return pending

    def remember_steady(self, space: Workspace, bound: Any, binding: Binding) -> None:
        """Use the fast path for further calls with such arrays, if there is one."""
        if bound.entry is not None:
            space.steady = bound, bound.entry, binding.epoch if self.slots else -1

    def reusable(self, space: Workspace) -> int:
        """Return the bytes of an arena and of its staging memory."""
        bindings = list(space.bound.values())  # a copy: other threads change the dict
        staged = max([bound.staging.bytes for bound in bindings], default=0)
        return space.size + staged

    def make_room(self) -> None:
        """Wait for the oldest calls until fewer than ``MAX_CALLS_IN_FLIGHT`` are in flight."""
        while True:
            with self.lock:
                if len(self.in_flight) < MAX_CALLS_IN_FLIGHT:
                    return
                oldest = self.in_flight.popleft()
            oldest.settle()

    def execute(self, binding: Binding, arrays: Sequence[Any], out: Any = None) -> Any:
        """Run the program in a free arena and return its results."""
        return self.begun(binding, arrays, out, waited=True).finish()

    def begun(
        self, binding: Binding, arrays: Sequence[Any], out: Any, *, waited: bool
    ) -> CallInFlight:
        """Submit the program in a free arena; ``waited`` if the caller waits for it at once."""
        self.state.usable()
        if out is not None:
            out.check(binding.lengths)
        space = self.claimed()
        space.steady = None
        try:
            bound = space.bound.pop(binding, None)
            if bound is None:
                if len(space.bound) >= MAX_BINDINGS - 1:
                    del space.bound[next(iter(space.bound))]  # the least recently used
                bound = self.bind_in(space, binding)
            space.bound[binding] = bound
            run: CallInFlight = space.context.run(bound.start, arrays, self.on_device, waited)
            self.remember_steady(space, bound, binding)
        except BaseException as error:
            lose(self.state, error)
            self.released(space)
            raise
        return run.owned(space, self.free, self.state, out)


def lose(state: State, error: BaseException) -> None:
    """Refuse all further calls of a transformer whose device has failed."""
    if isinstance(error, DeviceError) and error.lost and state.lost is None:
        state.lost = (
            f"the device of this transformer failed, and what variables held is lost: {error}; "
            "start a new process, and restore a checkpoint"
        )


def settle_all(pending: deque[CallInFlight]) -> None:
    """Wait for all submitted calls."""
    while pending:
        pending.popleft().settle()
