"""Loops whose vectors are computed some abreast, as C.

gcc takes as many turns of a loop at once as fill a vector of the narrowest values, and writes each
statement for all vectors of wider ones before the next. So a count of narrow integers is taken
along, which costs a sum and an "or" for a block of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import is_multiple
from ...printing.nests.pass_text import PrintedPass
from ..names.loop_lines import for_loop, indented

WIDE = 32  # bytes of vectors in which some are computed abreast,
VECTORS = 4  # so many
SHORT = 2  # such blocks of vectors below which a loop is not worth two texts
COUNTS = {4: "uint8_t", 8: "uint16_t"}  # by the bytes of an element: a quarter of them


@dataclass(frozen=True, slots=True)
class Abreast:
    """How many turns of a loop fill vectors that are computed abreast, and the narrow count."""

    block: int
    ctype: str

    def blocks(
        self, variable: str, bounds: tuple[str, str], pragma: str, body: list[str]
    ) -> list[str]:
        """A loop whose turns fill blocks."""
        return [
            f"{self.ctype} abreast = 0, count = 0;",
            f"{pragma} reduction(|:abreast)",
            *for_loop(variable, *bounds, ["abreast |= count++;", *body]),
            "GEON_USED(abreast);",
        ]

    def loop(
        self, variable: str, bounds: tuple[str, str], size: Size, pragma: str, body: list[str]
    ) -> list[str]:
        """A loop of ``size`` turns or fewer, of which those that fill blocks are by themselves."""
        (low, high), filled = bounds, f"{variable}_filled"
        if isinstance(size, int) and size < SHORT * self.block:
            return [pragma, *for_loop(variable, *bounds, body)]
        if bounds == ("0", str(size)) and is_multiple(size, self.block):
            return ["{", *indented(self.blocks(variable, bounds, pragma, body)), "}"]
        lines = [
            f"const int64_t turns = {high} - {low} < {SHORT * self.block} ? 0 : {high} - {low};",
            f"const int64_t {filled} = {low} + (turns & -{self.block});",
            *self.blocks(variable, (low, filled), pragma, body),
            pragma,
            *for_loop(variable, filled, high, body),
        ]
        return ["{", *indented(lines), "}"]


def abreast(made: PrintedPass, vector_bytes: int) -> Abreast | None:
    """How the vectors of a pass are computed abreast; None where they are one after another."""
    if made.abreast not in COUNTS or vector_bytes < WIDE:
        return None
    return Abreast(VECTORS * vector_bytes // made.abreast, COUNTS[made.abreast])
