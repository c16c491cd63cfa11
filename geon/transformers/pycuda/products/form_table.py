"""The table of CUDA kernels' forms: trees, tiles of products, library requests and attention."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ...kernels.ir.nest import Call, Nest
from ...kernels.products.contraction import Contraction
from ...kernels.products.row_blocking import Blocked
from ...kernels.scans.sequential_scan import OrderedLoop
from ...lowering.planning.kernel_forms import FormTable, Place
from ..kernels.library_kernels import call_forms
from ..kernels.nest_text import OrderedRows
from ..kernels.tree_choice import forms_of
from .attention import attention_forms
from .library_dispatch import library_forms
from .loop_forms import region_parts
from .product_forms import product_forms


def form_table(*, tf32: bool = False, libraries: AbstractSet[str] = frozenset()) -> FormTable:
    """Return an empty table of the forms of nests, contractions and attention.

    With ``tf32``, tensor cores multiply float32. ``libraries`` are the options of the transformer
    that select a library.
    """

    def contraction_forms(
        work: Contraction, places: Sequence[Place], unaligned: AbstractSet[int]
    ) -> tuple[Any, ...]:
        return library_forms(work, places, libraries, product_forms(work, tf32))

    table = FormTable({
        Nest: lambda work, places, unaligned: forms_of(work, unaligned),
        Contraction: contraction_forms,
        Blocked: lambda work, places, unaligned: attention_forms(work),
        OrderedLoop: lambda work, places, unaligned: (OrderedRows(work),),
        Call: lambda work, places, unaligned: call_forms(work.op),
    })  # fmt: skip
    table.region_parts = region_parts
    if libraries:
        table.generated, table.by_writes = form_table(tf32=tf32), True
    return table
