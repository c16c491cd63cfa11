"""Calls in flight on a device: waiting for them and collecting results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import DeviceError
from ..launches.memory import DeviceArray
from .pinned_buffers import StagedResult


class CallInFlight:
    """A submitted call of a bound program; ``finish`` waits for it and must be called once.

    ``inputs`` are kept alive until then. ``left`` are results that stay on the device.
    """

    def __init__(
        self,
        bound: Any,
        inputs: Sequence[Any],
        left: Sequence[DeviceArray],
        results: Sequence[StagedResult],
        mark: Any,
    ) -> None:
        self.bound, self.inputs, self.left, self.results = bound, inputs, left, results
        self.mark = mark

    def done(self) -> bool:
        """Return True if the call has ended, without waiting."""
        return self.bound.device.passed(self.mark)

    def finish(self) -> tuple[Any, ...]:
        """Return the results; raise the error that a kernel reported, or ``DeviceError``."""
        bound, device = self.bound, self.bound.device
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


class SteadyRun:
    """A call submitted by the fast path, with the interface of ``CallInFlight``."""

    def __init__(self, bound: Any, short: Any) -> None:
        self.bound, self.short = bound, short

    def done(self) -> bool:
        """Return True if the call has ended, without waiting."""
        ended: bool = self.short.done()
        return ended

    def finish(self) -> tuple[Any, ...]:
        """Return the results; raise the same errors as ``CallInFlight``."""
        found = self.short.finish()
        if found.__class__ is tuple:
            results: tuple[Any, ...] = found
            return results
        raise self.bound.refused(found)
