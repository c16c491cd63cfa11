"""Forms of native kernels: loop trees with their stores past the caches, products and scans."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...kernels.analysis.index_boxes import nominal_length
from ...kernels.ir.nest import Fill, Nest
from ...kernels.products.contraction import Contraction
from ...kernels.products.row_blocking import Blocked, whole_sizes
from ...kernels.scans.sequential_scan import OrderedLoop
from ...loops.tree import Tree
from ...lowering.planning.kernel_forms import FormChoice, FormTable, Place
from ...lowering.planning.plan import Plan, plan_memory
from ...sizes.limits import MIN_SIZE_RATIO
from ..machine.measured_machine import MODEL
from ..products.product_form import ProductForm, product_forms
from ..toolchain.compilers import find_toolchain
from ..vectors.nontemporal_stores import Passing, may_pass, passing, stored_bytes
from ..vectors.scan_copies import ScanForm, scan_form
from .tree_choice import tree_of


class NestTree(NamedTuple):
    """The tree of a nest, and its stores that may pass by the caches, None without any."""

    tree: Tree
    passing: Passing | None


Form = NestTree | FormChoice | Fill
Forms = tuple[Form, ...]


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


def forms_of(work: Nest, vector_bytes: int, passing: Passing | None, *, jams: bool = True) -> Forms:
    """Return what a nest runs, in order: its copy, its tree or those of its pieces, and choices.

    Only stores ``passing`` may pass by the caches. Trees have unroll-and-jam if it ``jams``.
    """
    if work.short is not None:
        short = forms_of(work.short, vector_bytes, None)
        if not work.shortness:
            return short
        longer = replace(work, short=None, shortness=())
        long = forms_of(longer, vector_bytes, passing, jams=jams)
        return (FormChoice(work.shortness, short, long),)
    if work.pieces:
        largest = max(nominal_length(stored_bytes(each)) for each in work.pieces)

        def jammed(piece: Nest) -> bool:
            # Pieces much smaller than the largest one are not unrolled and jammed.
            return nominal_length(stored_bytes(piece)) * MIN_SIZE_RATIO >= largest

        pieces: list[Form] = []
        for piece in work.pieces:
            much = passing is not None and may_pass(piece, passing.stored)
            own = passing if much else None
            pieces += forms_of(piece, vector_bytes, own, jams=jammed(piece))
        if not work.holds:
            return tuple(pieces)
        # The nest without pieces serves short lengths only, so its stores stay in the caches.
        whole = replace(work, pieces=(), holds=())
        others = forms_of(whole, vector_bytes, None, jams=jammed(work))
        return (FormChoice(work.holds, tuple(pieces), others),)
    tree = NestTree(tree_of(work, vector_bytes, passing, jams=jams), passing)
    return (tree,) if work.fill is None else (work.fill, tree)
