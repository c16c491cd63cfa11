"""For whom ops are built in this thread: the line that they carry and the table that they are in.

A rule, of a rewrite or of a derivative, is a plain expression of geon's functions and operators.
The driver that runs it says here whose line the ops get and in which table they are. Nothing else
is passed through the state of a thread: stages are given what they need.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .interning import OwnTable
    from .op_graph import Tensor
    from .sites import Site


class Building(threading.local):
    """The line of the ops that are built, None for the caller's; their table, None for the users'.

    Drivers set ``site`` for each op that they come to. ``step`` is the number of the step where
    that of a loop is built, which draws are part of.
    """

    site: Site | None = None
    own: OwnTable | None = None
    step: Tensor | None = None


current = Building()


@contextmanager
def building(own: OwnTable | None = None) -> Iterator[Building]:
    """The block of a driver: ops are in ``own``, if given, and carry the ``site`` that it sets."""
    site, table = current.site, current.own
    current.site = None
    if own is not None:
        current.own = own
    try:
        yield current
    finally:
        current.site, current.own = site, table
