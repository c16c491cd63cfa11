"""The fast call path: one call of a C extension function runs a compiled module.

It is implemented in ``entry.c``, an extension that is built when geon is installed if there are a C
compiler and Python's headers. Without it all calls use the Python path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...loading.c_extensions import built

CURE = (
    "have a C compiler and Python's headers (apt install gcc python3-dev), and install geon again "
    "(pip install --force-reinstall --no-cache-dir)"
)


def extension() -> Any | None:
    """Return the extension, or None if ``c_extensions.built`` finds none."""
    return built("geon.transformers.native._entry")


class FastEntry:
    """The fast path of a computation, for arguments of the same dtypes and shapes as in a previous
    call.

    ``enter(*values)`` returns the tuple of results. ``enter_into(arrays, *values)`` writes them to
    ``arrays``, or to a new array for each None. Both return NotImplemented if a value is not an
    array that can be read in place, if the shapes are not among those remembered, if another call
    is running, or if a kernel reports an error. They raise ``MemoryError``. ``enter_unlocked(state,
    *values)`` is for computations with variables: it takes short calls without their lock, while
    nobody holds it. ``fits(*values)`` returns whether the fast path would take these values.

    The remembered tables belong to one workspace. Call ``claim()`` before other uses of it (False:
    a call is running) and ``release()`` afterwards.
    """

    def __init__(self, made: Any, dtypes: Sequence[Any]) -> None:
        self.dtypes = [np.dtype(dtype) for dtype in dtypes]
        self.entry = entry = made.Entry()
        self.make_tables = made.Tables
        self.enter, self.enter_into, self.fits = entry.enter, entry.enter_into, entry.fits
        self.enter_unlocked = entry.enter_unlocked
        self.claim, self.release, self.forget = entry.claim, entry.release, entry.forget

    @property
    def taken(self) -> int:
        """Return the number of calls that used the fast path."""
        return int(self.entry.taken)

    def remember(self, bound: Any, shapes: Sequence[tuple[int, ...]], epoch: int) -> None:
        """Accept calls with inputs of these shapes, with the tables of ``bound``; claim it before.

        ``epoch`` is the epoch of the variables in these tables.
        """
        if bound.entered is None:
            inputs = tuple(zip(self.dtypes, shapes, [None] * len(shapes), strict=True))
            bound.entered = self.make_tables(*bound.tables(inputs))
        self.entry.remember(bound.entered, epoch)
