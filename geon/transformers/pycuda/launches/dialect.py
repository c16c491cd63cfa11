"""The dialect of the C printer for CUDA, and definitions of helpers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...printing.scalars.c_types import Dialect

FOLDER = Path(__file__).parents[1] / "cuda"


@cache
def cuda_text(name: str) -> str:
    """Return the text of a file in ``cuda/``."""
    return (FOLDER / name).read_text("utf-8")


# Helpers that have a PTX instruction: types of result and operand, and the instruction.
INSTRUCTIONS = {
    "geon_half_to_f32": ("float", "geon_half", 'asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));'),
    "geon_f32_to_half": ("geon_half", "float", 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));'),
    "geon_f32_to_bfloat": (
        "geon_bfloat", "float", 'asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));'
    ),
    "geon_rounded_to_half": (
        "float", "float",
        'geon_half h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); '
        'asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(h));',
    ),
    "geon_rounded_to_bfloat": (
        "float", "float",
        'geon_bfloat b; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x)); '
        "y = geon_of_bits_f32((uint32_t)b << 16);",
    ),
}  # fmt: skip


def by_instruction(name: str, text: str) -> str:
    """Return the definition of a helper, using its PTX instruction on devices that have it."""
    if name not in INSTRUCTIONS:
        return text
    result, operand, instruction = INSTRUCTIONS[name]
    function = f"GEON_INLINE {result} {name}({operand} x)"
    body = f"{{\n    {result} y;\n    {instruction}\n    return y;\n}}\n"
    return f"#ifdef GEON_INSTRUCTIONS\n{function}\n{body}#else\n{text}#endif\n"


# nvcc assumes that signed overflow does not occur: x + 1 > x is true. Arrays without elements have
# no memory.
CUDA = Dialect(wraps=False, spares=True, masks=False)
