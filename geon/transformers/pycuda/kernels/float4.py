"""Vector loads of reductions that several blocks share: four adjacent elements at once.

Every value begins at a multiple of 256 bytes, except slices of stacks in a loop. So groups of four
elements are aligned in a contiguous pass, and in rows whose length is a multiple of four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Nest, Pass
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from ...loops.gpu_threads import ELEMENTS_PER_VECTOR, is_aligned, is_whole
from ...printing.nests.loop_lines import indent
from ...printing.nests.pass_text import PrintedPass
from ..launches.launch_ir import THREADS_PER_BLOCK
from ..launches.naming import CudaKernelNames
from .cooperative_threads import (
    Lines,
    chains,
    element,
    is_float_sum,
    values_in,
)
from .thread_statements import element_type


@dataclass(slots=True)
class Fours:
    """The vector loads of a nest's passes, parts of which blocks reduce.

    ``passes`` has the vectorised passes by number. ``texts`` maps loads to the C text of elements
    in registers. ``read`` has, by number of the pass, the statements that load. If ``partial``, the
    last group may be incomplete.
    """

    partial: bool
    passes: dict[int, Pass] = field(default_factory=dict)
    texts: dict[Load, str] = field(default_factory=dict)
    read: dict[int, Lines] = field(default_factory=dict)


def fours_of(nest: Nest, names: CudaKernelNames) -> Fours | None:
    """Return the vectorised form of passes that only reduce, or None if no load is contiguous."""
    whole = all(is_whole(loop.extent) for each in nest.passes for loop in each.loops[-1:])
    found = Fours(not whole)
    others: list[Scalar] = []
    for number, each in enumerate(nest.passes):
        if len(each.loops) == 1:
            found.passes[number] = each
        else:
            others += values_in(each)
    scalar, known = set(loads_in(others)), dict[tuple[object, ...], str]()
    for number, each in found.passes.items():
        loop = each.loops[0].name
        for load in loads_in(values_in(each)):
            if load in scalar or names.is_apart(load.operand) or not is_aligned(load.offset, loop):
                continue
            terms = sorted((str(k), v) for k, v in load.offset.terms.items() if str(k) != loop)
            key = (load.operand, tuple(terms), load.offset.constant)
            name = known.setdefault(key, f"in{len(known)}")
            text = f"{name}.at[k]"
            found.texts[load] = f"({text} != 0)" if name_of(load.dtype) == "bool" else text
            ctype = f"geon_four<{element_type(load.dtype)}>"
            pointer = place_text(load, loop, names)
            read = f"*(const {ctype} *)({pointer})"
            read = f"geon_read_fours({pointer}, inside)" if found.partial else read
            found.read.setdefault(number, []).append(f"const {ctype} {name} = {read};")
    return found if found.texts else None


def loads_in(values: Sequence[Scalar]) -> list[Load]:
    """Return the loads in scalar expressions."""
    return [value for value in walk(*values) if isinstance(value, Load)]


def place_text(load: Load, loop: str, names: CudaKernelNames) -> str:
    """Return the C text of the pointer to the first of four elements."""
    offset, operand = load.offset, names.operand(load.operand)
    terms = [(atom, step) for atom, step in offset.terms.items() if atom != loop]
    rows = [f"{atom} * ({names.length(step)})" for atom, step in terms]
    constant = [names.length(offset.constant)] if offset.constant != 0 else []
    return " + ".join([operand, *rows, *constant, "four"])


def turns_by_fours(made: PrintedPass, number: int, fours: Fours, names: CudaKernelNames) -> Lines:
    """Return the loop over a block's part of a pass in groups of four."""
    (loop,) = made.loops
    inside = f"k < {ELEMENTS_PER_VECTOR}" + (" && k < inside" if fours.partial else "")
    body = [
        *(["const int64_t inside = end - four;"] if fours.partial else []),
        *fours.read.get(number, []),
        "#pragma unroll", f"for (int k = 0; {inside}; k++) {{",
        *indent([f"const int64_t {loop.name} = four + k;",
                 *element(made, list(map(str, made.stores)))]), "}",
    ]  # fmt: skip
    start = f"begin + rank * {ELEMENTS_PER_VECTOR}"
    next_one = f"four += {ELEMENTS_PER_VECTOR * THREADS_PER_BLOCK}"
    if not any(map(is_float_sum, made.sums)):
        head = f"for (int64_t four = {start}; four < end; {next_one}) {{"
        return [head, *indent(body), "}"]
    few = f"group < {MAX_SERIAL_TERMS // ELEMENTS_PER_VECTOR} && four < end"
    head = f"for (int group = 0; {few}; group++, {next_one}) {{"
    inner = chains(made, [head, *indent(body), "}"])
    return [f"for (int64_t four = {start}; four < end;) {{", *indent(inner), "}"]
