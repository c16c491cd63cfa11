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
from ....op_graph.values.dtypes import DType, name_of
from ...kernels.ir.nest import Loop, Nest, Pass, Store
from ...kernels.ir.scalar_code import Load, RandomBits, Scalar, walk
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...printing.nests.nest_statements import print_nest
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ...printing.scalars.c_expressions import C_TYPES
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, indent
from .cooperative_threads import (
    MAX_REGISTER_ELEMENTS,
    Lines,
    chains,
    element,
    is_few,
    is_float_sum,
    values_in,
)

ELEMENTS_PER_THREAD = 4  # elements per thread
MAX_FLOAT4_STATEMENTS = 96  # max. statements per element; above it, a thread takes one element


def vector_function(nest: Nest, names: CudaKernelNames) -> CudaFunction | None:
    """Return the vectorised function of a nest with one contiguous pass; None for other nests."""
    if nest.rows or nest.across is not None or len(nest.steps) != 1:
        return None
    if any(map(names.is_apart, range(len(names.operands)))):
        return None
    (step,) = nest.steps
    if not isinstance(step, Pass) or len(step.loops) != 1 or step.reductions or step.keeps:
        return None
    loop = step.loops[0]
    values = [*walk(*[store.value for store in step.stores])]
    loads = [v for v in values if isinstance(v, Load) and is_in_order(v.offset, loop)]
    if not loads or any(isinstance(v, RandomBits) for v in values):
        return None
    if not all(is_in_order(store.offset, loop) for store in step.stores):
        return None
    return _made(nest, step, loads, names)


def is_in_order(offset: AffineIndex, loop: Loop) -> bool:
    """Return True if a loop accesses adjacent elements, the first at an aligned offset."""
    constant = offset.constant
    aligned = isinstance(constant, int) and constant % ELEMENTS_PER_THREAD == 0
    return aligned and dict(offset.terms) == {loop.name: 1}


def _made(nest: Nest, step: Pass, loads: list[Load], names: CudaKernelNames) -> CudaFunction | None:
    loop = step.loops[0]
    plain = print_nest(nest, names)
    (alone,) = (line for line in plain.row.lines if isinstance(line, PrintedPass))
    if alone.weight > MAX_FLOAT4_STATEMENTS:
        return None
    before: Lines = []
    truths: Lines = []
    texts: dict[Load, str] = {}
    for number, load in enumerate(loads):
        dtype = name_of(load.dtype)
        ctype = "uint8_t" if dtype == "bool" else C_TYPES[dtype]
        pointer = f"{names.operand(load.operand)} + first + {load.offset.constant}"
        before.append(
            f"const geon_four<{ctype}> in{number} = *(const geon_four<{ctype}> *)({pointer});"
        )
        texts[load] = f"in{number}.at[k]"
        if dtype == "bool":
            truths.append(f"const _Bool is{number} = in{number}.at[k] != 0;")
            texts[load] = f"is{number}"
    printed = print_nest(nest, names, loaded=texts)
    (made,) = (line for line in printed.row.lines if isinstance(line, PrintedPass))
    puts, after = [], []
    for number, (store, shown) in enumerate(zip(step.stores, made.stores, strict=True)):
        dtype = name_of(store.dtype)
        ctype = "uint8_t" if dtype == "bool" else C_TYPES[dtype]
        before.append(f"geon_four<{ctype}> out{number};")
        puts.append(f"out{number}.at[k] = {shown.value};")
        pointer = f"{names.operand(store.operand)} + first + {store.offset.constant}"
        after.append(f"*(geon_four<{ctype}> *)({pointer}) = out{number};")
    size = names.length(loop.extent)
    inner = [f"const int64_t {loop.name} = first + k;", *truths, *map(str, made.body.lines), *puts]
    each = [
        "#pragma unroll",
        f"for (int k = 0; k < {ELEMENTS_PER_THREAD}; k++) {{",
        *indent(inner),
        "}",
    ]
    rest = [*map(str, alone.body.lines), *map(str, alone.stores)]
    body = [
        f"const int64_t first = ((int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x) "
        f"* {ELEMENTS_PER_THREAD};",
        f"if (first + {ELEMENTS_PER_THREAD} <= {size}) {{",
        *indent([*invariant_statements(printed), *before, *each, *after, "return;"]),
        "}",
        *invariant_statements(plain),
        f"for (int64_t {loop.name} = first; {loop.name} < {size}; {loop.name}++) {{",
        *indent(rest),
        "}",
    ]
    return names.function(
        body, Grid(loop.extent, ELEMENTS_PER_THREAD * THREADS_PER_BLOCK), THREADS_PER_BLOCK, False
    )


