"""Products that a library computes: which contractions are plain ones of matrices, and large.

The library gives sums of products, and adds a bias along columns. Whatever else is done with the
sums is a pass over the result that follows, so that it means what it means in every other kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...op_graph.affine import Affine, Size
from ...op_graph.dtypes import HALVES, name_of, named_dtype
from ...op_graph.lengths import evaluate
from ...op_graph.op_graph import Op
from ..kernels.contraction import Access, Contraction, access
from ..kernels.scalar import Apply, Contracted, Load, Scalar, walk
from ..kernels.types import Loop, Store
from ..lowering.kernel import Kernel
from ..lowering.places import place_of
from ..lowering.schedule import Schedule
from ..lowering.scratch import Scratch
from ..printing.c_expressions import C_TYPES
from ..printing.contractions import ContractionPrinter
from ..printing.parameters import Place
from .launches import Grid, Product, Strides
from .memory import ALIGNMENT as ALIGNED
from .naming import Either, Function, KernelNames, Multiplied, Part
from .scratch import scratch_of
from .teams import Lines, places

LARGE = 1 << 24  # multiplications from which on a library is asked
DEEPEST = 8192  # float32 terms, beyond which sums are to be more exact than float32 adds them
WORKSPACE = 1 << 25  # bytes that a library works in
THREADS = 256
MATRICES = ("float32", "float64", *HALVES)


def holds(product: Product) -> tuple[Size, ...]:
    """Sizes none of which is negative where a library is asked."""
    enough = product.batch * product.rows * product.columns * product.deep - LARGE
    if product.dtype != "float32":
        return (enough,)
    return enough, DEEPEST - product.deep


def product_of(schedule: Schedule, kernel: Kernel) -> Product | None:
    """The product that a kernel is; None where a library cannot, or need not, compute it.

    Kernels of a program that can fail do nothing once one has failed, which a library does not.
    """
    work = kernel.work
    if not isinstance(work, Contraction) or any(each.raises for each in schedule.kernels):
        return None
    found = _plain(work, bool(kernel.writes))
    if found is None or any(isinstance(size, int) and size < 0 for size in holds(found)):
        return None
    return found


def sums_bytes(product: Product) -> Size:
    """The bytes of sums that are put apart, up to where the library may work."""
    if not product.apart:
        return 0
    count = product.batch * product.rows * product.columns
    return (count * named_dtype(product.result).itemsize + ALIGNED - 1) // ALIGNED * ALIGNED


@dataclass(frozen=True, slots=True)
class ProductScratch:
    """What a library works in, and sums that are put apart; what the ``generated`` functions work
    in has room too, since the places of values decide in the end which of them it is.
    """

    product: Product
    generated: Scratch | None
    lasting: bool = False

    def bytes(self, lengths: Mapping[str, int], threads: int) -> int:
        """The bytes under these lengths."""
        generated = 0 if self.generated is None else self.generated.bytes(lengths, threads)
        if any(evaluate(size, lengths) < 0 for size in holds(self.product)):
            return generated
        return max(evaluate(sums_bytes(self.product), lengths) + WORKSPACE, generated)

    def most(self, threads: int) -> Size:
        """An expression over open lengths that is never less than ``bytes``."""
        most = sums_bytes(self.product) + WORKSPACE
        return most if self.generated is None else most + self.generated.most(threads)


def with_library(schedule: Schedule) -> dict[Op, Scratch]:
    """The scratch memory of a schedule's kernels where a library computes products."""
    found = scratch_of(schedule)
    for kernel in schedule.kernels:
        product = product_of(schedule, kernel)
        if product is not None:
            found[kernel.op] = ProductScratch(product, found.get(kernel.op))
    return found


def product_parts(
    kernel: Kernel, names: KernelNames, product: Product, generated: list[Part]
) -> list[Part]:
    """What computes the product where lengths make it a large one; else the generated functions.

    Where the result lies in the place of what is read, these are all.
    """
    work, plan = kernel.work, names.plan
    assert isinstance(work, Contraction)
    at = [place_of(plan, op) for op in work.operands]
    codes = (work.left, work.right, *[store.value for store in work.stores])
    read = {at[node.operand] for node in walk(*codes) if isinstance(node, Load)}
    if at[product.out] in read and not product.apart:
        return generated
    works: Place = ("arena", plan.scratch[kernel.op])
    left, right, out = at[product.left], at[product.right], at[product.out]
    bias = None if product.bias is None else at[product.bias]
    parts: list[Part] = [Multiplied(product, left, right, out, bias, works, sums_bytes(product))]
    if not product.ends:
        parts.append(_rest(work, names, product))
    return [Either(holds(product), tuple(parts), tuple(generated))]


