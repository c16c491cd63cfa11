"""Compile a plan to native code: its C text, its shared object and its record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ....op_graph.op_graph import deep_order
from ....op_graph.rows.effects import printed_form
from ....op_graph.values.dtypes import name_of
from ...linking import Linking
from ...lowering.facts.value_sizes import bytes_of
from ...lowering.fusion import is_product
from ...lowering.planning.iteration_spaces import loops_of, spaces_of
from ...lowering.planning.plan import Plan, kernels_of
from ...lowering.rules.program import Program
from ...printing.scalars.c_expressions import C_TYPES
from ...sizes.product_blocks import shape
from ..library.library_calls import CALLED, function_of_call
from ..machine.threads import processors
from ..products.product_text import product_units
from ..toolchain.compilers import Toolchain
from ..toolchain.shared_objects import begin, shared_object
from .module_text import KEPT, CModule, make_module
from .record import Record, Shown


def emit_c(plan: Plan, linking: Linking, annotate: bool, flushes: bool = False) -> str:
    """Return the C text of a plan, with the user's names and lines as comments if ``annotate``."""
    return make_module(plan, linking, annotate, cores=processors(), flushes=flushes).source


def begin_known(program: Program, toolchain: Toolchain) -> None:
    """Start to compile the shared product kernels and library functions that the program will call.

    They are known before the kernels are, and compiling them takes as long as all stages.
    """
    units: dict[str, None] = {}
    for op in deep_order(program.roots):
        if op.primitive.name == "dot" and is_product(op):
            of = shape(C_TYPES[name_of(op.dtype)], toolchain.vector_bytes)
            units.update(dict.fromkeys(product_units(of)))
        elif op.primitive.name in CALLED:
            units.update(dict.fromkeys(function_of_call(op).units))
    for unit in units:
        begin(toolchain, unit)


def compile_plan(
    plan: Plan, linking: Linking, toolchain: Toolchain, flushes: bool = False
) -> tuple[Record, Path]:
    """Return the record of a plan and the path of its shared object.

    With ``flushes`` its functions flush subnormal numbers to zero.
    """

    def ready(unit: str) -> None:
        begin(toolchain, unit, toolchain.own_flags(unit))

    module = make_module(plan, linking, False, cores=processors(), ready=ready, flushes=flushes)
    path = shared_object(toolchain, module.shared, own=module.units)
    return record_of(plan, module, path), path


def record_of(plan: Plan, module: CModule, path: Path, suffix: str = "") -> Record:
    """Return the record of a plan whose module was compiled to ``path``."""
    outputs, kernels = plan.schedule.program.outputs, list(kernels_of(plan))
    raising = {number for number, kernel in kernels if kernel.raises}
    return Record(
        path.name,
        suffix,
        len(module.pointers),
        KEPT in module.pointers,
        module.lengths,
        tuple(Counter(spaces_of(plan)).items()),
        tuple(plan.buffers),
        plan.schedule.target.alignment,
        tuple(plan.lifetimes),
        tuple(plan.kept.values()),
        tuple([bytes_of(op) for op in outputs]),
        tuple([(op.axes.lengths, op.dtype) for op in outputs]),
        {
            number: Shown(kernel.op.attrs.label, *printed_form(kernel.op))
            for number, kernel in kernels
            if kernel.op.primitive.name == "print"
        },
        {
            number: tuple(kernel.op.attrs) if kernel.op.primitive.name == "checked" else None
            for number, kernel in kernels
            if kernel.raises
        },
        {number: around for number, around in loops_of(plan).items() if number in raising},
        any(kernel.stops for kernel in plan.schedule.kernels),
        module.external,
    )
