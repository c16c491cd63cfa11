"""Fusion groups of the CUDA target: the shared loop fusion plus fused attention."""

from __future__ import annotations

from ....op_graph.op_graph import Op
from ...kernels.products.attention import attention_of
from ...kernels.products.row_blocking import Blocked
from ...lowering.facts.target import Target
from ...lowering.fusion import loop_groups
from ...lowering.fusion.chain_fusion import Worth, by_blocks
from ...lowering.fusion.fusion_groups import Group
from ...lowering.fusion.layout import LaidOut
from ..products.attention import fits


def is_attention(work: Blocked) -> bool:
    """Return True if a fused chain is attention that one CUDA kernel can compute."""
    found = attention_of(work)
    return found is not None and fits(found)


ATTENTION = Worth(large=0, fewest=1, more=0, accepts=is_attention)


def groups(laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> list[Group]:
    """Return the fusion groups of a program, one per kernel."""
    found = loop_groups(laid_out, target, ops, check)
    return found if check or len(ops) == 1 else by_blocks(laid_out, found, ops, ATTENTION)
