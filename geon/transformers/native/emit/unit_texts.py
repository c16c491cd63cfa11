"""Divide the functions of a module's kernels into translation units with their helpers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ...loops.rules.transposed_tiles import MIN_TRANSPOSED_ITEM_BYTES, TILE_COLUMNS
from ...printing.scalars.helpers import definitions
from ..names.c_files import instance
from ..names.c_texts import c_text
from ..names.dialect import PRELUDE
from ..names.naming import NAME, NativeFunction
from ..names.out_of_line import inlined, out_of_line_definitions
from ..toolchain.flags import OF_VECTORS
from ..toolchain.translation_units import cost, divide_units, is_unit_ready
from ..trees.nest_text import GRAIN

TRANSPOSE_SQUARE_SIDE = 2 * TILE_COLUMNS  # rows and columns of a square of a plain transpose
FLOOR_DIV = """\
GEON_INLINE int64_t geon_floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
"""
OWN = {
    "geon_floor_div": FLOOR_DIV,
    "geon_grain": GRAIN,
}  # helper functions that units define themselves


class UnitFunctions:
    """The functions of a module, deduplicated by text and divided into translation units.

    Names end in ``suffix``. The units are balanced for ``cores`` parallel compilers; the first unit
    has an extra cost of ``first``. ``ready`` receives a unit as soon as it is complete. ``forms``
    is the expected number of functions.
    """

    def __init__(self, suffix: str, first: int, cores: int, ready: Callable[[str], None]) -> None:
        self.suffix, self.first, self.cores, self.ready = suffix, first, cores, ready
        self.forms = 0
        self.names: dict[str, str] = {}
        self.made: dict[str, NativeFunction] = {}
        self.cost = 0  # compile cost of all functions so far
        self.begun: list[str] = []  # finished units
        self.waiting: list[str] = []  # texts of scalar functions that no unit has yet
        self.of_vectors: list[str] = []  # texts of vectorised functions that no unit has yet
        self.declarations: list[str] = []  # of exported functions

    def name(self, made: NativeFunction) -> str:
        """Return the name of a function; functions of equal text share one."""
        name = self.names.get(made.text)
        if name is None:
            name = self.names[made.text] = f"kernel{self.suffix}_{len(self.names)}"
            self.made[made.text] = made
            (self.of_vectors if made.of_vectors else self.waiting).append(made.text)
            self.cost += self.cost_of(made.text)
            self.begin()
        return name

    def cost_of(self, text: str) -> int:
        """Return the estimated compile cost of a function."""
        return cost(text, self.made[text].of_vectors)

    def begin(self) -> None:
        """Complete a unit from the waiting functions if a core would otherwise be idle.

        Text that is emitted for readers or for timing is divided in the same way.
        """
        if self.cores == 1 or len(self.begun) == self.cores:
            return
        expected = self.cost / len(self.names) * self.forms
        for texts in (self.waiting, self.of_vectors):
            waiting = sum(map(self.cost_of, texts))
            if is_unit_ready(waiting, self.cost, expected, self.cores, first=not self.begun):
                self.begun.append(self.unit(texts, of_vectors=texts is self.of_vectors))
                texts.clear()
                self.ready(self.begun[-1])
                return

    def units(self, floor_div: bool) -> list[str]:
        """Return all units, the first with declarations of the functions in the others.

        Region functions, which are appended to the first unit, may need ``floor_div``. Vectorised
        functions have units of their own, because the optimisation passes for scalar text harm
        them: gcc splits a loop over two blocks of a row, and the hardware prefetcher then sees no
        single stream. If there are vectorised functions, the first unit is one of theirs: all
        passes are also slow on the function that calls all kernels.
        """
        vectors, kinds = bool(self.of_vectors), bool(self.of_vectors and self.waiting)
        of_vectors = self.groups(self.of_vectors, self.first, kinds) if vectors else []
        plain = self.groups(self.waiting, 0 if vectors else self.first)
        first, *others = of_vectors or plain
        units = [*self.begun, *[self.unit(texts, of_vectors=vectors) for texts in others]]
        if kinds:
            units += [self.unit(texts) for texts in plain]
        declared = "".join(f"{each};\n" for each in self.declarations)
        return [self.unit(first, bool(units), floor_div, of_vectors=vectors) + declared, *units]

    def groups(self, texts: list[str], first: int, others: bool = False) -> list[list[str]]:
        """Divide functions into units. The first unit has an extra cost of ``first``. ``others`` is
        True if there are units of the other kind.
        """
        costs = [self.cost_of(text) for text in texts]
        return [
            [texts[n] for n in group] for group in divide_units(costs, first, self.cores, others)
        ]

    def unit(
        self,
        texts: list[str],
        exported: bool = True,
        floor_div: bool = False,
        of_vectors: bool = False,
    ) -> str:
        """Return one unit: the headers and helpers of its functions, then the functions.

        The functions are ``exported`` if other units call them. The unit's first line marks it if
        it is ``of_vectors``.
        """
        shared: dict[str, None] = {}
        calls: dict[str, None] = {"geon_floor_div": None} if floor_div else {}
        for text in texts:
            shared.update(dict.fromkeys(self.made[text].shared))
            calls.update(dict.fromkeys(self.made[text].calls))
        small = small_functions()
        own = [text for name, text in small.items() if name in calls]
        helpers = definitions([name for name in inlined(calls) if name not in small])
        written = [self.exported(text) if exported else self.named(text) for text in texts]
        body = "\n".join([*shared, "\n".join(written)])
        prelude = f"{OF_VECTORS}\n{PRELUDE}" if of_vectors else PRELUDE
        return "\n".join(
            [prelude, helpers, c_text("module.h"), *own, *out_of_line_definitions(calls), body]
        )

    def named(self, text: str) -> str:
        """Return the function's text with its name in place of ``NAME``."""
        return text.replace(NAME, self.names[text])

    def exported(self, text: str) -> str:
        """Return the function's text with hidden visibility instead of ``static``."""
        head = self.made[text].head.replace(NAME, self.names[text])
        declared = f'__attribute__((visibility("hidden"))) {head}'
        self.declarations.append(declared)
        static, made = f"static {head}", self.named(text)
        assert made.count(static) == 1, f"no function {static} in {made}"
        return made.replace(static, f"{declared};\n{head}")


