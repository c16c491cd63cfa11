"""Vectorised elementwise kernels: each thread loads and stores four adjacent elements at once.

Every value begins at a multiple of 256 bytes, so groups of four are aligned. Slices of stacks in a
loop may not be.
"""

from __future__ import annotations

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.values.dtypes import name_of
from ...kernels.ir.nest import Loop, Nest, Pass
from ...kernels.ir.scalar_code import Load, RandomBits, walk
from ...printing.nests.nest_statements import print_nest
from ...printing.nests.pass_text import PrintedNest, PrintedPass
from ...printing.scalars.c_expressions import C_TYPES
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, indent
from .cooperative_threads import Lines

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
