"""The way from Python into a compiled module that takes one call of a C function.

``entry.c`` says what is done there; it is an extension that is built when geon is installed, where
there are a C compiler and Python's headers. Without it all calls go the long way.
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
    """The extension; None where there is none: ``extensions.built`` says when."""
    return built("geon.transformers.native._entry")


class Entry:
    """A way into a computation for arguments that are as those of a call before.

    ``enter(*values)`` gives the tuple of results, ``enter_into(arrays, *values)`` puts them into
    these arrays, those that are None excepted; both give NotImplemented for values that are no
    arrays that can be read where they lie, or that have other shapes than those that were
    remembered, while another call is inside, and where a kernel finds the data wrong. They raise
    ``MemoryError``. ``enter_unlocked(state, *values)`` is for computations with variables, whose
    lock it does without: it takes what is short, while nobody holds the lock. ``fits(*values)``
    says whether these values would be taken.

    What is remembered belongs to one workspace: ``claim()`` it (False: a call is inside) before it
    is used otherwise, and ``release()`` it afterwards.
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
        """How many calls went this way."""
        return int(self.entry.taken)

    def remember(self, bound: Any, shapes: Sequence[tuple[int, ...]], epoch: int) -> None:
        """Take calls with inputs of these shapes, by the tables of ``bound``; claim it before.

        ``epoch`` is that of the variables in these tables.
        """
        if bound.entered is None:
            inputs = tuple(zip(self.dtypes, shapes, [None] * len(shapes), strict=True))
            bound.entered = self.make_tables(*bound.tables(inputs))
        self.entry.remember(bound.entered, epoch)
