"""``GEON_OPS``: geon's functions as the namespace in which formulas for targets are written.

The formulas of ``normal`` and ``gamma_formulas`` are written once: with this namespace they build
ops, with NumPy they compute.
"""

from __future__ import annotations

from types import SimpleNamespace

from ..rows import elementwise, logic, trigonometry

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
