"""``Slot``: a variable in the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np


class Slot:
    """A variable in the runtime.

    ``label`` is its description in messages, ``name`` the user's name or None. ``kind`` begins its
    key in checkpoints if it has no name. ``learned`` has the open lengths that an initial array
    fixes. ``start`` sets its initial value, None if there is none; the slots in ``reads`` must be
    set before. ``alone`` is True if that changes no other variable. ``value`` lies in the
    transformer's memory and has ``shape``; None if not allocated. ``lengths`` are those of its open
    names; other variables may have different ones. ``feed`` is (label, dims or shape, function):
    the cached conversion of users' arrays.
    """

    def __init__(
        self,
        label: str,
        name: str | None,
        dtype: Any,
        axes: Iterable[str],
        dims: Iterable[Any],
        persistent: bool = True,
        learned: Mapping[str, int] | None = None,
        kind: str = "variable",
    ) -> None:
        self.label, self.name, self.dtype = label, name, np.dtype(dtype)
        self.axes, self.dims, self.persistent = tuple(axes), tuple(dims), persistent
        self.learned, self.kind = learned or {}, kind
        self.start: Callable[[], None] | None = None
        self.reads: tuple[Slot, ...] = ()
        self.value: Any = None
        self.shape: tuple[int, ...] = ()
        self.feed: tuple[str, tuple[Any, ...], Callable[[Any], Any]] | None = None
        self.lengths: dict[str, int] = {}
        self.ready = self.started = False
        self.alone = True

    def __repr__(self) -> str:
        return self.label
