"""``Growth``: warns if a cache of programs gets a new program for each value of a setting."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping

from ...op_graph.core.source_info import describe, resolve, user_site

WARN_AFTER_PROGRAMS = (
    10  # number of programs that differ in values alone at which the warning is given
)


class Growth:
    """Counts the programs of a cache by the form of their arguments.

    ``what`` is the owner of the cache in messages, and ``cure`` the last sentence of the warning.
    """

    def __init__(self, what: str, cure: str) -> None:
        self.what, self.cure = what, cure
        self._values: dict[Hashable, list[Mapping[str, Hashable]]] = {}

    def add(self, form: Hashable, values: Mapping[str, Hashable]) -> None:
        """Record a program for these values of settings; warn if there are many of its form."""
        known = self._values.setdefault(form, [])
        known.append(values)
        if len(known) != WARN_AFTER_PROGRAMS:
            return
        changing = [
            name for name in values if len({each.get(name) for each in known}) > len(known) // 2
        ]
        names = ", ".join(changing or values)
        site = user_site(2)
        filename, line = resolve(site)
        warnings.warn_explicit(
            f"{self.what} compiled program number {len(known)} for arguments of the same form at "
            f"{describe(site)}: each value of {names} makes a program of its own, which is kept; "
            f"{self.cure}",
            RuntimeWarning,
            filename,
            line,
        )
