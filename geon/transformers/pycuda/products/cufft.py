"""Fourier transforms by cuFFT, through nvmath-python's bindings.

A plan transforms lines along one axis. Plans are cached by lengths, and work in memory that all
share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ..launches.library_requests import LineTransforms
from .nvmath_bindings import PlanCache, SharedWorkspace, starting

# The binding's names of a transform, by form and dtype of the parts: that of its type, and that of
# the function that executes it.
NAMES = {
    ("c2c", "float32"): "C2C",
    ("r2c", "float32"): "R2C",
    ("c2r", "float32"): "C2R",
    ("c2c", "float64"): "Z2Z",
    ("r2c", "float64"): "D2Z",
    ("c2r", "float64"): "Z2D",
}


# The sign of the exponent.
Direction = IntEnum("Direction", {"FORWARD": -1, "INVERSE": 1})


class CufftPlan(NamedTuple):
    """A plan, and the bytes that it works in."""

    handle: int
    size: int


def load_cufft(name: str, allocate: Callable[[int], int], free: Callable[[int], None]) -> Any:
    """Return cuFFT on the device ``name``; raise ``DeviceError`` if it is unavailable."""
    with starting("transforms", CuFft.title, name):
        from nvmath.bindings import cufft

        cufft.get_version()  # loads the library
        return CuFft(cufft, SharedWorkspace(allocate, free))


class CuFft:
    """cuFFT on one device; callers must have entered the device's context."""

    title = "cuFFT"
    calling = "cuFFT computes a Fourier transform"

    def __init__(self, cufft: Any, workspace: SharedWorkspace) -> None:
        self.cufft, self.workspace = cufft, workspace
        self.errors: tuple[type[Exception], ...] = (cufft.cuFFTError,)
        self.known = PlanCache(self.plan, lambda plan: self.cufft.destroy(plan.handle))

    def takes(self, call: LineTransforms) -> bool:
        """Return True, after making the plan and allocating the memory it works in."""
        if call.lines and call.repeats:
            self.workspace.at_least(self.known.plan(at_any_address(call)).size)
        return True

    def call(self, call: LineTransforms, addresses: Sequence[int], works: int, stream: int) -> None:
        """Submit transforms to a stream."""
        if not (call.lines and call.repeats):
            return
        plan = self.known.plan(at_any_address(call))
        self.cufft.set_work_area(plan.handle, self.workspace.at_least(plan.size))
        self.cufft.set_stream(plan.handle, stream)
        execute = getattr(self.cufft, f"exec_{NAMES[call.form, call.dtype].lower()}")
        direction = (
            (Direction.INVERSE if call.inverse else Direction.FORWARD,)
            if call.form == "c2c"
            else ()
        )
        for k in range(call.repeats):
            source, target = (
                address + k * step for address, step in zip(addresses, call.steps, strict=True)
            )
            execute(plan.handle, source, target, *direction)

    def plan(self, call: LineTransforms) -> CufftPlan:
        """Make the plan of transforms of ``lines`` lines each."""
        handle = self.cufft.create()
        self.cufft.set_auto_allocation(handle, 0)
        half = call.n // 2 + 1
        lengths = {"c2c": (call.n, call.n), "r2c": (call.n, half), "c2r": (half, call.n)}
        before, after = lengths[call.form]
        size = self.cufft.make_plan_many64(
            handle, 1, [call.n], [before], call.strides[0], call.apart[0], [after],
            call.strides[1], call.apart[1], self.cufft.Type[NAMES[call.form, call.dtype]],
            call.lines,
        )  # fmt: skip
        return CufftPlan(handle, int(size))


def at_any_address(call: LineTransforms) -> LineTransforms:
    """Return the transforms that have the same plan, in the direction and number that it leaves."""
    return call._replace(inverse=False, repeats=1, steps=(0, 0))
