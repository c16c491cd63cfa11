"""Memory of a region's bodies that may have any element alignment: slices of stacked values."""

from __future__ import annotations

from collections.abc import Sequence, Set

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op, Same
from ...kernels.ir.nest import Region
from ..facts.value_sizes import bytes_of
from .kernel_forms import Place


def unaligned_places(
    work: Region,
    operands: Sequence[Place],
    results: Sequence[Place],
    unaligned: Set[Place],
    alignment: int,
) -> tuple[frozenset[Place], ...]:
    """Return the places of each body that may have any element alignment.

    ``operands`` and ``results`` are those of the region in the plan around it, some of which are
    ``unaligned`` themselves. Other memory is aligned to ``alignment`` bytes.
    """
    if work.op.primitive.name == "case":
        numbers = range(len(results))
        return tuple([
            frozenset(_passed(body.leaves, operands, results, numbers, 0, unaligned))
            for body in work.bodies
        ])  # fmt: skip
    attrs, is_scan = work.op.attrs, work.op.primitive.name == "scan"
    # Behind its carries a while loop has the number of iterations, which is no output of the body;
    # a scan has captured values behind its stacked operands.
    further = 0 if is_scan else 1
    numbers_of = [k - further * (k > attrs.carries) for k in work.numbers]
    found: set[Place] = set()
    for body in work.bodies:
        found |= _passed(body.leaves, operands, results, numbers_of, attrs.carries, unaligned)

    def stacked(place: Place, stride: Size) -> None:
        """Add a slice of a stacked value whose slices are ``stride`` bytes apart."""
        if not isinstance(stride, int) or stride % alignment:
            found.add(place)

    leaves = work.bodies[-1].leaves
    for k in range(attrs.carries, attrs.before_captures if is_scan else attrs.carries):
        stacked(("leaf", Same(leaves[k])), bytes_of(leaves[k]))
    for k, op in enumerate(work.bodies[-1].schedule.program.outputs):
        if k >= attrs.carries:
            stacked(("result", k), bytes_of(op))
    return (frozenset(found),) * len(work.bodies)


def _passed(
    leaves: Sequence[Op],
    operands: Sequence[Place],
    results: Sequence[Place],
    numbers: Sequence[int],
    carries: int,
    unaligned: Set[Place],
) -> set[Place]:
    """Return the places of a body that are memory ``unaligned`` of the region's plan.

    ``numbers`` are the body's indices of the region's results. The first ``carries`` results are
    carries: the next iteration reads them where they were written.
    """
    found: set[Place] = set()
    for leaf, place in zip(leaves, operands, strict=False):
        if place in unaligned:
            found.add(("leaf", Same(leaf)))
    for number, place in zip(numbers, results, strict=False):
        if place in unaligned:
            found.add(("result", number))
            if number < carries:
                found.add(("leaf", Same(leaves[number])))
    return found
