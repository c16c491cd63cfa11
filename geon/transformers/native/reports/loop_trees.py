"""Text of the loop trees that kernels of native code run from."""

from __future__ import annotations

from ...kernels.ir.nest import Nest
from ...loops.show import shown_pieces
from ...lowering.fusion.kernel import Kernel
from ...lowering.planning.plan import Plan
from ..names.naming import KernelNames
from ..trees.tree_choice import trees_of
from ..vectors.nontemporal_stores import passing


def tree_lines(plan: Plan, kernel: Kernel, vector_bytes: int) -> list[str]:
    """Return the lines of a kernel's trees, one for each piece; none for other forms."""
    if not isinstance(kernel.work, Nest):
        return []
    past = passing(kernel.work, KernelNames(plan, kernel, {}))
    return shown_pieces(trees_of(kernel.work, vector_bytes, past))
