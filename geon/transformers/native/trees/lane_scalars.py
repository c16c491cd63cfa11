"""Emit scalar code in loop trees: as vectors, or in arrays over lanes where there are no vectors.

A value that changes along a vector is a vector if its dtype and its primitive have one. Others are
arrays with an element for each lane, which loops over lanes compute, or functions of strips: the
elements that fill a register.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.values.dtypes import DType, name_of, named_dtype
from ...kernels.analysis.integer_ranges import is_narrow
from ...kernels.analysis.loop_depth import Depths
from ...kernels.ir.loop_variables import variables
from ...kernels.ir.nest import Store
from ...kernels.ir.scalar_code import (
    NODES,
    Apply,
    Clamped,
    IndexNumber,
    Least,
    Load,
    Scalar,
    Select,
    Wrapped,
)
from ...kernels.ir.scalar_code import walk as walk_scalars
from ...loops.tree import VectorWidth, Write, values_of
from ...printing.nests.scalar_statements import rounded_half
from ...printing.nests.statement_blocks import StatementBlock
from ...printing.scalars import c_expressions
from ...printing.scalars.c_types import C_TYPES
from ...printing.trees.buffer_names import buffer_name
from ...printing.trees.tree_statements import TreeScalars
from ..names.naming import KernelNames
from ..vectors.lanes import Vectors
from ..vectors.vector_functions import function_of
from ..vectors.vector_ops import has_vector_row, is_number, widened, widening_text
from ..vectors.vector_scalar_code import VectorScalars
from .lane_lines import LANE, Definition, LaneArray, LaneLine
from .row_arrays import LANE_FOLDS

ELEMENT = f"[{LANE}]"
HIDDEN = "one"  # a factor of 1 that compilers do not know
MIN_HIDDEN_STRIDE = 4  # elements: of two, gathers are no faster than permutations


class LaneScalars(VectorScalars, TreeScalars):
    """Emits scalar code in a tree; loop variables of vectors count as 0 in vectors."""

    names: KernelNames

    def __init__(
        self,
        names: KernelNames,
        depths: Depths,
        vectors: Vectors,
        width: VectorWidth,
    ) -> None:
        super().__init__(names, depths, vectors)
        self.width = width
        self.registers: set[Scalar] = set()  # values that compilers would load or compute again
        self.scales: dict[Hashable, int] = {}  # steps of the C loops over variables, where not 1
        self.lane_texts: set[str] = set()  # texts of an element of the current lane
        self.columns = ""  # the variable of the loop over columns that is printed
        self.hides = False  # there are strides that ``HIDDEN`` hides

    # Texts --------------------------------------------------------------------------------------

    def in_lane(self, text: str) -> str:
        """Return a text after recording it as an element of the current lane."""
        self.lane_texts.add(text)
        return text

    def is_lane(self, text: str) -> bool:
        """Return True if a text is an element of the current lane."""
        return text in self.lane_texts

    def is_wide(self, text: str) -> bool:
        """Return True if a text differs between the lanes of a vector."""
        return self.is_vector(text) or self.is_lane(text)

    def is_fit(self, dtype: str) -> bool:
        """Return True if there are vectors of a dtype with as many elements as there are lanes."""
        return is_number(named_dtype(dtype), self.vectors.itemsize)

    def let(self, block: StatementBlock, key: Hashable, ctype: str, text: str) -> str:
        """Emit ``text`` once in ``block`` and return its name."""
        if self.is_lane(text):
            name = block.names[key] = self.put_in_array(block, ctype, text)
            return name
        is_vector = text in self.texts
        name = super().let(block, key, ctype, text)
        if is_vector and key in self.registers:
            block.lines[-1] = block.lines[-1].removeprefix("const ")
            block.lines.append(f"GEON_KEPT({name})")
        else:
            block.lines[-1] = Definition(block.lines[-1])
        return name

    def array(self, block: StatementBlock, ctype: str) -> str:
        """Declare an array over lanes; return the element of the current lane."""
        name = self.fresh()
        block.lines.append(LaneArray(f"{ctype} {name}[{self.vectors.count}] GEON_IN_LINES;"))
        return self.in_lane(f"{name}{ELEMENT}")

    def put_in_array(self, block: StatementBlock, ctype: str, text: str) -> str:
        """Compute a text in an array over lanes; return the element of the current lane."""
        name = self.array(block, ctype)
        line = self.of_lanes(f"{name} = {text};", name.removesuffix(ELEMENT), ctype)
        block.lines.append(line)
        return name

    def lane(self, block: StatementBlock, dtype: str, text: str) -> str:
        """Return the element of a text in the current lane; of a scalar, the scalar."""
        if not self.is_vector(text):
            return text
        key = (text, LANE)
        found = block.find(key)
        if found is None:
            ctype = self.vectors.element(C_TYPES[dtype])
            found = self.array(block, ctype)
            place = self.vectors.place(ctype, self.first(found))
            block.lines.append(Definition(f"{place} = {text};"))
            block.names[key] = found
        return self.in_lane(f"({found} != 0)") if dtype == "bool" else found

    def whole(self, block: StatementBlock, dtype: str, text: str) -> str:
        """Return a text as a vector or a scalar."""
        if not self.is_lane(text):
            return text
        ctype = self.vectors.element(C_TYPES[dtype])
        if dtype == "bool":
            text = self.in_lane(f"-({text})")
        key = (text, "vector")
        found = block.find(key)
        if found is None:
            text = text if self.is_array(text) else self.let(block, (text, ctype), ctype, text)
            found = block.names[key] = self.vectors.place(ctype, self.first(text))
        return self.vector(found)

    def mask(self, dtype: str, text: str) -> str:
        """Return a truth as a mask of a vector; other texts unchanged."""
        if dtype != "bool" or self.is_vector(text):
            return text
        bits = self.vectors.type("_Bool")
        return self.vector(f"GEON_EACH({bits}, -({self.vectors.word})({text}))")

    def is_array(self, text: str) -> bool:
        """Return True if a text is an element of an array over lanes."""
        return text.removesuffix(ELEMENT).isidentifier() and text.endswith(ELEMENT)

    def first(self, text: str) -> str:
        """Return the first element of an array over lanes."""
        return f"{text.removesuffix(ELEMENT)}[0]"

    # Indices ------------------------------------------------------------------------------------

    def lanes_in(self, index: AffineIndex) -> bool:
        """Return True if an index changes along a vector."""
        lanes = self.vectors.variables
        if all(isinstance(atom, str) for atom in index.terms):
            return any(atom in lanes for atom in index.terms)
        return not variables(index).isdisjoint(lanes)

    def index(self, block: StatementBlock, index: AffineIndex) -> str:
        """Return an index as C, of the first element of a vector."""
        lanes = self.vectors.variables
        if any(atom in lanes or atom in self.scales for atom in index.terms):
            terms = [
                (atom, step // self.scales.get(atom, 1))
                for atom, step in index.terms.items()
                if atom not in lanes
            ]
            index = AffineIndex(terms, index.constant)
        spelled = self.spelled
        if self.columns and is_worse_known(index.step(self.columns)):
            self.hides = True
            self.spelled = {**spelled, self.columns: f"{self.columns} * {HIDDEN}"}
        text = super().index(block, index)
        self.spelled = spelled
        return text

    def lane_index(self, block: StatementBlock, index: AffineIndex) -> str:
        """Return an index as C, of the current lane."""
        text = self.index(block, index)
        steps = [step for atom, step in index.terms.items() if atom in self.vectors.variables]
        for step in steps:
            text = f"{text} + {LANE}" + (f" * ({self.names.length(step)})" if step != 1 else "")
        return self.in_lane(text)

    def atom(self, block: StatementBlock, atom: Hashable) -> str:
        """Return the text of an atom of an index."""
        inner = isinstance(atom, (*NODES, Least, str))
        if inner or not self.lanes_in(variable(atom)):
            return super().atom(block, atom)
        found = block.find(atom)
        if found is not None:
            return found
        block = block.at(self.depths.atom(atom))
        if isinstance(atom, Clamped):
            flag = self.flag(block, atom.guards)
            text = f"{flag} ? {self.lane_index(block, atom.of)} : 0"
        else:
            assert isinstance(atom, (Quotient, Remainder))
            size = self.names.length(atom.by) if atom.by != 0 else "1"
            text, sign = self.lane_index(block, atom.of), "%/"[isinstance(atom, Quotient)]
            narrow = "(int32_t)" if is_narrow(atom.of) else ""
            text = f"{narrow}({text}) {sign} ({size})"
        return self.let(block, atom, "int64_t", self.in_lane(text))

    def flag(self, block: StatementBlock, guards: tuple[InRange, ...]) -> str:
        """Return the name of the condition that all guards hold."""
        found = block.find(guards)
        if found is not None or not any(self.lanes_in(guard.index) for guard in guards):
            return super().flag(block, guards)
        block = block.at(max(self.depths.index(guard.index) for guard in guards))
        conditions = [text for guard in guards for text in self.guard(block, guard)]
        return self.let(block, guards, "_Bool", self.in_lane(" && ".join(conditions)))

    def guard(self, block: StatementBlock, guard: InRange) -> list[str]:
        """Return the conditions of a guard."""
        if not self.lanes_in(guard.index):
            return super().guard(block, guard)
        text = self.lane_index(block, guard.index)
        low, high = self.names.length(guard.low), self.names.length(guard.high)
        return [f"{text} >= {low}", f"{text} < {high}"]

    # Values -------------------------------------------------------------------------------------

    def widened(self, value: Scalar) -> Load | None:
        """Return the narrow elements that a value loads and widens to a vector, or None."""
        load = widened(value, self.vectors.itemsize)
        return load if load is not None and self.adjoins(load.offset) else None

    def unnamed(self, block: StatementBlock, value: Scalar) -> Scalar | None:
        """Return the first operand of a value that must be named before it, or None."""
        return None if self.widened(value) is not None else super().unnamed(block, value)

    def computed(self, block: StatementBlock, value: Scalar) -> str:
        """Return the expression of a value whose parts have been emitted."""
        narrow = self.widened(value)
        if narrow is not None:
            place = f"{self.names.operand(narrow.operand)}[{self.index(block, narrow.offset)}]"
            ctype, source = C_TYPES[name_of(value.dtype)], name_of(narrow.dtype)
            self.names.calls(["geon_narrow_vectors"])
            return self.vector(widening_text(place, source, ctype, self.vectors.count))
        if isinstance(value, Load) and self.lanes_in(value.offset):
            if self.adjoins(value.offset) and self.is_fit(name_of(value.dtype)):
                return super().computed(block, value)
            at, flag = self.lane_index(block, value.offset), name_of(value.dtype) == "bool"
            text = f"{self.names.operand(value.operand)}[{at}]" + (" != 0" if flag else "")
            return self.in_lane(text)
        if isinstance(value, IndexNumber) and self.lanes_in(value.index):
            dtype = name_of(value.dtype)
            if self.is_fit(dtype) and self.is_direct(value.index):
                return self.indices(block, dtype, value.index)
            text = f"({self.lane_index(block, value.index)})"
            return self.in_lane(self.cast("int64", name_of(value.dtype), text))
        if isinstance(value, Select):
            return self.selected(block, value)
        if isinstance(value, Wrapped):
            dtype = name_of(value.position.dtype)
            at = self.lane(block, dtype, self.value(block, value.position))
            wide = f"(int64_t){at}"
            text = f"{wide} < 0 ? {wide} + {self.names.length(value.length)} : {wide}"
            return self.in_lane(text) if self.is_lane(at) else text
        wide_half = self.rounded(value)
        if wide_half is not None:
            assert isinstance(value, Apply)
            function = c_expressions.rounding(name_of(value.args[0].dtype))
            self.names.calls([function])
            text = self.lane(block, "float32", self.value(block, wide_half))
            made = f"{function}({text})"
            return self.in_lane(made) if self.is_lane(text) else made
        return super().computed(block, value)

    def rounded(self, value: Scalar) -> Scalar | None:
        """Return the value that a pair of casts rounds, unless functions of strips do the casts."""
        wide = rounded_half(value)
        return None if wide is None or self.function(value) is not None else wide

    def function(self, value: Scalar) -> str | None:
        """Return the function of strips that computes a value in vectors, or None.

        Trees whose vectors the compiler makes have none.
        """
        found = None if self.width.compiled else function_of(value, self.width.vector_bytes)
        return None if found is None or self.strips(value) is None else found

    def strips(self, value: Scalar) -> int | None:
        """Return the number of strips of a vector of a value, None if it fills no register."""
        assert isinstance(value, Apply)
        widest = max(value.dtype.itemsize, *(arg.dtype.itemsize for arg in value.args))
        registers, rest = divmod(self.vectors.count * widest, self.width.vector_bytes)
        return registers if registers and not rest else None

    def text(self, block: StatementBlock, value: Scalar) -> str:
        """Return the name or literal of a value whose operands are named."""
        if not isinstance(value, Apply) or block.find(value) is not None:
            return super().text(block, value)
        function = self.function(value)
        if function is None:
            return super().text(block, value)
        texts = [self.value(block, arg) for arg in value.args]
        if not any(map(self.is_wide, texts)):
            return super().text(block, value)
        block = block.at(self.depths.value(value))
        arrays = [
            self.pointer(block, arg, text) for arg, text in zip(value.args, texts, strict=True)
        ]
        result = block.names[value] = self.array(block, C_TYPES[name_of(value.dtype)])
        self.names.calls([function])
        self.names.plain = True
        count = self.strips(value)
        assert count is not None
        each = self.vectors.count // count
        for k in range(count):
            at = f" + {k * each}" if k else ""
            places = [f"{x.removesuffix(ELEMENT)}{at}" for x in (result, *arrays)]
            block.lines.append(f"{function}({', '.join(places)});")
        return result

    def pointer(self, block: StatementBlock, value: Scalar, text: str) -> str:
        """Return the element in the current lane of an array that holds all of a value's."""
        ctype = C_TYPES[name_of(value.dtype)]
        text = self.lane(block, name_of(value.dtype), text)
        return text if self.is_array(text) else self.put_in_array(block, ctype, text)

    def expression(
        self,
        block: StatementBlock,
        row: str,
        dtypes: Sequence[str],
        result: str,
        operands: Sequence[str],
    ) -> str:
        """Return the expression of an elementwise primitive, of vectors if they have one."""
        if not any(map(self.is_wide, operands)):
            return super().expression(block, row, dtypes, result, operands)
        pairs = list(zip(dtypes, operands, strict=True))
        truths = any(dtype == "bool" and self.is_lane(text) for dtype, text in pairs)
        if not truths and has_vector_row(row, dtypes, result, self.vectors.itemsize):
            texts = [self.whole(block, dtype, text) for dtype, text in pairs]
            if result == "bool":
                texts = [self.mask(*pair) for pair in zip(dtypes, texts, strict=True)]
            return super().expression(block, row, dtypes, result, texts)
        texts = [self.lane(block, dtype, text) for dtype, text in pairs]
        return self.in_lane(super().expression(block, row, dtypes, result, texts))

    def selected(self, block: StatementBlock, value: Select) -> str:
        """Return the text of a selection by guards."""
        flags, values = [], []
        rest: Scalar = value
        while isinstance(rest, Select):
            flags.append(self.flag(block, rest.guards))
            values.append(rest.value)
            rest = rest.other
        dtype = name_of(value.dtype)
        texts = [self.value(block, each) for each in (*values, rest)]
        if not any(map(self.is_wide, (*flags, *texts))):
            return self.choice(C_TYPES[dtype], flags, texts)
        if self.is_fit(dtype) and not any(map(self.is_lane, flags)):
            each = [self.whole(block, dtype, text) for text in texts]
            return self.choice(C_TYPES[dtype], flags, each)
        each = [self.lane(block, dtype, text) for text in texts]
        return self.in_lane(self.choice(C_TYPES[dtype], flags, each))

    # Memory -------------------------------------------------------------------------------------

    def is_direct(self, index: AffineIndex) -> bool:
        """Return True if an index goes up by a known step along a vector."""
        lanes = self.vectors.variables
        steps = [step for atom, step in index.terms.items() if atom in lanes]
        others = [atom for atom in index.terms if not isinstance(atom, str)]
        known = len(steps) == 1 and isinstance(steps[0], int)
        return known and not any(self.lanes_in(variable(atom)) for atom in others)

    def indices(self, block: StatementBlock, dtype: str, index: AffineIndex) -> str:
        """Return an index that goes up along a vector as a vector."""
        (step,) = [step for atom, step in index.terms.items() if atom in self.vectors.variables]
        ctype, start = C_TYPES[dtype], self.cast("int64", dtype, self.index(block, index))
        each = ", ".join([str(k * step) for k in range(self.vectors.count)])
        spread = self.vectors.spread(ctype, f"({start})")
        return self.vector(f"{spread} + ({self.vectors.type(ctype)}){{{each}}}")

    def adjoins(self, offset: AffineIndex) -> bool:
        """Return True if the elements of a vector are adjacent in memory."""
        lanes = self.vectors.variables
        near = [step for atom, step in offset.terms.items() if atom in lanes]
        others = [atom for atom in offset.terms if not isinstance(atom, str)]
        return near == [1] and not any(self.lanes_in(variable(atom)) for atom in others)

    def kept_place(self, block: StatementBlock, number: int, offset: AffineIndex) -> str:
        """Return the element of a private buffer at ``offset``, or the vector that begins there."""
        name, dtype = buffer_name(number), name_of(self.buffers.tree.buffers[number].dtype)
        if not self.lanes_in(offset):
            return super().kept_place(block, number, offset)
        steps = {offset.step(lane) for lane in self.vectors.variables}
        assert steps <= {0, 1}, f"elements of a vector in {name} are {steps} apart"
        if number in self.buffers.registers:
            return self.vector(name)
        if not self.is_fit(dtype):
            return self.in_lane(f"{name}[{self.lane_index(block, offset)}]")
        place = f"{name}[{self.index(block, offset)}]"
        return self.vector(self.vectors.place(self.buffers.ctype(number), place))

    def stores_vector(self, store: Store) -> bool:
        """Return True if a store is of a vector."""
        return self.adjoins(store.offset) and self.is_fit(name_of(store.dtype))

    def of_lanes(self, line: str, memory: str, ctype: str = "") -> LaneLine:
        """Return a statement of each lane, which compilers vectorise, as in ``LaneLine``."""
        self.names.plain = True
        return LaneLine(line, self.vectors.count, memory, ctype)

    def has_fold(self, row: str, dtype: DType) -> bool:
        """Return True if there is a function that folds the lanes of a vector."""
        return self.is_fit(name_of(dtype)) and row in LANE_FOLDS

    def share(self, copies: Sequence[Write]) -> None:
        """Keep in registers what copies of a statement load or compute again."""
        self.registers.update(kept_values(copies))


def kept_values(writes: Sequence[Write]) -> Iterator[Scalar]:
    """Yield the values of copies that stay in registers: shared loads, and sums of sums.

    gcc loads a vector again for each use, as long as memory holds it, and computes sums when they
    are stored, so that all terms wait in registers.
    """
    nodes = list(walk_scalars(*[value for write in writes for value in values_of(write)]))
    applied = [node for node in nodes if isinstance(node, Apply)]
    users = Counter([id(arg) for node in applied for arg in node.args])
    for node in nodes:
        again = isinstance(node, Load) and users[id(node)] > 1
        summed = isinstance(node, Apply) and any(isinstance(arg, Apply) for arg in node.args)
        if name_of(node.dtype) != "bool" and (again or summed):
            yield node


def is_worse_known(step: Size) -> bool:
    """Return True if gcc vectorises loads of this stride worse if it knows it.

    It loads and permutes all between elements that are a power of two apart. Gathers take half of
    the time.
    """
    return isinstance(step, int) and step >= MIN_HIDDEN_STRIDE and step & (step - 1) == 0
