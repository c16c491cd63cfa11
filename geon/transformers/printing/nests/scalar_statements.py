"""Scalar code as text of the C family: each value is computed once, in the outermost block."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.integer_ranges import is_narrow
from ...kernels.analysis.load_guards import limits
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.scalar_code import (
    NODES,
    Apply,
    Clamped,
    Contracted,
    IndexNumber,
    Kept,
    LengthNumber,
    Load,
    Number,
    RandomBits,
    Running,
    Scalar,
    Select,
    Wrapped,
    children_of,
)
from ..scalars import c_expressions
from ..scalars.c_expressions import OUT_OF_LINE
from ..scalars.c_types import Dialect
from .statement_blocks import StatementBlock


class MemoryNames(Protocol):
    """Protocol of the names of a kernel's memory and lengths, and its language."""

    @property
    def dialect(self) -> Dialect:
        """Return the language of the text."""

    def operand(self, number: int) -> str:
        """Return the typed pointer to the memory of operand ``number``."""

    def length(self, length: Size) -> str:
        """Return a length as C."""

    def calls(self, helpers: Iterable[str]) -> None:
        """Record that the kernel calls these helper functions."""


class ScalarPrinter:
    """Prints the scalar code of one kernel.

    ``running``: names of the current state of a scan, by part. ``contracted``: the text of a
    contraction's sum. ``spelled``: texts of loop variables where they are not their names.
    """

    def __init__(self, names: MemoryNames, depths: Depths) -> None:
        self.names, self.depths = names, depths
        self.running: dict[tuple[int, bool], str] = {}
        self.contracted = ""
        self.spelled: Mapping[str, str] = {}
        self.count = 0
        self.out_of_line: frozenset[str] = frozenset()  # helpers that are not inlined

    def fresh(self, stem: str = "t") -> str:
        """Return a new identifier."""
        self.count += 1
        return f"{stem}{self.count}"

    def let(self, block: StatementBlock, key: Hashable, ctype: str, text: str) -> str:
        """Compute ``text`` once in ``block``; return its name."""
        name = self.fresh()
        block.lines.append(f"const {ctype} {name} = {text};")
        block.names[key] = name
        return name

    def expression(
        self,
        block: StatementBlock,
        row: str,
        dtypes: Sequence[str],
        result: str,
        operands: Sequence[str],
    ) -> str:
        """Return the expression of an elementwise primitive, from ``c_expressions``."""
        helpers = c_expressions.calls(row, dtypes, result)
        wraps = self.names.dialect.wraps
        text = c_expressions.expression(row, dtypes, result, operands, wraps)
        for helper in self.out_of_line.intersection(helpers):
            text = text.replace(f"{helper}(", f"{helper}{OUT_OF_LINE}(")
        self.names.calls([h + OUT_OF_LINE if h in self.out_of_line else h for h in helpers])
        return text

    def cast(self, source: str, target: str, text: str) -> str:
        """Return the text of a cast from dtype ``source`` to ``target``."""
        self.names.calls(c_expressions.cast_calls(source, target))
        return c_expressions.cast(source, target, text)

    # Indices ------------------------------------------------------------------------------------

    def index(self, block: StatementBlock, index: AffineIndex) -> str:
        """Return an index as C; statements that it needs are added to ``block``."""
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
        """Return the text of a loop variable."""
        return self.spelled.get(name, name)

    def atom(self, block: StatementBlock, atom: Hashable) -> str:
        """Return the text of an atom of an index."""
        if isinstance(atom, NODES):
            return self.value(block, atom)
        found = block.find(atom)
        if found is not None:
            return found
        block = block.at(self.depths.atom(atom))
        if isinstance(atom, Clamped):
            flag = self.flag(block, atom.guards)
            return self.let(block, atom, "int64_t", f"{flag} ? {self.index(block, atom.of)} : 0")
        assert isinstance(atom, (Quotient, Remainder))
        text = self.index(block, atom.of)
        text = f"{self.dividend_type(atom.of)}({text})"
        size = self.names.length(atom.by) if atom.by != 0 else "1"  # compiled, but not executed
        stem, sign = ("q", "/") if isinstance(atom, Quotient) else ("m", "%")
        text = f"{text} {sign} ({size})"
        name = block.names[atom] = self.fresh(stem)
        block.lines.append(f"const int64_t {name} = {text};")
        return name

    def dividend_type(self, index: AffineIndex) -> str:
        """Return the cast of an index that is divided: narrow divisions are faster."""
        return "(int32_t)" if is_narrow(index) else ""

    def flag(self, block: StatementBlock, guards: tuple[InRange, ...]) -> str:
        """Return the name of the condition that all guards hold."""
        found = block.find(guards)
        if found is not None:
            return found
        depth = max(self.depths.index(guard.index) for guard in guards)
        place = block.at(depth)
        conditions = " && ".join([text for guard in guards for text in self.guard(place, guard)])
        if self.is_innermost(place) or not self.names.dialect.masks:
            return self.let(place, guards, "_Bool", conditions)
        name = place.names[guards] = self.fresh()
        # gcc 12 turns a bool in a loop into a branch, which prevents vectors, but not a mask.
        place.lines.append(f"const int32_t {name} = -({conditions});")
        return name

    def is_innermost(self, block: StatementBlock) -> bool:
        """Return True if a block runs for each element of a pass."""
        return block.depth == ELEMENT_DEPTH

    def guard(self, block: StatementBlock, guard: InRange) -> list[str]:
        """Return the conditions of a guard."""
        text = self.index(block, guard.index)
        low, high = self.names.length(guard.low), self.names.length(guard.high)
        if guard.high - guard.low == 1:
            return [f"{text} == {low}"]
        return [f"{text} >= {low}", f"{text} < {high}"]

    # Values -------------------------------------------------------------------------------------

    def value(self, block: StatementBlock, value: Scalar) -> str:
        """Return the name or literal of a value, after naming its operands.

        It is iterative, because chains may be longer than Python's stack.
        """
        waiting = [value]
        while True:
            last = waiting[-1]
            part = None if self.named(block, last) else self.unnamed(block, last)
            if part is not None:
                waiting.append(part)
            elif len(waiting) > 1:
                self.text(block, waiting.pop())
            else:
                return self.text(block, value)

    def named(self, block: StatementBlock, value: Scalar) -> bool:
        """Return True if a value has a name, or needs none."""
        return isinstance(value, DIRECT) or block.find(value) is not None

    def unnamed(self, block: StatementBlock, value: Scalar) -> Scalar | None:
        """Return the first operand of a value that must be named before it, or None."""
        wide = self.rounded(value)
        found = list(children_of(value)) if wide is None else [wide]
        while isinstance(value, Select) and isinstance(value.other, Select):
            value = value.other  # a chain of selects is one expression
            found = [part for part in found if part is not value]
            found += children_of(value)
        return next((part for part in found if not self.named(block, part)), None)

    def text(self, block: StatementBlock, value: Scalar) -> str:
        """Return the name or literal of a value whose operands are named."""
        found = block.find(value)  # for example a row's value that a tile repeats
        if found is not None:
            return found
        direct = self.direct(block, value)
        if direct is not None:
            return direct
        block = block.at(self.depths.value(value))
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        return self.let(block, value, ctype, self.computed(block, value))

    def computed(self, block: StatementBlock, value: Scalar) -> str:
        """Return the expression of a value whose operands are named."""
        return TEXTS[type(value)](self, block, value)

    def name(self, *texts: str) -> None:
        """Record that texts are used in the statements of an element; a hook for subclasses."""

    def stored(self, ctype: str, place: str, text: str) -> str:
        """Return the statement that stores a value at ``place``."""
        return f"{place} = {text};"

    def direct(self, block: StatementBlock, value: Scalar) -> str | None:
        """Return the text of a value that needs no name, or None."""
        if isinstance(value, Number):
            return c_expressions.literal(value.value, name_of(value.dtype))
        if isinstance(value, LengthNumber):
            ctype = c_expressions.C_TYPES[name_of(value.dtype)]
            return f"(({ctype})({self.names.length(value.length)}))"
        if isinstance(value, Running):
            return self.running[value.part, value.other]
        if isinstance(value, Contracted):
            return self.contracted
        return None

    def _load(self, block: StatementBlock, value: Load) -> str:
        offset = self.index(block, value.offset)
        # gcc 12 does not vectorise loads of _Bool: bools are stored as bytes.
        flag = " != 0" if name_of(value.dtype) == "bool" else ""
        element = f"{self.names.operand(value.operand)}[{offset}]{flag}"
        if not self.names.dialect.spares:
            return element
        taken = [self.flag(block, guards) for guards in limits(value.offset)]
        return f"{' && '.join(taken)} ? {element} : 0" if taken else element

    def _index(self, block: StatementBlock, value: IndexNumber) -> str:
        text = f"({self.index(block, value.index)})"
        return self.cast("int64", name_of(value.dtype), text)

    def _apply(self, block: StatementBlock, value: Apply) -> str:
        name = value.row.name
        wide = self.rounded(value)
        if wide is not None:
            self.names.calls([rounding := c_expressions.rounding(name_of(value.args[0].dtype))])
            return f"{rounding}({self.value(block, wide)})"
        operands = [self.value(block, arg) for arg in value.args]
        kinds = [name_of(arg.dtype) for arg in value.args]
        result = name_of(value.dtype)
        return self.expression(block, name, kinds, result, operands)

    def rounded(self, value: Scalar) -> Scalar | None:
        """Return the value that a pair of casts rounds; None for other values."""
        return rounded_half(value)

    def _select(self, block: StatementBlock, value: Select) -> str:
        flags, texts = [], []
        rest: Scalar = value
        while isinstance(rest, Select):
            flags.append(self.flag(block, rest.guards))
            texts.append(self.value(block, rest.value))
            rest = rest.other
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        return self.choice(ctype, flags, [*texts, self.value(block, rest)])

    def choice(self, ctype: str, flags: Sequence[str], texts: Sequence[str]) -> str:
        """Return the text of the first value whose flag is set, or the last one."""
        chosen = [f"{flag} ? {text} : " for flag, text in zip(flags, texts[:-1], strict=True)]
        return "".join([*chosen, texts[-1]])

    def _random(self, block: StatementBlock, value: RandomBits) -> str:
        stream = [self.value(block, each) for each in (value.seed, value.draw, value.call)]
        position = self.index(block, value.position)
        name = c_expressions.random_bits(name_of(value.dtype))
        self.names.calls([name])
        return f"{name}({', '.join([*stream, position])})"

    def _wrapped(self, block: StatementBlock, value: Wrapped) -> str:
        wide = f"(int64_t){self.value(block, value.position)}"
        return f"{wide} < 0 ? {wide} + {self.names.length(value.length)} : {wide}"


def rounded_half(value: Scalar) -> Scalar | None:
    """Return the float32 that ``value`` casts to a half and back; None for other values."""
    if not _is_cast(value, "float32") or not isinstance(narrow := value.args[0], Apply):
        return None
    halves = any(_is_cast(narrow, half) for half in c_expressions.HALVES)
    return narrow.args[0] if halves and name_of(narrow.args[0].dtype) == "float32" else None


def _is_cast(value: Scalar, dtype: str) -> TypeGuard[Apply]:
    """Return True if a value is a cast to this dtype."""
    return isinstance(value, Apply) and value.row.name == "cast" and name_of(value.dtype) == dtype


DIRECT = (Number, LengthNumber, Running, Contracted, Kept)  # need no name
TEXTS: dict[type, Callable[[ScalarPrinter, StatementBlock, Any], str]] = {
    Load: ScalarPrinter._load,
    IndexNumber: ScalarPrinter._index,
    Apply: ScalarPrinter._apply,
    Select: ScalarPrinter._select,
    Wrapped: ScalarPrinter._wrapped,
    RandomBits: ScalarPrinter._random,
}
