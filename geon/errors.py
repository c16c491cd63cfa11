"""Every error geon raises on purpose: one root, and the built-in type a Python user would catch.

Each message says what is wrong, both values, both places as ``file:line`` and the cure.
"""

from __future__ import annotations

from collections.abc import Mapping


class GeonError(Exception):
    """The root of all errors geon raises on purpose."""


class AxisError(GeonError, ValueError):
    """Axes that do not fit: two lengths under one name, a name twice, no shared axis."""

    open_name: str | None = None


class GuardError(AxisError):
    """A length assumption made while the graph was built does not hold for the data of a call."""


class DTypeError(GeonError, TypeError):
    """dtypes that do not fit an op, or a number that its dtype cannot hold."""


class ArgumentError(GeonError, TypeError):
    """Wrong number or names of arguments, or a placeholder that is needed but not given."""


class FeedError(GeonError, ValueError):
    """A value fed to a placeholder or variable has the wrong shape, dtype or range."""


class DerivativeError(GeonError, NotImplementedError):
    """A derivative that does not exist, or whose rule is missing."""


class GradientError(GeonError, AssertionError):
    """A derivative that central differences contradict, found by ``check_gradients``."""


class OrderError(GeonError, ValueError):
    """Two assignments to overlapping places whose order is not given."""


class AssignError(GeonError, TypeError):
    """An assignment to something that is no variable, placeholder or slice of one."""


class SymbolicError(GeonError, TypeError):
    """A symbolic tensor was used where Python needs a value (truth, iteration, length, copy)."""


class IndexRangeError(GeonError, IndexError):
    """A position computed at run time lies outside its axis."""


class NonFiniteError(GeonError, FloatingPointError):
    """A value that is not finite was computed while ``check="nan"`` was asked for."""


class ConvergenceError(GeonError, ArithmeticError):
    """A loop that repeats until nothing changes was ended by its number of steps, or diverged."""


class SizeError(GeonError, MemoryError):
    """A size that overflows, or a computation larger than the memory there is."""

    lengths: Mapping[str, int] | None = None


class CheckpointError(GeonError, ValueError):
    """A checkpoint that does not fit the variables, or is none; state is untouched."""


class DumpError(GeonError, ValueError):
    """A text that ``loads`` cannot read."""


class PlanError(GeonError, AssertionError):
    """The plan verifier found a plan that could compute wrong values: a defect of geon."""


class RewriteError(GeonError, RuntimeError):
    """A rewrite rule failed or does not end: a defect of geon or of a rule added to it."""


class UnavailableError(GeonError, RuntimeError):
    """A transformer that cannot be used here; the message has the command that mends it."""


class IncompleteError(UnavailableError, NotImplementedError):
    """A target lacks some or all of what a row needs; the message names the tables."""


class DeviceError(UnavailableError):
    """A device that is missing, full, lost, or failed at a kernel; the message says what to do."""

    lost = False  # whether nothing can be done with the device any more
    kernel: int | None = None  # the number of the kernel that failed, where it is known


class DeviceMemoryError(DeviceError, SizeError):
    """More memory than a device has free; nothing was allocated."""


class ClosedError(GeonError, RuntimeError):
    """A transformer that was closed, or whose state was lost, was used."""
