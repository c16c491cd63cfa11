"""Origins of axes' positions in a request's inputs, and variables' coordinates after calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ...op_graph.building.constants import CONSTANT
from ...op_graph.op_graph import Leaf, Op, Tensor, post_order
from ..loading.lazy_loading import LaterModule

if TYPE_CHECKING:
    from ...op_graph.evaluation import axis_provenance as keeping
    from ..owner_protocol import Owner
    from ..request import Request
else:
    keeping = LaterModule(
        "...op_graph.evaluation.axis_provenance", __package__
    )  # loaded at first use: only labelled data need it

Kept = Mapping[str, frozenset[Op]]


class Origins:
    """The inputs of a request from which positions along axes of its ops come.

    ``holding`` are the variables and constants of its graph that may have coordinates.
    """

    def __init__(self, request: Request) -> None:
        inputs = zip(request.inputs, request.placeholders, strict=True)
        self._made: dict[Op, Tensor] = dict([*inputs, *request.storage.items()])
        below = post_order(request.pure.roots)
        self.holding = [
            self._made.get(op, op) for op in below if isinstance(op, Tensor) and _may_hold(op)
        ]

    def of(self, op: Tensor) -> Kept:
        """Return, by name of each axis that ``op`` preserves, the ops that it comes from."""
        return {
            name: frozenset([self._made.get(leaf, leaf) for leaf in leaves])
            for name, leaves in keeping.kept_axes(op).items()
        }

    def cut(self, op: Tensor, kept: Kept) -> dict[str, keeping.AxisSlice]:
        """Return, by name of each axis along which ``op`` is a slice or one index, that slice."""
        found = {**keeping.indexed_axes(op), **keeping.cut_axes(op, kept)}
        return {
            name: cut._replace(leaves=frozenset([self._made.get(x, x) for x in cut.leaves]))
            for name, cut in found.items()
        }

    def below(self, op: Tensor) -> set[Op]:
        """Return the inputs, variables and constants that ``op`` depends on."""
        return {self._made.get(each, each) for each in post_order([op])}


class AssignedCoordinates:
    """The variables with axes that a request assigns, and the coordinates that they keep.

    ``values`` are their new values.
    """

    def __init__(self, request: Request, transformer: Owner) -> None:
        updates = request.pure.updates.items()
        self.values = {request.storage.get(v, v): new for v, new in updates if len(v.axes)}
        self._first = any(v.notes().coordinates is not None for v in self.values)
        self._request, self._transformer = request, transformer

    @cached_property
    def kept(self) -> dict[Leaf, Kept]:
        """Return, for each variable, the axes that its new value preserves, and their origins."""
        origins = Origins(self._request)
        return {variable: origins.of(value) for variable, value in self.values.items()}

    def forget(self) -> None:
        """Remove coordinates of axes that a variable's new value does not preserve."""
        if not self.values or not (self._first or self._transformer.coordinates):
            return
        for variable in self.values:
            before = self._transformer.coordinates_of(variable)
            if before is not None and len(before.coords):
                kept = self.kept[variable]
                same = {n for n, leaves in kept.items() if not leaves or variable in leaves}
                gone = [n for n, it in before.coords.items() if not same or not same >= {*it.dims}]
                if gone:
                    self._transformer.keep_coordinates(variable, before.drop_vars(gone))


def _may_hold(op: Op) -> bool:
    """Return True if an op may have labels: a variable, or a constant with coordinates."""
    if isinstance(op, Leaf):
        return op.info.stored
    return op.primitive is CONSTANT and op.notes().coordinates is not None
