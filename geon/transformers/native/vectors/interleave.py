"""Emit loops whose iterations gcc interleaves, several vectors at once.

gcc unrolls a loop until the narrowest type fills a vector, and emits each statement for all vectors
of wider types before the next. So a dummy count of a narrow type is computed in the loop, which
costs an addition and an "or" for each block of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple
from ...printing.nests.loop_lines import for_loop, indent
from ...printing.nests.pass_text import PrintedPass
from ..names.dialect import SIMD

# Minimum bytes of vectors that are interleaved, and that hold conversions to 64-bit integers: AVX2.
MIN_VECTOR_BYTES = 32
INTERLEAVED_VECTORS = 4  # independent vectors, which hide the latency of each step
MIN_LOOP_BLOCKS = 2  # minimum blocks of vectors of a loop for which a second version pays off
COUNTS = {4: "uint8_t", 8: "uint16_t"}  # dummy type by element bytes: 1/VECTORS of its width


@dataclass(frozen=True, slots=True)
class Abreast:
    """Interleaved vectors: the iterations of a block, and the type of the dummy count."""

    block: int
    ctype: str

    def blocks(
        self, variable: str, bounds: tuple[str, str], pragma: str, body: list[str]
    ) -> list[str]:
        """Return a loop whose iterations fill whole blocks."""
        return [
            f"{self.ctype} abreast = 0, count = 0;",
            f"{pragma} reduction(|:abreast)",
            *for_loop(variable, *bounds, ["abreast |= count++;", *body]),
            "GEON_USED(abreast);",
        ]

    def loop(
        self, variable: str, bounds: tuple[str, str], size: Size, pragma: str, body: list[str]
    ) -> list[str]:
        """Return a loop of at most ``size`` iterations, split into whole blocks and a remainder
        loop.
        """
        (low, high), filled = bounds, f"{variable}_filled"
        if isinstance(size, int) and size < MIN_LOOP_BLOCKS * self.block:
            return [pragma, *for_loop(variable, *bounds, body)]
        if bounds == ("0", str(size)) and is_multiple(size, self.block):
            return ["{", *indent(self.blocks(variable, bounds, pragma, body)), "}"]
        lines = [
            f"const int64_t turns = {high} - {low} < {MIN_LOOP_BLOCKS * self.block} ? 0 : "
            f"{high} - {low};",
            f"const int64_t {filled} = {low} + (turns & -{self.block});",
            *self.blocks(variable, (low, filled), pragma, body),
            pragma,
            *for_loop(variable, filled, high, body),
        ]
        return ["{", *indent(lines), "}"]


def interleaved(variable: str, width: int, bounds: tuple[str, str], body: list[str]) -> list[str]:
    """Return a loop over whole blocks of vectors of elements of ``width`` bytes."""
    return Abreast(0, COUNTS[width]).blocks(variable, bounds, SIMD, body)


def choose_interleaving(made: PrintedPass, vector_bytes: int) -> Abreast | None:
    """Return the interleaving of a pass's vectors, or None."""
    if made.abreast not in COUNTS or vector_bytes < MIN_VECTOR_BYTES:
        return None
    return Abreast(INTERLEAVED_VECTORS * vector_bytes // made.abreast, COUNTS[made.abreast])
