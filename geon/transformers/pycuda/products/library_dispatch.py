"""Dispatch of contractions to libraries: conditions, scratch memory, and the pass that follows.

Kernels of a program that can fail are skipped after a failure. A library call cannot be skipped, so
such programs do not use libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, partial

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of, named_dtype
from ...kernels.ir.scalar_code import Load, walk
from ...kernels.products.contraction import Contraction
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.kernel_forms import KernelForm
from ...lowering.planning.schedule import Schedule
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.parameters import Place
from ...printing.scalars.c_expressions import C_TYPES
from ...sizes.scratch import Scratch, largest
from ..kernels.cooperative_threads import Lines, places
from ..launches.launch_ir import LaunchVariants
from ..launches.library_requests import WORKSPACE_BYTES, Ask, ContractionWork
from ..launches.memory import aligned
from ..launches.naming import CudaFunction, CudaKernelNames, Part
from .library_matching import convolution_call, product_of
from .scratch import Bytes, scratch_of

MIN_LIBRARY_MULADDS = 1 << 24  # min. multiplications for a library call
# max. terms of a float32 sum; longer ones need more accuracy than float32 accumulation
MAX_FLOAT32_TERMS = 8192


def holds(work: ContractionWork) -> tuple[Size, ...]:
    """Return sizes that are all >= 0 if a library call pays and is accurate enough."""
    enough = work.multiplications - MIN_LIBRARY_MULADDS
    if work.dtype != "float32":
        return (enough,)
    return enough, MAX_FLOAT32_TERMS - work.terms


def library_work(
    schedule: Schedule, kernel: Kernel, libraries: AbstractSet[str]
) -> ContractionWork | None:
    """Return the library request for a kernel, or None if none applies or it is not worth it.

    ``libraries`` is a subset of "products" and "convolutions".
    """
    work = kernel.work
    if not isinstance(work, Contraction) or any(each.raises for each in schedule.kernels):
        return None
    found: ContractionWork | None = None
    if "products" in libraries:
        found = product_of(work, bool(kernel.writes))
    if found is None and "convolutions" in libraries:
        found = convolution_call(work, bool(kernel.writes))
    if found is None or any(isinstance(size, int) and size < 0 for size in holds(found)):
        return None
    return found


def sums_bytes(work: ContractionWork) -> Size:
    """Return the bytes of sums in scratch memory, rounded up to the workspace's alignment."""
    if not work.apart:
        return 0
    return aligned(work.results * named_dtype(work.result).itemsize)


@cache
def scratch_with(
    libraries: AbstractSet[str],
) -> Callable[[Schedule, Mapping[Op, KernelForm]], dict[Op, Scratch]]:
    """Return a function like ``scratch_of`` for programs that use these libraries."""
    return partial(_scratch, libraries)


def _scratch(
    libraries: AbstractSet[str], schedule: Schedule, forms: Mapping[Op, KernelForm]
) -> dict[Op, Scratch]:
    """Return the scratch memory of a schedule's kernels, including libraries' workspaces.

    It fits generated kernels too, since the places of values decide late which of them run.
    """
    found = scratch_of(schedule, forms)
    for kernel in schedule.kernels:
        work = library_work(schedule, kernel, libraries)
        if work is not None:
            library = Bytes(sums_bytes(work) + WORKSPACE_BYTES, holds(work))
            both = largest([library, found.get(kernel.op)])
            assert both is not None
            found[kernel.op] = both
    return found


def parts_by_library(
    names: CudaKernelNames, asked: ContractionWork, generated: list[Part]
) -> list[Part]:
    """Return a choice between a library request and the generated kernels, by open lengths.

    If the result overwrites an operand in place, return the generated kernels only.
    """
    plan, kernel = names.plan, names.kernel
    work = kernel.work
    assert isinstance(work, Contraction)
    at = [place_of(plan, op) for op in work.operands]
    codes = (work.left, work.right, *[store.value for store in work.stores])
    read = {at[node.operand] for node in walk(*codes) if isinstance(node, Load)}
    works: Place = ("arena", plan.scratch[kernel.op])
    values = [None if each is None else at[each] for each in asked.operands]
    if values[asked.out] in read and not asked.apart:
        return generated
    if asked.apart:
        values[asked.out] = works
    parts: list[Part] = [Ask(asked, tuple(values), works, sums_bytes(asked))]
    if not asked.ends:
        parts.append(_rest(work, names, asked))
    return [LaunchVariants(holds(asked), tuple(parts), tuple(generated))]


def _rest(work: Contraction, names: CudaKernelNames, asked: ContractionWork) -> CudaFunction:
    """Return the pass over a library's sums, in the result's or in scratch memory."""
    printer = ContractionPrinter(work, names)
    loops = (*work.batch, *work.rows, *work.columns)
    store = work.stores[0]
    block = printer.block({})
    offset = printer.scalars.index(block, store.offset)
    ctype = C_TYPES[name_of(work.dtype)]
    sums = f"{names.operand(store.operand)}[{offset}]"
    if asked.apart:
        sums = f"((const {ctype} *){names.scratch()})[at]"
    body: Lines = [
        *places(loops, "at", names.length),
        *block.lines,
        f"const {ctype} sum = {sums};",
        *printer.store({}, "sum"),
    ]
    return names.by_elements(asked.results, body)
