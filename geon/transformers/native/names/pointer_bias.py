"""Where operands of products begin: the caller adds what lies before them, so texts are equal.

A loop that was written out takes one slice after another of one value. The products of all slices
are one function then, called with pointers into the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ....op_graph.axes.affine import Affine
from ...kernels.ir.scalar_code import Load, Scalar, walk
from ...kernels.products.contraction import Contraction
from ...printing.nests.parameters import Place


def from_starts(made: Contraction, places: Sequence[Place]) -> tuple[Contraction, dict[Place, int]]:
    """The contraction with operands that begin where it reads them, and by place what lies before.

    ``places`` are those of the operands; starts are in elements. Only an operand that is read in
    one way, is not written, and has a place of its own can begin elsewhere, and none where pieces
    begin at different places.
    """
    if made.pieces:
        return made, {}
    roots = (made.left, made.right, *[store.value for store in made.stores])
    uses = Counter(places[node.operand] for node in walk(*roots) if isinstance(node, Load))
    uses.update(places[store.operand] for store in made.stores)
    starts: dict[Place, int] = {}

    def begun(value: Scalar) -> Scalar:
        """An operand from its start on."""
        if not isinstance(value, Load) or uses[places[value.operand]] > 1:
            return value
        start = value.offset.constant
        if not isinstance(start, int) or start == 0:
            return value
        starts[places[value.operand]] = start
        return replace(value, offset=Affine(value.offset.terms.items()))

    return replace(made, left=begun(made.left), right=begun(made.right)), starts
