"""``ELEMENTARY``: C definitions of exp, log, sin and the like, for float32 and float64."""

from __future__ import annotations

from collections import ChainMap

from .both_types import BOTH_TYPES
from .f32 import EXPONENTIAL_F32
from .f32_angles import ANGLES_F32
from .f64 import ELEMENTARY_F64, POWERS_F64
from .f64_angles import ANGLES_F64
from .special_text import TAILS
from .vector_functions import STRIPS

__all__ = ["ELEMENTARY"]

ELEMENTARY: ChainMap[str, str] = TAILS.new_child(
    BOTH_TYPES | EXPONENTIAL_F32 | ANGLES_F32 | ELEMENTARY_F64 | ANGLES_F64 | POWERS_F64 | STRIPS
)
