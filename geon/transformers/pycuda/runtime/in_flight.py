"""Calls that a program has begun on a device, each with what is bound there, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import DeviceError
from ..launches.memory import DeviceArray
from .pinned_buffers import Result


class Run:
    """A call that a bound program has begun: ``finish`` waits for it, once.

    What ``inputs`` are of others is read until then. ``left`` are results on the device, where they
    stay there.
    """

    def __init__(
        self,
        bound: Any,
        inputs: Sequence[Any],
        left: Sequence[DeviceArray],
        results: Sequence[Result],
        mark: Any,
    ) -> None:
        self.bound, self.inputs, self.left, self.results = bound, inputs, left, results
        self.mark = mark

    def done(self) -> bool:
        """Whether it has ended; does not wait."""
        return self.bound.device.passed(self.mark)

    def finish(self) -> tuple[Any, ...]:
        """The results; raises what a kernel reported, and ``DeviceError`` where one failed."""
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
    """A call that was begun the shorter way, as a ``Run``."""

    def __init__(self, bound: Any, short: Any) -> None:
        self.bound, self.short = bound, short

    def done(self) -> bool:
        """Whether it has ended; does not wait."""
        ended: bool = self.short.done()
        return ended

    def finish(self) -> tuple[Any, ...]:
        """The results; raises what a ``Run`` raises."""
        found = self.short.finish()
        if found.__class__ is tuple:
            results: tuple[Any, ...] = found
            return results
        raise self.bound.refused(found)
