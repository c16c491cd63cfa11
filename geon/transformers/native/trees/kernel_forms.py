"""Forms of nests in native code: loop trees with their stores past the caches, and choices."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...kernels.analysis.index_boxes import nominal_length
from ...kernels.ir.nest import Fill, Nest
from ...loops.tree import Tree
from ...lowering.planning.kernel_forms import FormChoice
from ...sizes.limits import MIN_SIZE_RATIO
from ..vectors.nontemporal_stores import Passing, may_pass, stored_bytes
from .tree_choice import tree_of


class NestTree(NamedTuple):
    """The tree of a nest, and its stores that may pass by the caches, None without any."""

    tree: Tree
    passing: Passing | None


Form = NestTree | FormChoice | Fill
Forms = tuple[Form, ...]


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
