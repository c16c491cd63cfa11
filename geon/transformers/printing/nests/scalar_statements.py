"""Scalar code as text of the C family: each value is named once, as far out as it is known."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from ....op_graph.axes.affine import Affine, Quotient, Remainder, Size
from ....op_graph.axes.index_map import Guard
from ....op_graph.values.dtypes import name_of
from ...kernels.analysis.footprint import named, names_in
from ...kernels.analysis.integer_ranges import is_narrow
from ...kernels.analysis.load_guards import limits
from ...kernels.analysis.loop_depth import ELEMENT, Depths
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
    Reduced,
    Running,
    Scalar,
    Select,
    Wrapped,
    below,
)
from ..scalars import c_expressions
from ..scalars.dialect import Lanes, Strips
from .statement_blocks import Block, StripCall, known_truth

HIDDEN = "one"  # a factor that compilers do not know
LANES = 512  # most rows computed side by side where neighbouring rows adjoin in memory


class Names(Protocol):
    """What a kernel calls its memory and its lengths, and how it holds rows side by side."""

    @property
    def lanes(self) -> Lanes:
        """How rows are held side by side."""

    def operand(self, number: int) -> str:
        """The typed pointer to the memory of operand ``number``."""

    def length(self, length: Size) -> str:
        """A length as C."""

    def calls(self, helpers: Iterable[str]) -> None:
        """Note that the kernel calls these helper functions."""


def changes(guards: tuple[Guard, ...], loop: str) -> bool:
    """Whether what guards say may change with a loop."""
    return any(loop in set(named(guard.index)) for guard in guards)


def is_worse_known(step: Size) -> bool:
    """Whether compilers make worse vectors of loads so far apart where they know how far.

    gcc 12 loads and permutes all that lies between for powers of two, and makes no vectors at all
    of loads that go backwards by more than an element.
    """
    return isinstance(step, int) and (step < -1 or (step >= 4 and step & (step - 1) == 0))


class ScalarPrinter:
    """Writes the scalar code of one kernel.

    Statements on elements are of ``width`` of them along the last loop.

    ``reduced`` are the names of finished reductions by number and part, ``running`` those of the
    state (and of the other state) that a reduction is at, ``kept`` those of row arrays,
    ``contracted`` is that of a contraction's sum, ``words`` those of random bits that were made
    before, ``spelled`` the texts of loops' variables where they are not their names. Of loads that
    lie ``apart`` along a loop over lanes of that name, compilers are not told how far where they
    make worse vectors of what they know (``hides`` says that there are such). Choices whose guards
    are ``assumed`` to hold, or not to, are what they take then.
    """

    width = 1

    def __init__(self, names: Names, depths: Depths) -> None:
        self.names, self.depths = names, depths
        self.reduced: dict[tuple[int, int], str] = {}
        self.running: dict[tuple[int, bool], str] = {}
        self.kept: dict[int, str] = {}
        self.kept_at = ""  # where a thread has the elements that it makes itself
        self.contracted = ""
        self.spelled: Mapping[str, str] = {}
        self.words: dict[RandomBits, str] = {}
        self.apart: str | None = None
        self.assumed: Mapping[tuple[Guard, ...], bool] = {}
        self.hides = False
        self.count = 0

    def fresh(self, stem: str = "t") -> str:
        """A new identifier."""
        self.count += 1
        return f"{stem}{self.count}"

    def let(self, block: Block, key: Hashable, ctype: str, text: str) -> str:
        """The name of ``text`` computed once in ``block``."""
        name = self.fresh()
        if block.strip is not None:
            block.runs[key] = name
            name = self.put_in_strip(block, block.strip, ctype, name, text)
        elif block.lanes is None:
            block.lines.append(f"const {ctype} {name} = {text};")
        else:
            block.lines += block.lanes.let(ctype, name, text)
            name = block.lanes.held(name, ctype)
        block.names[key] = name
        return name

    def put_in_strip(self, block: Block, strip: Strips, ctype: str, name: str, text: str) -> str:
        """Make ``name`` the value ``text`` of each element of a strip; that of the one at hand."""
        block.arrays.append(strip.declare(ctype, name))
        block.lines.append(f"{strip.held(name)} = {text};")
        return strip.held(name)

    def calls(self, block: Block, helpers: Iterable[str]) -> None:
        """Note that a block calls these helper functions."""
        if block.called is None:
            self.names.calls(helpers)
        else:
            block.called += helpers

    def expression(
        self,
        block: Block,
        row: str,
        dtypes: Sequence[str],
        result: str,
        operands: Sequence[str],
        attrs: tuple[Any, ...] = (),
    ) -> str:
        """The expression of an elementwise row, as ``c_expressions`` has it."""
        self.calls(block, c_expressions.calls(row, dtypes, result))
        wraps = self.names.lanes.wraps
        return c_expressions.expression(row, dtypes, result, operands, attrs, wraps)

    def cast(self, block: Block, source: str, target: str, text: str) -> str:
        """A text of dtype ``source`` in ``target``."""
        block.converts |= c_expressions.is_wide_cast(source, target)
        self.calls(block, c_expressions.cast_calls(source, target))
        return c_expressions.cast(source, target, text)

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
            fixed = block.inner not in set(names_in(atom)) and not self.assumed
            if block.around is not None and fixed:
                block = block.around
            return self.value(block, atom)
        found = block.find(atom)
        if found is not None:
            return found
        block = self.scalar_block(block, self.depths.atom(atom))
        if isinstance(atom, Clamped) and atom.guards in self.assumed:
            return f"({self.index(block, atom.of)})" if self.assumed[atom.guards] else "0"
        if isinstance(atom, Clamped):
            flag = self.flag(block, atom.guards)
            return self.let(block, atom, "int64_t", f"{flag} ? {self.index(block, atom.of)} : 0")
        assert isinstance(atom, (Quotient, Remainder))
        text = self.index(block, atom.of)
        text = f"(int32_t)({text})" if is_narrow(atom.of) else f"({text})"
        size = self.names.length(atom.by) if atom.by != 0 else "1"  # never run, but compiled
        stem, sign = ("q", "/") if isinstance(atom, Quotient) else ("m", "%")
        text = f"{text} {sign} ({size})"
        if block.lanes is not None:
            return f"({text})"  # of the lane at hand
        name = block.names[atom] = self.fresh(stem)
        block.lines.append(f"const int64_t {name} = {text};")
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
        place = self.scalar_block(block, depth)
        if place is block and block.around is not None:
            place = block if changes(guards, block.inner) else block.around
        conditions = " && ".join([text for guard in guards for text in self.guard(place, guard)])
        innermost = place.depth == ELEMENT and not place.is_around
        if innermost or place.lanes is not None or not self.names.lanes.hides:
            return self.let(place, guards, "_Bool", conditions)
        name = place.names[guards] = self.fresh()
        place.lines.append(known_truth(name, conditions))
        return name

    def guard(self, block: Block, guard: Guard) -> list[str]:
        """The conditions of a guard."""
        text = self.index(block, guard.index)
        low, high = self.names.length(guard.low), self.names.length(guard.high)
        if guard.high - guard.low == 1:
            return [f"{text} == {low}"]
        return [f"{text} >= {low}", f"{text} < {high}"]

    # Values -------------------------------------------------------------------------------------

    def value(self, block: Block, value: Scalar) -> str:
        """The name or literal of a value; what it is computed with is named before it.

        Chains may be longer than Python's stack: what waits for its parts is in a list.
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

    def taken(self, value: Scalar) -> Scalar:
        """What a choice takes whose truth is assumed; all else itself."""
        while isinstance(value, Select) and value.guards in self.assumed:
            value = value.value if self.assumed[value.guards] else value.other
        return value

    def named(self, block: Block, value: Scalar) -> bool:
        """Whether a value has a name, or needs none."""
        value = self.taken(value)
        return isinstance(value, DIRECT) or value in self.words or block.find(value) is not None

    def unnamed(self, block: Block, value: Scalar) -> Scalar | None:
        """The first of what a value is computed with that is to be named before it."""
        value = self.taken(value)
        wide = self.rounded(block, value)
        found = list(below(value)) if wide is None else [wide]
        while isinstance(value, Select) and isinstance(value.other, Select):
            value = value.other  # a chain of choices is one expression
            found = [part for part in found if part is not value]
            found += below(value)
        return next((part for part in found if not self.named(block, part)), None)

    def text(self, block: Block, value: Scalar) -> str:
        """The name or literal of a value whose parts have theirs."""
        value = self.taken(value)
        found = block.find(value)  # of a row's value, where a tile repeats it
        if found is not None:
            return found
        direct = self.direct(block, value)
        if direct is not None:
            return direct
        block = block.at(self.depths.value(value))
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        if block.strip is not None:
            function = strip_function(value, block.strip)
            if function is not None:
                return self.call_strip(block, block.strip, value, function)
            adjoining = isinstance(value, Load) and self.load_strip(block, block.strip, value)
            if adjoining:
                return adjoining
        return self.let(block, value, ctype, self.computed(block, value))

    def computed(self, block: Block, value: Scalar) -> str:
        """The expression of a value whose parts have theirs."""
        return TEXTS[type(value)](self, block, value)

    def name(self, *texts: str) -> None:
        """Note that texts stand in the statements of an element, and not in what these name."""

    def put(self, ctype: str, text: str, of_row: bool = False) -> tuple[str, str]:
        """The text that is stored of an element, or once ``of_row``, and the type of vectors where
        it is one.
        """
        return text, ""

    def call_strip(self, block: Block, strip: Strips, value: Scalar, function: str) -> str:
        """The name of a value that a function of all elements of a strip computes."""
        assert isinstance(value, Apply)
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        texts = [self.value(block, argument) for argument in value.args]
        pairs = zip(value.args, texts, strict=True)
        operands = [self.run(block, strip, *pair) for pair in pairs]
        result = self.fresh()
        block.arrays.append(strip.declare(ctype, result))
        self.calls(block, [function])
        block.lines.append(StripCall(function, result, tuple(operands)))
        block.names[value], block.runs[value] = strip.held(result), result
        return strip.held(result)

    def run(self, block: Block, strip: Strips, value: Scalar, text: str) -> str:
        """Where the elements of a strip lie that a value has, whose ``text`` is that of one."""
        known = block.runs.get(value)
        if known is not None:
            return known
        name = block.runs[value] = self.fresh()
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        self.put_in_strip(block, strip, ctype, name, text)
        return name

    def load_strip(self, block: Block, strip: Strips, value: Load) -> str | None:
        """The element at hand of a load whose elements adjoin; None of any other."""
        inner = [name for name in self.spelled if value.offset.step(name) == 1]
        direct = [isinstance(x, str) or self.depths.atom(x) < ELEMENT for x in value.offset.terms]
        if len(inner) != 1 or not all(direct):
            return None
        spelled, operand = self.spelled, self.names.operand(value.operand)
        text = f"{operand}[{self.index(block, value.offset)}]"
        self.spelled = {**spelled, inner[0]: strip.start(inner[0])}
        block.runs[value] = f"&{operand}[{self.index(block, value.offset)}]"
        self.spelled = spelled
        block.names[value] = text
        return text

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
        if isinstance(value, RandomBits):
            return self.words.get(value)
        if isinstance(value, Kept):
            return self.kept_place(block, value.number, value.offset)
        return None

    def kept_place(self, block: Block, number: int, offset: Affine) -> str:
        """The element at ``offset`` of a row array."""
        return f"{self.kept[number]}[{self.kept_at or self.index(block, offset)}]"

    def _load(self, block: Block, value: Load) -> str:
        offset = self.load_index(block, value.offset)
        # gcc 12 makes vectors of no load of _Bool: bools lie in bytes.
        flag = " != 0" if name_of(value.dtype) == "bool" else ""
        element = f"{self.names.operand(value.operand)}[{offset}]{flag}"
        if not self.names.lanes.spares:
            return element
        taken = [self.flag(block, guards) for guards in limits(value.offset)]
        return f"{' && '.join(taken)} ? {element} : 0" if taken else element

    def load_index(self, block: Block, offset: Affine) -> str:
        """The index of a load."""
        lane = self.apart
        if lane is None or lane in self.spelled or not is_worse_known(offset.step(lane)):
            return self.index(block, offset)
        self.hides, spelled = True, self.spelled
        self.spelled = {**spelled, lane: f"{lane} * {HIDDEN}"}
        found = self.index(block, offset)
        self.spelled = spelled
        return found

    def _index(self, block: Block, value: IndexNumber) -> str:
        text = f"({self.index(block, value.index)})"
        return self.cast(block, "int64", name_of(value.dtype), text)

    def _apply(self, block: Block, value: Apply) -> str:
        name = value.row.name
        wide = self.rounded(block, value)
        if wide is not None:
            self.calls(block, [rounding := c_expressions.rounding(name_of(value.args[0].dtype))])
            return f"{rounding}({self.value(block, wide)})"
        operands = [self.value(block, arg) for arg in value.args]
        kinds = [name_of(arg.dtype) for arg in value.args]
        result = name_of(value.dtype)
        block.serial |= c_expressions.is_serial(name, kinds)
        block.converts |= name == "cast" and c_expressions.is_wide_cast(kinds[0], result)
        return self.expression(block, name, kinds, result, operands, value.attrs)

    def rounded(self, block: Block, value: Scalar) -> Scalar | None:
        """What a value rounds by one function, where a strip has none of both casts."""
        wide = rounded(value)
        if wide is None:
            return None
        strip = block.at(self.depths.value(value)).strip
        return wide if strip is None or strip_function(value, strip) is None else None

    def _select(self, block: Block, value: Select) -> str:
        flags, texts = [], []
        rest: Scalar = value
        while isinstance(rest, Select):
            flags.append(self.flag(block, rest.guards))
            texts.append(self.value(block, rest.value))
            rest = rest.other
        ctype = c_expressions.C_TYPES[name_of(value.dtype)]
        return self.choice(ctype, flags, [*texts, self.value(block, rest)])

    def choice(self, ctype: str, flags: Sequence[str], texts: Sequence[str]) -> str:
        """The text of the first flag that is set, or the last one."""
        chosen = [f"{flag} ? {text} : " for flag, text in zip(flags, texts[:-1], strict=True)]
        return "".join([*chosen, texts[-1]])

    def _random(self, block: Block, value: RandomBits) -> str:
        stream = [self.value(block, each) for each in (value.seed, value.draw, value.call)]
        position = self.index(block, value.position)
        name = c_expressions.random_bits(name_of(value.dtype))
        self.calls(block, [name])
        return f"{name}({', '.join([*stream, position])})"

    def _wrapped(self, block: Block, value: Wrapped) -> str:
        wide = f"(int64_t){self.value(block, value.position)}"
        return f"{wide} < 0 ? {wide} + {self.names.length(value.length)} : {wide}"


