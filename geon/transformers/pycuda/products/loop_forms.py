"""Choose the loops and cases that one block of threads runs in one launch.

The choice is a field of the plan. It follows from the forms of the kernels inside, which the block
runs one after another: each must be a few blocks, and all must fit its shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Same
from ...kernels.ir.nest import Fill, Region
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.kernel_forms import FormChoice, choice
from ...lowering.planning.plan import Plan, carry_sizes
from ..kernels.cooperative_threads import WARP_SIZE
from ..kernels.launch_shapes import LaunchShape, by_elements, launch_shape
from ..kernels.library_kernels import PrefixForm
from ..kernels.nest_text import OrderedRows, is_copied
from ..kernels.scattering import ScatterStep, ScatterWay, columns_of, operand_copy
from ..kernels.sorting import LineSort, SortWay
from ..kernels.tree_choice import TeamTree
from ..launches.launch_ir import NOMINAL_DEVICE, THREADS_PER_BLOCK, Grid
from .product_forms import PartialSums, TiledProduct, results, tile_shape

MAX_SERIAL_BLOCKS = 4  # max. blocks of a body's kernel that the block runs one after another
MAX_COPIED_BYTES = 1 << 14  # max. bytes of a copy that the block does
MAX_UNINTERRUPTED_TURNS = 1 << 20  # max. iterations of a while loop in one launch
NEVER = -1  # a size for what does not fit one block
ONE_THREAD = LaunchShape(Grid(1), 1, 0)


class OneLaunch(NamedTuple):
    """A block runs a loop or case, with ``shared`` bytes of shared memory.

    If ``repeated``, a launch does a part of the iterations of a while loop.
    """

    shared: int
    repeated: bool

    @property
    def summary(self) -> str:
        """Return the launch in words."""
        return f"a block runs all kernels{', in several launches' if self.repeated else ''}"


# The launch of a form, given the work of its kernel. Other forms do not fit one block: those with
# barriers and an unknown amount of shared memory, and requests of libraries.
SHAPES: dict[type, Callable[[Any, Any], LaunchShape | None]] = {
    TeamTree: lambda form, work: launch_shape(form),
    TiledProduct: lambda form, work: tile_shape(form),
    PartialSums: lambda form, work: by_elements(results(form.product.work)),
    OrderedRows: lambda form, work: LaunchShape(Grid(work.rows, WARP_SIZE), WARP_SIZE, 0),
    LineSort: lambda form, work: (
        by_elements(work.op.args[0].axes.size) if form.way is SortWay.ALL_PAIRS else None
    ),
    ScatterStep: lambda form, work: (
        by_elements(columns_of(work.op)) if form.way is ScatterWay.BY_COLUMNS else None
    ),
    PrefixForm: lambda form, work: None if form.by_blocks else by_elements(form.lines),
}


def region_parts(work: Region, plans: Sequence[Plan]) -> tuple[Any, ...]:
    """Return ``OneLaunch`` if a loop or case, with these ``plans`` of its bodies, fits one block.

    Where open lengths decide, return a choice; () if it never fits, and for a case with one kernel,
    which needs one launch anyway.
    """
    name = work.op.primitive.name
    fit = _LoopFit(name == "case")
    paths = [(k,) if name == "case" else () for k in range(len(plans))]
    sizes = [each for plan, path in zip(plans, paths, strict=True) for each in fit.body(plan, path)]
    sizes += [MAX_COPIED_BYTES - size for _, size in carry_sizes(work)]
    shared = sum(fit.shared.values())
    if name == "case" and fit.kernels == 1:
        return ()
    limit = work.op.attrs.limit if name == "while" else 0
    repeated = not isinstance(limit, int) or limit > MAX_UNINTERRUPTED_TURNS
    sizes.append(NOMINAL_DEVICE.shared_bytes - shared)
    return choice(list(dict.fromkeys(sizes)), (OneLaunch(shared, repeated),), ())


def one_launch(parts: Sequence[Any]) -> tuple[tuple[Size, ...], OneLaunch] | None:
    """Return the sizes that must not be negative for the one launch of a region, and the launch."""
    if not parts:
        return None
    (part,) = parts
    return (part.holds, part.forms[0]) if isinstance(part, FormChoice) else ((), part)


class _LoopFit:
    """Finds the sizes that must not be negative for a loop to fit one block.

    With ``once`` (a case, which may be outside of a loop), a kernel with barriers may have one
    block only: running several in sequence takes longer than the launches that it saves.
    ``shared`` has the bytes of shared memory of each function, ``kernels`` the number of launches.
    """

    def __init__(self, once: bool) -> None:
        self.once, self.kernels = once, 0
        self.shared: dict[Hashable, int] = {}

    def body(self, plan: Plan, path: tuple[Any, ...]) -> Iterator[Size]:
        """Yield the sizes of a plan's kernels; ``path`` are the branches that it is in."""
        for kernel in plan.schedule.kernels:
            form = plan.forms.get(kernel.op)
            if isinstance(kernel.work, Region):
                yield from self.region(plan, kernel, path)
            elif form is not None:
                yield from self.parts(form.parts, plan, kernel, path)
            elif kernel.op.primitive.name == "checked":
                yield from self.launch(ONE_THREAD)
            else:
                yield NEVER
            if plan.schedule.check and kernel.raises and not kernel.has_side_effect:
                yield from self.launch(by_elements(kernel.results[0].axes.size))
                yield from self.launch(ONE_THREAD)

    def parts(
        self, parts: Sequence[Any], plan: Plan, kernel: Kernel, path: tuple[Any, ...]
    ) -> Iterator[Size]:
        """Yield the sizes of the parts of a form; kernels of one form are one function."""
        work: Any = kernel.work
        for part in parts:
            if isinstance(part, FormChoice):
                yield from self.parts((*part.forms, *part.others), plan, kernel, path)
            elif isinstance(part, Fill):
                value = work.operands[part.operand]
                if is_copied(part, lambda number: place_of(plan, work.operands[number])):
                    yield from self.copy(value.axes.size * value.dtype.itemsize, path)
            elif isinstance(part, ScatterStep) and part.way is ScatterWay.COPY:
                copy = operand_copy(work.op, plan)
                if copy is not None:
                    yield from self.copy(copy.size, path)
            else:
                find = SHAPES.get(type(part))
                yield from self.launch(find and find(part, work), (id(part), path))

    def copy(self, size: Size, path: tuple[Any, ...]) -> Iterator[Size]:
        """Yield the size of a copy; in a branch, a kernel copies, if the branch is taken."""
        if path:
            yield from self.launch(by_elements(size))
        else:
            yield MAX_COPIED_BYTES - size

    def region(self, plan: Plan, kernel: Kernel, path: tuple[Any, ...]) -> Iterator[Size]:
        """Yield the sizes of a loop or case inside; a loop must be one launch itself.

        Carries that are updated in place are copied before it. So are those that are results of a
        scan in a branch, as its kernels test the branch.
        """
        work = kernel.work
        assert isinstance(work, Region)
        op, found = work.op, one_launch(plan.forms[kernel.op].parts)
        copied: set[int] = {*work.held}
        if path and op.primitive.name == "scan" and not op.attrs.counted:
            copied |= {*work.numbers}
        for k, size in carry_sizes(work):
            if k in copied:
                yield from self.copy(size, path)
        if found is not None:
            holds, one = found
            yield from holds
            if one.repeated:
                yield NEVER
            self.shared[Same(kernel.op), path] = one.shared
            self.kernels += 2 if holds else 1
        elif op.primitive.name == "case":
            for k, inner in enumerate(plan.inside[kernel.op].plans):
                yield from self.body(inner, (*path, Same(kernel.op), k))
        else:
            yield NEVER

    def launch(self, shape: LaunchShape | None, function: Hashable = None) -> Iterator[Size]:
        """Yield the sizes of a launch: of its number of blocks; note its shared memory."""
        self.kernels += 1
        allowed = (WARP_SIZE, THREADS_PER_BLOCK)
        if shape is None or (shape.meets and shape.threads not in allowed):
            yield NEVER
            return
        grid = shape.grid
        self.shared[function] = shape.shared
        few = 1 if self.once and shape.meets else MAX_SERIAL_BLOCKS
        if grid.most > few:
            yield few * grid.each - grid.units
        if grid.parts is not None:
            yield grid.parts.least - grid.parts.count
