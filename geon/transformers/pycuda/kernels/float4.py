"""Vectorised kernels: each thread loads and stores four adjacent elements at once.

Every value begins at a multiple of 256 bytes, except slices of stacks in a loop. So groups of four
elements are aligned in elementwise kernels, and in rows whose length is a multiple of four. Values
of rows that several passes read are loaded once, into registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....op_graph.axes.affine import AffineIndex, Size
from ....op_graph.axes.lengths import product
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Nest, Pass, Store
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...loops.gpu_rules import ELEMENTS_PER_VECTOR, is_aligned
from ...printing.nests.pass_text import PrintedPass
from ..launches.naming import CudaKernelNames, indent
from .cooperative_threads import (
    MAX_REGISTER_ELEMENTS,
    Lines,
    chains,
    element,
    is_few,
    is_float_sum,
    values_in,
)
from .thread_statements import element_type


@dataclass(slots=True)
class Fours:
    """The vector loads of a nest's passes for a team of ``step`` threads.

    ``passes`` has the vectorised passes by number. ``texts`` maps loads to the C text of elements
    in registers. ``row`` loads what several passes use; ``read`` has, by number of the pass, the
    loads of one pass. If ``partial``, parts end at any element, so the last group may be
    incomplete.
    """

    step: int
    partial: bool
    passes: dict[int, Pass] = field(default_factory=dict)
    texts: dict[Load, str] = field(default_factory=dict)
    row: Lines = field(default_factory=list)
    read: dict[int, Lines] = field(default_factory=dict)


def fits(count: Size, step: int) -> bool:
    """Return True if ``count`` is a known multiple of four, with a group for every thread."""
    return (
        isinstance(count, int)
        and count % ELEMENTS_PER_VECTOR == 0
        and count >= ELEMENTS_PER_VECTOR * step
    )


def elements_of(count: int, step: int) -> int:
    """Return the number of elements per thread, rounded up to whole groups."""
    return -(-count // (ELEMENTS_PER_VECTOR * step)) * ELEMENTS_PER_VECTOR


def fours_of(
    nest: Nest, names: CudaKernelNames, step: int, partial: bool = False, held: int = 0
) -> Fours | None:
    """Return the vectorised form of a nest's rows, or None if no access is contiguous.

    ``held`` is the number of elements of row arrays that a thread already keeps in registers.
    """
    found = Fours(step, partial)
    others: list[Scalar] = []
    ending = [each for each in nest.ending if isinstance(each, Pass)]
    for number, each in enumerate([*nest.passes, *ending]):
        alone = len(each.loops) == 1 and number < len(nest.passes)
        if alone and (partial or fits(each.loops[0].extent, step)):
            found.passes[number] = each
        else:
            others += values_in(each)
    scalar = set(loads_in(others))
    work = _Loads(found, nest, names, held)
    for number, each in found.passes.items():
        loop = each.loops[0].name
        near = [load for load in loads_in(values_in(each)) if adjoins(load, loop, names)]
        work.take(number, loop, [load for load in near if load not in scalar])
    stored = [s for each in found.passes.values() for s in each.stores]
    work.print()
    return found if found.texts or (stored and not partial) else None


class _Loads:
    def __init__(self, found: Fours, nest: Nest, names: CudaKernelNames, held: int) -> None:
        self.found, self.nest, self.names = found, nest, names
        self.left = 2 * MAX_REGISTER_ELEMENTS - held
        self.stored = {
            s.operand for step in nest.steps
            for s in (step.stores if isinstance(step, Pass) else [step])
        }  # fmt: skip
        self.uses: dict[tuple[object, ...], dict[int, Load]] = {}

    def take(self, number: int, loop: str, loads: Sequence[Load]) -> None:
        """Record the loads of a pass, keyed by operand and offset."""
        for load in loads:
            terms = sorted((str(k), v) for k, v in load.offset.terms.items() if str(k) != loop)
            key = (load.operand, tuple(terms), load.offset.constant)
            self.uses.setdefault(key, {})[number] = load

    def print(self) -> None:
        """Write the statements that load, and the C texts of the loaded elements."""
        for count, uses in enumerate(self.uses.values()):
            name, load = f"in{count}", next(iter(uses.values()))
            extents = [self.found.passes[number].loops[0].extent for number in uses]
            same = len(uses) > 1 and all(each == extents[0] for each in extents)
            once = same and self.stays(load, extents[0])
            place = f"{name}[group].at[k]" if once else f"{name}.at[k]"
            text = f"({place} != 0)" if name_of(load.dtype) == "bool" else place
            self.found.texts.update(dict.fromkeys(uses.values(), text))
            ctype = f"geon_four<{element_type(load.dtype)}>"
            if once:
                extent = int(extents[0])
                count = elements_of(extent, self.found.step)
                self.left -= count
                turns = count // ELEMENTS_PER_VECTOR
                self.found.row.append(f"{ctype} {name}[{turns}];")
                fill = [f"{name}[group] = {self.pointed(load, uses, ctype)};"]
                self.found.row += over_known(extent, self.found.step, fill)
                continue
            for number in uses:
                line = f"const {ctype} {name} = {self.pointed(load, uses, ctype)};"
                self.found.read.setdefault(number, []).append(line)

    def stays(self, load: Load, extent: Size) -> bool:
        """Return True if a load's elements can stay in registers for the row."""
        if self.found.partial or load.operand in self.stored or load.dtype.itemsize > 4:
            return False
        count = elements_of(int(extent), self.found.step)
        return count <= min(MAX_REGISTER_ELEMENTS, self.left)

    def pointed(self, load: Load, uses: dict[int, Load], ctype: str) -> str:
        """Return the C text of a load of four elements."""
        number = next(n for n, each in uses.items() if each is load)
        loop = self.found.passes[number].loops[0].name
        pointer = place_text(self.names.operand(load.operand), load.offset, loop)
        if self.found.partial:
            return f"geon_read_fours({pointer}, inside)"
        return f"*(const {ctype} *)({pointer})"