def invariant_statements(nest: PrintedNest) -> Lines:
    """Return the statements that do not depend on the element."""
    rows = [line for line in nest.row.lines if not isinstance(line, PrintedPass)]
    return [*map(str, nest.top.lines), *map(str, rows)]


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
        and count % ELEMENTS_PER_THREAD == 0
        and count >= ELEMENTS_PER_THREAD * step
    )


def elements_of(count: int, step: int) -> int:
    """Return the number of elements per thread, rounded up to whole groups."""
    return -(-count // (ELEMENTS_PER_THREAD * step)) * ELEMENTS_PER_THREAD


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
        near = [load for load in loads_in(values_in(each)) if adjoins(load, loop, nest, names)]
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
                turns = count // ELEMENTS_PER_THREAD
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


def adjoins(access: Load | Store, loop: str, nest: Nest, names: CudaKernelNames) -> bool:
    """Return True if four iterations of a loop access four adjacent, aligned elements."""
    if names.is_apart(access.operand):
        return False
    rows, offset = {each.name for each in nest.rows}, access.offset
    for atom, step in offset.terms.items():
        if atom == loop:
            if step != 1:
                return False
        elif not (str(atom) in rows and isinstance(atom, str) and is_fourfold(step)):
            return False
    return loop in offset.terms and is_fourfold(offset.constant)


def is_fourfold(size: Size) -> bool:
    """Return True if a size is known to be a multiple of four."""
    return isinstance(size, int) and size % ELEMENTS_PER_THREAD == 0


def place_text(operand: str, offset: AffineIndex, loop: str) -> str:
    """Return the C text of the pointer to the first of four elements."""
    rows = [f"{atom} * {step}" for atom, step in offset.terms.items() if atom != loop]
    constant = [str(offset.constant)] if offset.constant != 0 else []
    return " + ".join([operand, *rows, *constant, "four"])


def element_type(dtype: DType) -> str:
    """Return the C type of elements in memory."""
    name = name_of(dtype)
    return "uint8_t" if name == "bool" else C_TYPES[name]


def over_known(count: int, step: int, body: Lines) -> Lines:
    """Return an unrolled loop over a thread's groups of four of ``count`` elements."""
    begun = [f"const int64_t four = ((int64_t)group * {step} + rank) * {ELEMENTS_PER_THREAD};"]
    if count % (ELEMENTS_PER_THREAD * step):
        begun.append(f"if (four >= {count}) break;")
    head = (
        f"for (int group = 0; group < {elements_of(count, step) // ELEMENTS_PER_THREAD}; "
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
        f"{low} + rank * {ELEMENTS_PER_THREAD}" if low != "0" else f"rank * {ELEMENTS_PER_THREAD}"
    )
    next_one = f"four += {ELEMENTS_PER_THREAD * step}"
    if not any(map(is_float_sum, made.sums)):
        head = f"for (int64_t four = {start}; four < {high}; {next_one}) {{"
        return [head, *indent(body), "}"]
    few = f"group < {MAX_SERIAL_TERMS // ELEMENTS_PER_THREAD} && four < {high}"
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
        if fours.partial or not adjoins(store, loop.name, nest, names):
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
        else [f"const int turn = group * {ELEMENTS_PER_THREAD} + k;"]
    )
    inner = [*turn, f"const int64_t {loop.name} = four + k;", *element(made, puts)]
    inside = (
        f"k < {ELEMENTS_PER_THREAD} && k < inside"
        if fours.partial
        else f"k < {ELEMENTS_PER_THREAD}"
    )
    first = ["const int64_t inside = end - four;"] if fours.partial else []
    return [
        *first, *fours.read.get(number, []), *before,
        "#pragma unroll", f"for (int k = 0; {inside}; k++) {{", *indent(inner), "}",
        *after,
    ]  # fmt: skip
