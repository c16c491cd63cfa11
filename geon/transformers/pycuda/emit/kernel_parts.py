"""Functions and other parts of each kind of kernel, and what the CUDA target has none for."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from ....errors import UnavailableError
from ....op_graph.nodes import made_at
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Call, Fill, Region
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.buffer_slots import place_of
from ...lowering.planning.kernel_forms import FormChoice
from ...lowering.planning.plan import Plan
from ...lowering.rules.small_matrices import MAX_SMALL_ROWS, SMALL
from ...printing.nests.parameters import Place
from ...printing.scalars import completeness
from ..kernels.library_kernels import (
    FORMS,
    LIBRARY,
    PrefixForm,
    name_in_library,
    prefix_function,
)
from ..kernels.nest_text import OrderedRows, fill_parts, ordered_function, tree_function
from ..kernels.scattering import ScatterStep, scatter_parts
from ..kernels.sorting import LineSort, sort_parts
from ..kernels.tree_choice import TeamTree
from ..launches.launch_ir import LaunchVariants
from ..launches.naming import Chosen, CudaKernelNames, Part
from ..products.attention import FusedAttention, attention_function
from ..products.contractions import product_function, sum_of_parts
from ..products.library_dispatch import LibraryProduct, request_parts
from ..products.nvmath_bindings import package
from ..products.product_forms import PartialSums, TiledProduct


def lacks(op: Op, libraries: Set[str] = frozenset()) -> list[str]:
    """Return the table entries that a lowered op needs and that are missing.

    ``libraries`` are the options of the transformer that select a library. Raises
    ``UnavailableError`` for an op that only a library computes.
    """
    if op.primitive.name in completeness.REGIONS:
        return []
    if op.primitive.kind == "matrix" and "matrices" not in libraries:
        cure = (
            f"install cuSOLVER's binding: {package('cuSOLVER')}, or compute it with "
            'make_transformer("native") and feed the result'
        )
        name = op.primitive.name
        if name in SMALL:
            name = (
                f"{name} of matrices of more than {MAX_SMALL_ROWS} rows, or of an unknown number,"
            )
            cure = f"give the axis of a smaller one its length, or {cure}"
        raise UnavailableError(
            f"{op} (made at {made_at(op)}): {name} has no generated kernel on GPUs; {cure}"
        )
    if op.primitive.name == "fourier_parts" and "transforms" not in libraries:
        raise UnavailableError(
            "without cuFFT, the pycuda target has no Fourier transform of an open length, and "
            f"axis {op.attrs.axis!r} of {op.args[0]} (made at {op.line_info}) has length "
            f"{op.attrs.n}: "
            f"{package('cuFFT')}, compile for a known one with "
            f'specialize={{{op.attrs.axis}: 1024}}, or use geon.make_transformer("native")'
        )
    tables = "LIBRARY and FORMS of transformers/pycuda/kernels/library_kernels.py"
    return completeness.lacks(op, {*LIBRARY, *FORMS}, tables)


def kernel_parts(names: CudaKernelNames, number: int) -> list[Part]:
    """Return the functions and other parts of kernel ``number`` of a plan, in execution order."""
    form, work = names.plan.forms.get(names.kernel.op), names.kernel.work
    if form is not None:
        return form_parts(form.parts, names)
    assert isinstance(work, Call), "kernels of a region's bodies are launched"
    return LIBRARY[name_in_library(work.op)](work.op, names, number)


# What emits each kind of form.
WRITERS: dict[type, Callable[[Any, CudaKernelNames], Sequence[Part]]] = {
    TeamTree: lambda form, names: [tree_function(form, names)],
    Fill: fill_parts,
    TiledProduct: lambda form, names: [product_function(form, names)],
    PartialSums: lambda form, names: [sum_of_parts(form, names)],
    LibraryProduct: request_parts,
    FusedAttention: lambda form, names: [attention_function(form, names)],
    OrderedRows: lambda form, names: [ordered_function(form, names)],
    LineSort: sort_parts,
    ScatterStep: scatter_parts,
    PrefixForm: lambda form, names: [prefix_function(form, names)],
}


def form_parts(forms: Sequence[Any], names: CudaKernelNames) -> list[Part]:
    """Return the functions and other parts of a kernel's forms, in execution order."""
    found: list[Part] = []
    for form in forms:
        if isinstance(form, FormChoice):
            both = form_parts(form.forms, names), form_parts(form.others, names)
            found.append(LaunchVariants(form.holds, tuple(both[0]), tuple(both[1])))
        else:
            found += WRITERS[type(form)](form, names)
    return found


def operands_of_call(plan: Plan, work: Call) -> list[Op]:
    """Return the values in whose memory the result and the arguments of a call are."""
    return [plan.schedule.base[each] for each in (work.op, *work.op.args)]


def memory_of(plan: Plan, kernel: Kernel, chosen: Sequence[Chosen]) -> list[Place | None]:
    """Return the places that a kernel's functions take: operands, scratch, indices of cases."""
    work, scratch = kernel.work, plan.scratch.get(kernel.op)
    assert not isinstance(work, Region)
    values = work.operands if not isinstance(work, Call) else operands_of_call(plan, work)
    found: list[Place | None] = [place_of(plan, op) for op in values]
    found.append(None if scratch is None else ("arena", scratch))
    return [*found, *(each.place(k) for k, each in enumerate(chosen))]
