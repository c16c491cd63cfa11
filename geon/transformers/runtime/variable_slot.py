"""``Slot``: a variable as the runtime sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np


class Slot:
    """A variable as the runtime sees it.

    ``label`` is what messages call it, ``name`` the user's name or None, and ``kind`` what its key
    in checkpoints begins with where it has no name. ``learned`` has the open lengths that an
    initial array fixes. ``start`` puts its first value in, for which the slots in ``reads`` must
    have theirs; a variable without a first value has none. ``alone`` says whether that changes no
    other variable. ``value`` lies in the memory of the transformer, and has ``shape``; it is None
    where there is none yet. ``lengths`` are those of its open names, which other variables may
    have otherwise. ``feed`` is what makes a user's arrays ones that fit, and the label and the
    shape or ``dims`` that it is for.
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
