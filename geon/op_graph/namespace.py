"""``GEON_OPS``: geon's functions as the namespace that formulas for every target are written in.

The formulas of ``normal`` and ``approximations`` are one text: given this namespace they build ops,
given NumPy they compute.
"""

from __future__ import annotations

from types import SimpleNamespace

from . import elementwise, logic, trigonometry

NAMES = (
    "absolute cast cos equal exp floor isnan log log1p logical_and logical_not logical_or maximum"
    " minimum power right_shift round sign sin sqrt square tan trunc where"
).split()

GEON_OPS = SimpleNamespace(
    **{
        name: next(getattr(m, name) for m in (logic, trigonometry, elementwise) if hasattr(m, name))
        for name in NAMES
    }
)
