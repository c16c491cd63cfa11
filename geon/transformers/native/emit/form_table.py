"""The table of native kernels' forms: trees of nests, products, steps of chains, and scans."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from ...kernels.ir.nest import Nest
from ...kernels.products.contraction import Contraction
from ...kernels.products.row_blocking import Blocked, whole_sizes
from ...kernels.scans.sequential_scan import OrderedLoop
from ...lowering.planning.kernel_forms import FormTable, Place
from ...lowering.planning.plan import Plan, plan_memory
from ..machine.measured_machine import MODEL
from ..products.product_form import ProductForm, product_forms
from ..toolchain.compilers import find_toolchain
from ..trees.kernel_forms import Form, Forms, forms_of
from ..vectors.nontemporal_stores import passing
from ..vectors.scan_copies import ScanForm, scan_form


def form_table(vector_bytes: int | None = None) -> FormTable:
    """Return an empty table of forms for registers of ``vector_bytes``.

    By default these are the registers of this machine, or those of ``MODEL`` without a compiler.
    """
    if vector_bytes is None:
        toolchain = find_toolchain()
        vector_bytes = MODEL.vector_bytes if toolchain is None else toolchain.vector_bytes
    table = FormTable(
        {
            Nest: partial(_nest_parts, vector_bytes),
            Contraction: partial(_contraction_parts, vector_bytes),
            Blocked: partial(_chain_parts, vector_bytes),
            OrderedLoop: partial(_scan_parts, vector_bytes),
        },
        vector_bytes,
    )
    table.from_starts = True
    return table


def for_vectors(plan: Plan, vector_bytes: int) -> Plan:
    """Return the plan of the same schedule for registers of ``vector_bytes``."""
    if plan.vector_bytes == vector_bytes:
        return plan
    return plan_memory(plan.schedule, plan.reuse, table=form_table(vector_bytes))


def _nest_parts(
    vector_bytes: int, work: Nest, places: Sequence[Place], unaligned: Set[int]
) -> Forms:
    """Return the parts of a nest, some of whose stores may pass by the caches."""
    return forms_of(work, vector_bytes, passing(work, places))


def _contraction_parts(
    vector_bytes: int, work: Contraction, places: Sequence[Place], unaligned: Set[int]
) -> tuple[ProductForm, ...]:
    """Return the form of a product, or those of its pieces."""
    return product_forms(work, vector_bytes)


def _chain_parts(
    vector_bytes: int, work: Blocked, places: Sequence[Place], unaligned: Set[int]
) -> tuple[tuple[Form | ProductForm, ...], ...]:
    """Return the parts of each step of a chain: those of nests and products; none of calls."""
    parts: list[tuple[Form | ProductForm, ...]] = []
    for step, whole in zip(work.steps, work.whole, strict=True):
        if isinstance(step, Nest):
            parts.append(forms_of(step, vector_bytes, None))
        elif isinstance(step, Contraction):
            parts.append(product_forms(step, vector_bytes, whole_sizes(whole)))
        else:
            parts.append(())
    return tuple(parts)


def _scan_parts(
    vector_bytes: int, work: OrderedLoop, places: Sequence[Place], unaligned: Set[int]
) -> tuple[ScanForm]:
    """Return the only part of a scan."""
    return (scan_form(work, vector_bytes),)
