"""Scalar code as text of the C family: each value is named once, as far out as it is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...op_graph.affine import Affine, Quotient, Remainder, Size
from ...op_graph.dtypes import name_of
from ...op_graph.index_map import Guard
from ..kernels.depths import Depths
from ..kernels.scalar import (
    NODES,
    Apply,
    Clamped,
    Contracted,
    IndexNumber,
    Kept,
    LengthNumber,
    Load,
    Number,
    Reduced,
    Running,
    Scalar,
    Select,
    Wrapped,
)
from . import c_expressions

STRIP = 16  # elements that functions of lanes take at once: a vector of float32, or two of float64
LANES = 512  # most rows computed side by side where neighbouring rows adjoin in memory


class Names(Protocol):
    """What a kernel calls its memory and its lengths."""

    def operand(self, number: int) -> str:
        """The typed pointer to the memory of operand ``number``."""

    def length(self, length: Size) -> str:
        """A length as C."""


@dataclass(frozen=True, slots=True)
class StripCall:
    """A function of all lanes of a strip at once: ``result`` and ``operand`` are arrays."""

    function: str
    result: str
    operand: str

    def __str__(self) -> str:
        return f"{self.function}({self.result}, {self.operand});"


class Block:
    """Statements of one nesting depth: 0 once, 1 for each row, 2 for each element.

    Inner blocks see outer ones' names. Where ``lanes`` is set, each value of the block is an array
    over the lanes of a block of rows, and is computed in a loop over them. In a ``strip`` each
    value is an array over the strip's lanes; ``arrays`` are their declarations, and some lines are
    a ``StripCall``.
    """

    def __init__(
        self, outer: Block | None = None, lanes: str | None = None, strip: bool = False
    ) -> None:
        self.outer, self.lanes, self.strip = outer, lanes, strip
        self.arrays: list[str] = []
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.lines: list[Any] = []
        self.names: dict[Hashable, str] = {}
        self.serial = False  # whether compilers may make no vectors of it

    def find(self, key: Hashable) -> str | None:
        """The name of what was computed under ``key``, here or further out."""
        block: Block | None = self
        while block is not None:
            if key in block.names:
                return block.names[key]
            block = block.outer
        return None

    def at(self, depth: int) -> Block:
        """This block, or the one around it of at most this depth."""
        block = self
        while block.depth > depth and block.outer is not None:
            block = block.outer
        return block


class ScalarPrinter:
    """Writes the scalar code of one kernel.

    ``reduced`` are the names of finished reductions by number and part, ``running`` those of the
    state (and of the other state) that a reduction is at, ``kept`` those of row arrays,
    ``contracted`` is that of a contraction's sum, ``spelled`` the texts of loops' variables where
    they are not their names.
    """

    def __init__(self, names: Names, depths: Depths) -> None:
        self.names, self.depths = names, depths
        self.reduced: dict[tuple[int, int], str] = {}
        self.running: dict[tuple[int, bool], str] = {}
        self.kept: dict[int, str] = {}
        self.contracted = ""
        self.spelled: Mapping[str, str] = {}
        self.count = 0

    def fresh(self, stem: str = "t") -> str:
        """A new identifier."""
        self.count += 1
        return f"{stem}{self.count}"

    def let(self, block: Block, key: Hashable, ctype: str, text: str) -> str:
        """The name of ``text`` computed once in ``block``."""
        name = self.fresh()
        if block.strip:
            name = self.put_in_lanes(block, ctype, name, text)
        elif block.lanes is None:
            block.lines.append(f"const {ctype} {name} = {text};")
        else:
            block.lines.append(f"{ctype} {name}[{LANES}];")
            block.lines.append(
                f"for (int64_t lane = 0; lane < {block.lanes}; lane++) {name}[lane] = {text};"
            )
            name = f"{name}[lane]"
        block.names[key] = name
        return name

    def put_in_lanes(self, block: Block, ctype: str, name: str, text: str) -> str:
        """``text`` of each lane of a strip, in an array of this name; the name of one element."""
        block.arrays.append(f"{ctype} {name}[{STRIP}];")
        block.lines.append(f"{name}[lane] = {text};")
        return f"{name}[lane]"

    # Indices ------------------------------------------------------------------------------------

    def index(self, block: Block, index: Affine) -> str:
        """An index as C; what must be computed for it is written into ``block`` first."""
        terms = []
        for atom, step in index.terms.items():
            name = self.variable(atom) if isinstance(atom, str) else self.atom(block, atom)
            length = self.names.length(step)
            factor = length if length.isalnum() else f"({length})"
            terms.append(name if step == 1 else f"{name} * {factor}")
        if index.constant != 0 or not terms:
            terms.append(self.names.length(index.constant))
        return " + ".join(terms).replace("+ -", "- ")

    def variable(self, name: str) -> str:
        """The text of a loop's variable."""
        return self.spelled.get(name, name)

    def atom(self, block: Block, atom: Hashable) -> str:
        """The name of what an index is made of."""
        if isinstance(atom, NODES):
            return self.value(block, atom)
        found = block.find(atom)
        if found is not None:
            return found
        block = self.scalar_block(block, self.depths.atom(atom))
        if isinstance(atom, Clamped):
            flag = self.flag(block, atom.guards)
            return self.let(block, atom, "int64_t", f"{flag} ? {self.index(block, atom.of)} : 0")
        assert isinstance(atom, (Quotient, Remainder))
        text = self.index(block, atom.of)
        size = self.names.length(atom.by) if atom.by != 0 else "1"  # never run, but compiled
        stem, sign = ("q", "/") if isinstance(atom, Quotient) else ("m", "%")
        name = block.names[atom] = self.fresh(stem)
        block.lines.append(f"const int64_t {name} = ({text}) {sign} ({size});")
        return name

    def scalar_block(self, block: Block, depth: int) -> Block:
        """Where an index known at ``depth`` is computed: no array over lanes is made of it."""
        outer = block.at(depth)
        return block if outer.lanes is not None else outer

    def flag(self, block: Block, guards: tuple[Guard, ...]) -> str:
        """The name of whether all guards hold."""
        found = block.find(guards)
        if found is not None:
            return found
        depth = max(self.depths.index(guard.index) for guard in guards)
        block = self.scalar_block(block, depth)
        conditions = [text for guard in guards for text in self.guard(block, guard)]
        return self.let(block, guards, "_Bool", " && ".join(conditions))

    def guard(self, block: Block, guard: Guard) -> list[str]:
        """The conditions of a guard."""
        text = self.index(block, guard.index)
        low, high = self.names.length(guard.low), self.names.length(guard.high)
        if guard.high - guard.low == 1:
            return [f"{text} == {low}"]
        return [f"{text} >= {low}", f"{text} < {high}"]

    # Values -------------------------------------------------------------------------------------

    def value(self, block: Block, value: Scalar) -> str:
        """The name or literal of a value."""
        direct = self.direct(block, value)
        if direct is not None:
            return direct
        found = block.find(value)
        if found is not None:
            return found
        block = block.at(self.depths.value(value))
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        function = strip_function(value) if block.strip else None
        if function is not None:
            return self.call_strip(block, value, ctype, function)
        return self.let(block, value, ctype, TEXTS[type(value)](self, block, value))

    def call_strip(self, block: Block, value: Scalar, ctype: str, function: str) -> str:
        """The name of a value that a function of all lanes computes."""
        assert isinstance(value, Apply)
        text = self.value(block, value.args[0])
        operand, result = self.fresh(), self.fresh()
        self.put_in_lanes(block, ctype, operand, text)
        block.arrays.append(f"{ctype} {result}[{STRIP}];")
        block.lines.append(StripCall(function, result, operand))
        block.names[value] = f"{result}[lane]"
        return f"{result}[lane]"

    def direct(self, block: Block, value: Scalar) -> str | None:
        """The text of what needs no name of its own; None for all else."""
        if isinstance(value, Number):
            return c_expressions.literal(value.value, name_of(value.dtype))
        if isinstance(value, LengthNumber):
            ctype = c_expressions.C_TYPES[name_of(value.dtype)]
            return f"(({ctype})({self.names.length(value.length)}))"
        if isinstance(value, Reduced):
            return self.reduced[value.number, value.part]
        if isinstance(value, Running):
            return self.running[value.part, value.other]
        if isinstance(value, Contracted):
            return self.contracted
        if isinstance(value, Kept):
            return f"{self.kept[value.number]}[{self.index(block, value.offset)}]"
        return None

    def _load(self, block: Block, value: Load) -> str:
        offset = self.index(block, value.offset)
        # gcc 12 makes vectors of no load of _Bool: bools lie in bytes.
        flag = " != 0" if name_of(value.dtype) == "bool" else ""
        return f"{self.names.operand(value.operand)}[{offset}]{flag}"

    def _index(self, block: Block, value: IndexNumber) -> str:
        text = f"({self.index(block, value.index)})"
        return c_expressions.cast("int64", name_of(value.dtype), text)

    def _apply(self, block: Block, value: Apply) -> str:
        name = value.row.name
        operands = [self.value(block, arg) for arg in value.args]
        kinds = [name_of(arg.dtype) for arg in value.args]
        block.serial |= c_expressions.is_serial(name, kinds)
        return c_expressions.expression(name, kinds, name_of(value.dtype), operands, value.attrs)

    def _select(self, block: Block, value: Select) -> str:
        chosen = []
        rest: Scalar = value
        while isinstance(rest, Select):
            flag = self.flag(block, rest.guards)
            chosen.append(f"{flag} ? {self.value(block, rest.value)} : ")
            rest = rest.other
        return "".join([*chosen, self.value(block, rest)])

    def _wrapped(self, block: Block, value: Wrapped) -> str:
        wide = f"(int64_t){self.value(block, value.position)}"
        return f"{wide} < 0 ? {wide} + {self.names.length(value.length)} : {wide}"


def strip_function(value: Scalar) -> str | None:
    """The function of all lanes of a strip that computes this value, where there is one."""
    if not isinstance(value, Apply) or len(value.args) != 1:
        return None
    return c_expressions.strip_function(value.row.name, name_of(value.dtype))


TEXTS: dict[type, Callable[[ScalarPrinter, Block, Any], str]] = {
    Load: ScalarPrinter._load,
    IndexNumber: ScalarPrinter._index,
    Apply: ScalarPrinter._apply,
    Select: ScalarPrinter._select,
    Wrapped: ScalarPrinter._wrapped,
}
