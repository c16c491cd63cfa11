"""Lowerings for native code: those of all targets, less what C computes by itself."""

from __future__ import annotations

from .. import lowering

# erf has a C function of its own.
RULES = lowering.RULES.without(lowering.erf)
