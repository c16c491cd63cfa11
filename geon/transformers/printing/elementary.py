"""``ELEMENTARY``: C definitions of exp, log, sin and the like, for float32 and float64."""

from __future__ import annotations

from .elementary_f32 import EXPONENTIAL_F32
from .elementary_f32_angles import ANGLES_F32
from .elementary_f64 import ELEMENTARY_F64
from .elementary_f64_angles import ANGLES_F64
from .elementary_f64_powers import POWERS_F64
from .elementary_strips import STRIPS
from .elementary_tails import TAILS
from .elementary_text import BITS

__all__ = ["ELEMENTARY"]

ELEMENTARY: dict[str, str] = (
    (BITS | EXPONENTIAL_F32 | ANGLES_F32 | ELEMENTARY_F64 | ANGLES_F64 | POWERS_F64)
    | TAILS
    | STRIPS
)