@cache
def small_functions() -> dict[str, str]:
    """Return the helpers that kernels' units define, by name."""
    files = {
        "geon_past_put": "move/streaming.h",
        "geon_vectors": "vectors.h",
        "geon_narrow_vectors": "narrow_vectors.h",
    }
    texts = {name: c_text(file) for name, file in files.items()}
    return {**OWN, **transposes(), **texts}


@cache
def transposes() -> dict[str, str]:
    """Return the C functions that transpose tiles of elements of 1, 2, 4 and 8 bytes, by name."""
    found = {}
    for itemsize in (1, 2, 4, 8):
        macros: dict[str, object] = {"TYPE": f"uint{8 * itemsize}_t", "BYTES": itemsize}
        if itemsize >= 4:
            macros["BLOCK"] = 32 // itemsize
        if itemsize <= 4:
            macros["SIDE"] = 16 // itemsize
        name = f"geon_transpose_{itemsize}"
        found[name] = instance("move/transpose.h", name, macros)
        squares = {k: v for k, v in macros.items() if k != "BLOCK" or "SIDE" not in macros}
        found[f"{name}_squares"] = instance(
            "move/transpose.h", f"{name}_squares", {**squares, "SQUARES": ""}
        )
        found[f"{name}_spread"] = instance("move/repeat_each.h", name, macros)
        if itemsize >= MIN_TRANSPOSED_ITEM_BYTES:
            more = {
                **macros,
                "TURNED": TRANSPOSE_SQUARE_SIDE,
            }
            found[f"{name}_turned"] = instance("move/transpose_streaming.h", name, more)
    return found
