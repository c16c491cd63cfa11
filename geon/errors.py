"""Every error that geon raises on purpose: one root class, with matching built-in base classes.

Each message says what is wrong, both values, both places as ``file:line``, and the cure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class GeonError(Exception):
    """The root of all errors that geon raises on purpose."""


class AxisError(GeonError, ValueError):
    """Axes that do not fit: two lengths under one name, a repeated name, no shared axis."""

    open_name: str | None = None


class GuardError(AxisError):
    """A length assumption made while the graph was built does not hold for the data of a call."""


class DTypeError(GeonError, TypeError):
    """dtypes that do not fit an op, or a number that its dtype cannot hold."""


class ArgumentError(GeonError, TypeError):
    """Wrong number or names of arguments, or a missing value of a placeholder."""


class FeedError(GeonError, ValueError):
    """A value fed to a placeholder or variable has the wrong shape, dtype or range."""


class DerivativeError(GeonError, NotImplementedError):
    """A derivative that does not exist, or whose rule is missing."""


class GradientError(GeonError, AssertionError):
    """A derivative that central differences contradict, found by ``check_gradients``."""


class OrderError(GeonError, ValueError):
    """Two assignments to overlapping parts whose order is not given."""


class AssignError(GeonError, TypeError):
    """An assignment to something other than a variable, placeholder or slice of one."""


class SymbolicError(GeonError, TypeError):
    """A symbolic tensor was used where Python needs a value (truth, iteration, length, copy)."""


class IndexRangeError(GeonError, IndexError):
    """An index that is out of range of its axis."""


class NonFiniteError(GeonError, FloatingPointError):
    """A value that is not finite was computed with ``check="nan"``."""


class ConvergenceError(GeonError, ArithmeticError):
    """A fixed-point loop reached its maximum number of steps, or diverged."""


class LinearAlgebraError(GeonError, np.linalg.LinAlgError):
    """A matrix that cannot be factorised: singular, not positive definite, or no convergence."""


class SizeError(GeonError, MemoryError):
    """A size that overflows, or a computation larger than the available memory."""

    lengths: Mapping[str, int] | None = None


class CheckpointError(GeonError, ValueError):
    """A checkpoint that does not fit the variables, or an invalid file; state is unchanged."""


class DumpError(GeonError, ValueError):
    """A text that ``loads`` cannot read."""


class PlanError(GeonError, AssertionError):
    """The plan verifier found a plan that could compute wrong values: a defect of geon."""


class RewriteError(GeonError, RuntimeError):
    """A rewrite rule failed or does not end: a defect of geon or of a rule added to it."""


class UnavailableError(GeonError, RuntimeError):
    """A transformer that cannot be used here; the message has the command that fixes it."""


class IncompleteError(UnavailableError, NotImplementedError):
    """A target lacks tables that a primitive needs; the message names them."""


class DeviceError(UnavailableError):
    """A device that is missing, full, lost, or failed at a kernel; the message says what to do."""

    lost = False  # True if the device cannot be used any more
    kernel: int | None = None  # the number of the failed kernel, if known


class DeviceMemoryError(DeviceError, SizeError):
    """More memory than a device has free; nothing was allocated."""


class ClosedError(GeonError, RuntimeError):
    """A transformer was used after it was closed, or after its state was lost."""
