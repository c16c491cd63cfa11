"""Properties in which languages of the C family differ."""

from __future__ import annotations

from typing import NamedTuple


class Dialect(NamedTuple):
    """A language of the C family.

    ``wraps``: signed integers wrap around. ``spares``: loads are guarded, so that nothing is read
    that no select uses. ``masks``: truths that innermost loops use are masks, which compilers
    vectorise better.
    """

    wraps: bool
    spares: bool
    masks: bool
