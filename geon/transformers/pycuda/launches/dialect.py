"""What CUDA says in its own way: the text that modules begin with, and rows side by side."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "cuda"


@cache
def cuda_text(name: str) -> str:
    """A file of ``cuda/``."""
    return (FOLDER / name).read_text("utf-8")


# What devices have an instruction for: the types of result and operand, and the instruction.
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
    """The definition of a helper: by an instruction on devices that have it, else as it is."""
    if name not in INSTRUCTIONS:
        return text
    result, operand, instruction = INSTRUCTIONS[name]
    function = f"GEON_INLINE {result} {name}({operand} x)"
    body = f"{{\n    {result} y;\n    {instruction}\n    return y;\n}}\n"
    return f"#ifdef GEON_INSTRUCTIONS\n{function}\n{body}#else\n{text}#endif\n"


class ThreadLanes:
    """Rows side by side are those of neighbouring threads: each thread has one of them.

    Passes by elements read what lies across from ``tiles`` in shared memory.
    """

    number = "1"
    windows = stages = together = hides = fetches = False
    flat = False
    wraps = False  # nvcc takes x + 1 > x for true
    spares = True  # an array without elements lies nowhere

    def __init__(self, tiles: bool = False) -> None:
        self.tiles = tiles

    def held(self, name: str, ctype: str) -> str:
        """The value called ``name``, which each thread has of its row."""
        return name

    def array_of(self, text: str) -> str | None:
        """What each thread has is no array; its name is all there is."""
        return text

    def alone(self, name: str) -> str:
        """The same where a row is by itself."""
        return name

    def let(self, ctype: str, name: str, text: str) -> list[str]:
        """The statement that makes ``name`` the value ``text``."""
        return [f"const {ctype} {name} = {text};"]

    def stored(self, statement: str, side_by_side: bool) -> str:
        """The statement that stores a value of the row, by one thread of those that share it."""
        return f"if (first) {statement}"

    def all(self, statements: list[str]) -> list[str]:
        """The statements: a thread has one row."""
        return statements