def _plain(work: Contraction, writes: bool) -> Product | None:
    """The product that a contraction is."""
    loops = (*work.batch, *work.rows, *work.columns, *work.summed)
    left, right = _matrix(work.left, loops), _matrix(work.right, loops)
    if left is None or right is None or left[1] != right[1]:
        return None
    store = work.stores[0]
    if not all(isinstance(atom, str) for atom in store.offset.terms) or store.offset.constant != 0:
        return None
    out = {str(atom): step for atom, step in store.offset.terms.items()}
    parts = (work.batch, work.rows, work.columns, work.summed)
    all_strides = (left[0].strides, right[0].strides, out)
    joined = [each for part in parts if (each := _joined(part, all_strides)) is not None]
    if len(joined) < len(parts):
        return None
    (batch, of_batch), (rows, down), (columns, across), (deep, along) = joined
    left_strides = Strides(of_batch[0], down[0], along[0])
    right_strides = Strides(of_batch[1], along[1], across[1])
    out_strides = Strides(of_batch[2], down[2], across[2])
    bias, ends = None, False
    if len(work.stores) == 1:
        bias, ends = _ending(store, work.columns, name_of(work.dtype))
    result = name_of(store.dtype)
    if not ends and result != name_of(work.dtype):
        return None
    apart = writes and not ends
    if apart:  # row by row
        out_strides = Strides(rows * columns, columns, 1)
    if not (_is_matrix(left_strides) and _is_matrix(right_strides) and out_strides.across == 1):
        return None
    if out_strides.down == 0 or result not in MATRICES:
        return None
    return Product(
        batch, rows, columns, deep, left[0].operand, right[0].operand, store.operand, bias,
        left_strides, right_strides, out_strides, left[1], result, ends, apart,
    )  # fmt: skip


def _matrix(value: Scalar, loops: Sequence[Loop]) -> tuple[Access, str] | None:
    """How a factor lies in memory, and its dtype there; halves are made float32 on their way."""
    if isinstance(value, Apply) and value.row.name == "cast" and isinstance(value.args[0], Load):
        inner = value.args[0]
        if name_of(inner.dtype) not in HALVES or name_of(value.dtype) != "float32":
            return None
        value = inner
    found = access(value, loops)
    if found is None or found.start != 0 or name_of(value.dtype) not in MATRICES:
        return None
    return found, name_of(value.dtype)


def _joined(
    loops: Sequence[Loop], strides: Sequence[Mapping[str, Size]]
) -> tuple[Size, list[Size]] | None:
    """Several loops as one, with its step in each matrix; None where one cannot tell it so."""
    total: Size = 1
    steps: list[Size] = [0] * len(strides)
    for loop in reversed(loops):
        if loop.extent == 1:
            continue
        own = [each.get(loop.name, 0) for each in strides]
        if total == 1 and not any(step != 0 for step in steps):
            steps = own
        elif any(step != inner * total for step, inner in zip(own, steps, strict=True)):
            return None
        total = total * loop.extent
    return total, steps


def _is_matrix(strides: Strides) -> bool:
    """Whether elements adjoin along rows or columns."""
    if strides.across == 1:
        return strides.down != 0
    return strides.down == 1 and strides.across != 0


def _ending(store: Store, columns: Sequence[Loop], dtype: str) -> tuple[int | None, bool]:
    """The operand that is added along columns, and whether the sums are done then."""
    value = store.value
    if isinstance(value, Apply) and value.row.name == "cast" and name_of(store.dtype) in HALVES:
        return None, isinstance(value.args[0], Contracted)
    if isinstance(value, Contracted):
        return None, True
    if isinstance(value, Apply) and value.row.name == "add":
        loads = [arg for arg in value.args if isinstance(arg, Load)]
        if len(loads) == 1 and any(isinstance(arg, Contracted) for arg in value.args):
            (load,) = loads
            if name_of(load.dtype) == dtype and _is_line(load.offset, columns):
                return load.operand, True
    return None, False


def _is_line(offset: Affine, columns: Sequence[Loop]) -> bool:
    """Whether an offset goes over all columns, one by one."""
    terms = {str(atom): step for atom, step in offset.terms.items()}
    named = {loop.name for loop in columns if loop.extent != 1}
    found = _joined(columns, [terms])
    return offset.constant == 0 and set(terms) == named and found is not None and found[1] == [1]


def _rest(work: Contraction, names: KernelNames, product: Product) -> Function:
    """What is done with the sums, which lie where results are stored, or apart."""
    printer = ContractionPrinter(work, names)
    loops = (*work.batch, *work.rows, *work.columns)
    count = product.batch * product.rows * product.columns
    store = work.stores[0]
    block = printer.block({})
    offset = printer.scalars.index(block, store.offset)
    ctype = C_TYPES[name_of(work.dtype)]
    sums = f"{names.operand(store.operand)}[{offset}]"
    if product.apart:
        sums = f"((const {ctype} *){names.scratch()})[at]"
    body: Lines = [
        f"const int64_t at = (int64_t)blockIdx.x * {THREADS} + threadIdx.x;",
        f"if (at >= {names.length(count)}) return;",
        *places(loops, "at", names.length),
        *block.lines,
        f"const {ctype} sum = {sums};",
        *printer.store({}, "sum"),
    ]
    return names.function(body, Grid(count, THREADS), THREADS, False)