def loads_in(values: Sequence[Scalar]) -> list[Load]:
    """Return the loads in scalar expressions."""
    return [value for value in walk(*values) if isinstance(value, Load)]


def adjoins(access: Load | Store, loop: str, names: CudaKernelNames) -> bool:
    """Return True if four iterations of a loop access four adjacent, aligned elements."""
    return not names.is_apart(access.operand) and is_aligned(access.offset, loop)


def place_text(operand: str, offset: AffineIndex, loop: str) -> str:
    """Return the C text of the pointer to the first of four elements."""
    rows = [f"{atom} * {step}" for atom, step in offset.terms.items() if atom != loop]
    constant = [str(offset.constant)] if offset.constant != 0 else []
    return " + ".join([operand, *rows, *constant, "four"])


def over_known(count: int, step: int, body: Lines) -> Lines:
    """Return an unrolled loop over a thread's groups of four of ``count`` elements."""
    begun = [f"const int64_t four = ((int64_t)group * {step} + rank) * {ELEMENTS_PER_VECTOR};"]
    if count % (ELEMENTS_PER_VECTOR * step):
        begun.append(f"if (four >= {count}) break;")
    head = (
        f"for (int group = 0; group < {elements_of(count, step) // ELEMENTS_PER_VECTOR}; "
        f"group++) {{"
    )
    return ["#pragma unroll", head, *indent([*begun, *body]), "}"]


def turns_by_fours(
    made: PrintedPass,
    number: int,
    fours: Fours,
    nest: Nest,
    names: CudaKernelNames,
    extent: Callable[[Size], str],
    bounds: tuple[str, str] = ("0", ""),
) -> Lines:
    """Return the loop over a pass in groups of four; ``bounds`` delimit a part of a split pass."""
    step = fours.step
    count = product(each.extent for each in made.loops)
    body = group_body(made, number, fours, nest, names)
    low, high = bounds[0], bounds[1] or extent(count)
    if not fours.partial and is_few(count, step):
        assert isinstance(count, int)
        return chains(made, over_known(count, step, body))
    start = (
        f"{low} + rank * {ELEMENTS_PER_VECTOR}" if low != "0" else f"rank * {ELEMENTS_PER_VECTOR}"
    )
    next_one = f"four += {ELEMENTS_PER_VECTOR * step}"
    if not any(map(is_float_sum, made.sums)):
        head = f"for (int64_t four = {start}; four < {high}; {next_one}) {{"
        return [head, *indent(body), "}"]
    few = f"group < {MAX_SERIAL_TERMS // ELEMENTS_PER_VECTOR} && four < {high}"
    head = f"for (int group = 0; {few}; group++, {next_one}) {{"
    inner = chains(made, [head, *indent(body), "}"])
    return [f"for (int64_t four = {start}; four < {high};) {{", *indent(inner), "}"]


def group_body(
    made: PrintedPass, number: int, fours: Fours, nest: Nest, names: CudaKernelNames
) -> Lines:
    """Return the statements of one group of four elements."""
    (loop,) = made.loops
    stores: Sequence[Store] = fours.passes[number].stores
    before: Lines = []
    puts: Lines = []
    after: Lines = []
    for each, (store, shown) in enumerate(zip(stores, made.stores, strict=True)):
        if fours.partial or not adjoins(store, loop.name, names):
            puts.append(str(shown))
            continue
        ctype = f"geon_four<{element_type(store.dtype)}>"
        pointer = place_text(names.operand(store.operand), store.offset, loop.name)
        before.append(f"{ctype} out{each};")
        puts.append(f"out{each}.at[k] = {shown.value};")
        after.append(f"*({ctype} *)({pointer}) = out{each};")
    turn = (
        []
        if fours.partial or not nest.arrays
        else [f"const int turn = group * {ELEMENTS_PER_VECTOR} + k;"]
    )
    inner = [*turn, f"const int64_t {loop.name} = four + k;", *element(made, puts)]
    inside = (
        f"k < {ELEMENTS_PER_VECTOR} && k < inside"
        if fours.partial
        else f"k < {ELEMENTS_PER_VECTOR}"
    )
    first = ["const int64_t inside = end - four;"] if fours.partial else []
    return [
        *first, *fours.read.get(number, []), *before,
        "#pragma unroll", f"for (int k = 0; {inside}; k++) {{", *indent(inner), "}",
        *after,
    ]  # fmt: skip