def rounded(value: Scalar) -> Scalar | None:
    """The float32 that a value is but for a cast to a half and back; None of all else."""
    if not _is_cast(value, "float32") or not isinstance(narrow := value.args[0], Apply):
        return None
    halves = any(_is_cast(narrow, half) for half in c_expressions.HALVES)
    return narrow.args[0] if halves and name_of(narrow.args[0].dtype) == "float32" else None


def _is_cast(value: Scalar, dtype: str) -> TypeGuard[Apply]:
    """Whether a value is a cast to this dtype."""
    return isinstance(value, Apply) and value.row.name == "cast" and name_of(value.dtype) == dtype


def strip_function(value: Scalar, strips: Strips) -> str | None:
    """The function of all elements of a strip that computes this value, where there is one."""
    if not isinstance(value, Apply) or value.row.name == "add":
        return None  # the strip's addition is that of a sum
    source = name_of(value.args[0].dtype)
    rounded = isinstance(value.args[0], Apply) and value.args[0].row.name == "cast"
    found = c_expressions.strip_function(value.row.name, name_of(value.dtype), source, rounded)
    return found if found is not None and strips.has(found) else None


DIRECT = (Number, LengthNumber, Reduced, Running, Contracted, Kept)  # these have no names
TEXTS: dict[type, Callable[[ScalarPrinter, Block, Any], str]] = {
    Load: ScalarPrinter._load,
    IndexNumber: ScalarPrinter._index,
    Apply: ScalarPrinter._apply,
    Select: ScalarPrinter._select,
    Wrapped: ScalarPrinter._wrapped,
    RandomBits: ScalarPrinter._random,
}
