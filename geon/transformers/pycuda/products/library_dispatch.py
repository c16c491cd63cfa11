"""Dispatch of contractions to libraries: conditions, scratch memory, and the pass that follows."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.values.dtypes import name_of, named_dtype
from ...kernels.ir.scalar_code import Load, walk
from ...kernels.products.contraction import Contraction
from ...lowering.planning.kernel_forms import FormChoice, Place
from ...printing.nests.contractions import ContractionPrinter
from ...printing.scalars.c_expressions import C_TYPES
from ..kernels.cooperative_threads import Lines
from ..kernels.cooperative_threads import places as index_lines
from ..launches.library_requests import WORKSPACE_BYTES, Ask, ContractionWork
from ..launches.memory import aligned
from ..launches.naming import CudaFunction, CudaKernelNames, Part
from .library_matching import convolution_call, product_of

MIN_LIBRARY_MULADDS = 1 << 24  # min. multiplications for a library call
# max. terms of a float32 sum; longer ones need more accuracy than float32 accumulation
MAX_FLOAT32_TERMS = 8192


def holds(work: ContractionWork) -> tuple[Size, ...]:
    """Return sizes that are all >= 0 if a library call pays and is accurate enough."""
    enough = work.multiplications - MIN_LIBRARY_MULADDS
    if work.dtype != "float32":
        return (enough,)
    return enough, MAX_FLOAT32_TERMS - work.terms


class LibraryProduct(NamedTuple):
    """A library computes a contraction; unless the request ends with that, a pass follows."""

    work: Contraction
    asked: ContractionWork


def library_work(
    work: Contraction, writes: bool, libraries: AbstractSet[str]
) -> ContractionWork | None:
    """Return the library request for a contraction, or None if none applies or it is not worth it.

    It ``writes`` a variable, or does not. ``libraries`` is a subset of "products" and
    "convolutions".
    """
    found: ContractionWork | None = None
    if "products" in libraries:
        found = product_of(work, writes)
    if found is None and "convolutions" in libraries:
        found = convolution_call(work, writes)
    if found is None or any(isinstance(size, int) and size < 0 for size in holds(found)):
        return None
    return found


def library_forms(
    work: Contraction,
    places: Sequence[Place],
    libraries: AbstractSet[str],
    generated: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Return a choice between a library and ``generated`` kernels, by open lengths.

    ``places`` is the memory of operands. If the result overwrites an operand that is read, the
    generated kernels remain.
    """
    writes = any(places[store.operand][0] == "leaf" for store in work.stores)
    asked = library_work(work, writes, libraries)
    if asked is None:
        return generated
    out = asked.operands[asked.out]
    codes = (work.left, work.right, *[store.value for store in work.stores])
    read = {places[node.operand] for node in walk(*codes) if isinstance(node, Load)}
    if not asked.apart and out is not None and places[out] in read:
        return generated
    return (FormChoice(holds(asked), (LibraryProduct(work, asked),), generated),)


def sums_bytes(work: ContractionWork) -> Size:
    """Return the bytes of sums in scratch memory, rounded up to the workspace's alignment."""
    if not work.apart:
        return 0
    return aligned(work.results * named_dtype(work.result).itemsize)


def library_scratch(form: LibraryProduct) -> Size:
    """Return the bytes of scratch memory of a request: sums, and the library's workspace."""
    return sums_bytes(form.asked) + WORKSPACE_BYTES


def request_parts(form: LibraryProduct, names: CudaKernelNames) -> list[Part]:
    """Return the request of a library, and the pass that follows."""
    names, asked = names.unguarded(), form.asked
    works: Place = ("arena", names.plan.scratch[names.kernel.op])
    values = [
        None if each is None else names.place_of(names.operands[each]) for each in asked.operands
    ]
    if asked.apart:
        values[asked.out] = works
    request = Ask(asked, tuple(values), works, sums_bytes(asked))
    return [request] if asked.ends else [request, _rest(form.work, names, asked)]


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
        *index_lines(loops, "at", names.length),
        *block.lines,
        f"const {ctype} sum = {sums};",
        *printer.store({}, "sum"),
    ]
    return names.by_elements(asked.results, body)
