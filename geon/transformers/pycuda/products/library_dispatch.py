"""Contractions that a library computes: which it is asked for, with what memory, and what follows.

Kernels of a program that can fail do nothing once one has failed, which a library does not: it is
asked for nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, partial

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import evaluate
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of, named_dtype
from ...kernels.ir.scalar_code import Load, walk
from ...kernels.products.contraction import Contraction
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.schedule import Schedule
from ...printing.nests.contractions import ContractionPrinter
from ...printing.nests.parameters import Place
from ...printing.scalars.c_expressions import C_TYPES
from ...sizes.scratch import Scratch
from ..kernels.cooperative_threads import Lines, places
from ..launches.launch_ir import Grid
from ..launches.library_requests import LibraryWork
from ..launches.memory import ALIGNMENT as ALIGNED
from ..launches.naming import Asked, Either, Function, KernelNames, Part
from .convolution_matching import convolution_of
from .gemm_matching import product_of
from .scratch import scratch_of

LARGE = 1 << 24  # multiplications from which on a library is asked
DEEPEST = 8192  # float32 terms, beyond which sums are to be more exact than float32 adds them
WORKSPACE = 1 << 25  # bytes that a library works in
THREADS = 256


def holds(work: LibraryWork) -> tuple[Size, ...]:
    """Sizes none of which is negative where a library is asked."""
    enough = work.multiplications - LARGE
    if work.dtype != "float32":
        return (enough,)
    return enough, DEEPEST - work.terms


def library_work(
    schedule: Schedule, kernel: Kernel, libraries: AbstractSet[str]
) -> LibraryWork | None:
    """What one of these ``libraries``, "products" and "convolutions", is asked for; None where
    none can, or need, compute a kernel.
    """
    work = kernel.work
    if not isinstance(work, Contraction) or any(each.raises for each in schedule.kernels):
        return None
    found: LibraryWork | None = None
    if "products" in libraries:
        found = product_of(work, bool(kernel.writes))
    if found is None and "convolutions" in libraries:
        found = convolution_of(work, bool(kernel.writes))
    if found is None or any(isinstance(size, int) and size < 0 for size in holds(found)):
        return None
    return found


def sums_bytes(work: LibraryWork) -> Size:
    """The bytes of sums that are put apart, up to where the library may work."""
    if not work.apart:
        return 0
    return (work.results * named_dtype(work.result).itemsize + ALIGNED - 1) // ALIGNED * ALIGNED


@dataclass(frozen=True, slots=True)
class LibraryScratch:
    """What a library works in, and sums that are put apart; what the ``generated`` functions work
    in has room too, since the places of values decide in the end which of them it is.
    """

    work: LibraryWork
    generated: Scratch | None
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes under these lengths."""
        generated = 0 if self.generated is None else self.generated.bytes(lengths, threads)
        if any(evaluate(size, lengths) < 0 for size in holds(self.work)):
            return generated
        return max(evaluate(sums_bytes(self.work), lengths) + WORKSPACE, generated)

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        most = sums_bytes(self.work) + WORKSPACE
        return most if self.generated is None else most + self.generated.most(threads)


@cache
def scratch_with(
    libraries: AbstractSet[str],
) -> Callable[[Schedule], dict[Op, Scratch]]:
    """What gives the scratch memory of a schedule's kernels where these are asked."""
    return partial(_scratch, libraries)


def _scratch(libraries: AbstractSet[str], schedule: Schedule) -> dict[Op, Scratch]:
    """The scratch memory of a schedule's kernels, with what libraries work in."""
    found = scratch_of(schedule)
    for kernel in schedule.kernels:
        work = library_work(schedule, kernel, libraries)
        if work is not None:
            found[kernel.op] = LibraryScratch(work, found.get(kernel.op))
    return found


def parts_by_library(
    kernel: Kernel, names: KernelNames, asked: LibraryWork, generated: list[Part]
) -> list[Part]:
    """What asks a library where lengths make the work large; else the generated functions.

    Where the result lies in the place of what is read, these are all.
    """
    work, plan = kernel.work, names.plan
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
    parts: list[Part] = [Asked(asked, tuple(values), works, sums_bytes(asked))]
    if not asked.ends:
        parts.append(_rest(work, names, asked))
    return [Either(holds(asked), tuple(parts), tuple(generated))]


def _rest(work: Contraction, names: KernelNames, asked: LibraryWork) -> Function:
    """What is done with the sums, which lie where results are stored, or apart."""
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
        f"const int64_t at = (int64_t)blockIdx.x * {THREADS} + threadIdx.x;",
        f"if (at >= {names.length(asked.results)}) return;",
        *places(loops, "at", names.length),
        *block.lines,
        f"const {ctype} sum = {sums};",
        *printer.store({}, "sum"),
    ]
    return names.function(body, Grid(asked.results, THREADS), THREADS, False)
