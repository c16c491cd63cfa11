"""Horizontal fusion: small independent kernels as one launch that divides its blocks among them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ....op_graph.axes.lengths import names_of
from ...kernels.ir.nest import Nest
from ...loops.access import operands_in, sizes_in
from ...loops.rules.teams import MAX_SHARED_BYTES
from ...loops.tree import Space
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.kernel_forms import FormChoice, KernelForm, trees_in
from ...lowering.planning.plan import Plan
from ...printing.nests.loop_lines import indent
from ..launches.launch_ir import NOMINAL_DEVICE, Grid, LaunchVariants
from ..launches.naming import NAME, CudaFunction, Joined, Part, kernel_head
from .launch_shapes import launch_shape
from .nest_text import is_copied
from .tree_choice import TeamTree

# Max. blocks, if known, of a kernel that is joined with others: more fill the device by themselves.
MAX_JOINED_BLOCKS = NOMINAL_DEVICE.full_blocks(registers=32)
MAX_LAUNCH_PARAMETERS = 448  # max. 8-byte parameters of a launch; CUDA allows 512


class LaunchNeeds(NamedTuple):
    """What a kernel needs of a launch: shared memory in bytes, and parameters.

    Kernels of equal ``shape`` can share a launch; it is None for one that cannot.
    """

    shape: Hashable
    shared: int
    parameters: int


def launch_groups(plan: Plan) -> list[tuple[int, list[list[int]]]]:
    """Return the kernels of each time, by position, in groups that are one launch each.

    Kernels of one time run concurrently. Those of a group have forms of equal shape.
    """
    kernels, times = plan.schedule.kernels, plan.schedule.times
    guard = any(kernel.raises for kernel in kernels)
    known: dict[KernelForm, LaunchNeeds] = {}
    found: list[tuple[int, list[list[int]]]] = []
    for time, beside in groupby(range(len(kernels)), key=times.__getitem__):
        positions = list(beside)
        if len(positions) == 1:
            found.append((time, [positions]))
            continue
        shapes: dict[Hashable, list[int]] = {}
        needs = {}
        for position in positions:
            needs[position] = needs_of(plan, kernels[position], known)
            shape = needs[position].shape
            shapes.setdefault(position if shape is None else shape, []).append(position)
        groups = []
        for group in shapes.values():
            shared = max(needs[position].shared for position in group)
            parameters = max(needs[position].parameters for position in group)
            size = fitting(len(group), shared, parameters + guard)
            groups += [group[first : first + size] for first in range(0, len(group), size)]
        found.append((time, groups))
    return found


def needs_of(plan: Plan, kernel: Kernel, known: dict[KernelForm, LaunchNeeds]) -> LaunchNeeds:
    """Return what a kernel needs of a launch; ``known`` has that of forms.

    The finite check of a result is a launch of its own.
    """
    work, checked = kernel.work, plan.schedule.check and kernel.raises
    if not isinstance(work, Nest) or checked:
        return LaunchNeeds(None, 0, 0)
    form = plan.forms[kernel.op]
    if form not in known:
        trees = list(trees_in(form.parts))
        shared = max([launch_shape(tree).shared for tree in trees], default=0)
        parameters = max(map(parameters_of, trees), default=0)
        known[form] = LaunchNeeds(shape_of(plan, work, form.parts), shared, parameters)
    return known[form]


def joined(group: Sequence[Sequence[Part]]) -> list[Part]:
    """Return the parts of a group of kernels: each joins those at equal positions."""
    if len(group) == 1:
        return [*group[0]]
    found: list[Part] = []
    for like in zip(*group, strict=True):
        first = like[0]
        if isinstance(first, LaunchVariants):
            both = [
                tuple(joined([getattr(each, side) for each in like]))
                for side in ("steps", "others")
            ]
            found.append(LaunchVariants(first.holds, *both))
        else:
            found.append(Joined(tuple([each for each in like if isinstance(each, CudaFunction)])))
    return found


def joined_text(functions: Sequence[CudaFunction], names: Sequence[str]) -> str:
    """Return a kernel's text that divides its blocks among the device functions ``names``."""
    declared, body = [], ["int64_t first = 0, block = blockIdx.x;"]
    for number, (function, name) in enumerate(zip(functions, names, strict=True)):
        given = [f"x{number}_{k}" for k in range(len(function.parameters))]
        declared += [
            f"{p.ctype} {'*' if p.pointer else ''}{each}"
            for p, each in zip(function.parameters, given, strict=True)
        ]
        count = f"blocks{number}"
        own = [*given, "{(unsigned)(block - first)}", f"{{(unsigned){count}}}"]
        body += [
            f"if (block >= first && block < first + {count})",
            f"    {name}({', '.join(own)});",
        ]
        body.append(f"first += {count};")
    counts = [f"int64_t blocks{number}" for number in range(len(functions))]
    head = kernel_head(NAME, ", ".join([*declared, *counts]), functions[0].threads)
    return "\n".join([head, "{", *indent(body[:-1]), "}", ""])


def shape_of(plan: Plan, nest: Nest, forms: Sequence[Any]) -> Hashable:
    """Return a key that is equal for forms that can be joined; None for those that cannot."""
    found: list[Hashable] = []
    for form in forms:
        if isinstance(form, TeamTree):
            shape = launch_shape(form)
            if not is_small(shape.grid):
                return None
            found.append(shape.threads)
        elif isinstance(form, FormChoice):
            both = [shape_of(plan, nest, each) for each in (form.forms, form.others)]
            if None in both:
                return None
            found.append((form.holds, *both))
        elif is_copied(form, lambda number: place_of(plan, nest.operands[number])):
            return None
    return tuple(found)


def is_small(grid: Grid) -> bool:
    """Return True if a launch has at most ``MAX_JOINED_BLOCKS`` blocks, or an open number of
    them.
    """
    if not isinstance(grid.units, int):
        return True
    return min(-(-grid.units // grid.each), grid.most) <= MAX_JOINED_BLOCKS


def fitting(count: int, shared: int, parameters: int) -> int:
    """Return how many of ``count`` kernels fit one launch.

    Each has at most ``shared`` bytes of shared memory, and this many parameters.
    """
    most = count if shared == 0 else MAX_SHARED_BYTES // shared
    return max(min(most, MAX_LAUNCH_PARAMETERS // (parameters + 1)), 1)


def parameters_of(form: TeamTree) -> int:
    """Return how many operands and lengths a tree takes, and pointers to scratch memory."""
    lengths = {name for size in sizes_in(form.tree) for name in names_of(size)}
    scratch = any(each.space in (Space.SCRATCH, Space.STACK) for each in form.tree.buffers)
    return len(operands_in(form.tree)) + len(lengths) + scratch
