"""``Cache``: layers' state of earlier times, to continue a sequence in another call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import ArgumentError
from ....op_graph.axes.axes import Axes, Axis, new_axis
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import Leaf, Tensor, VoidOp
from ....op_graph.rows.effects import assign
from ....op_graph.rows.elementwise import add, cast, less, where
from ....op_graph.rows.indexing import PURPOSES, Purpose, scatter
from ....op_graph.rows.leaves import iota, persistent_tensor
from ....op_graph.rows.reductions import tensor_size
from .unread import Unread, watch_unread

if TYPE_CHECKING:
    from ....op_graph.building.typing import DTypeLike
    from .layer import Layer


TIME_OF_CACHE = "time of a cache"
PURPOSES[TIME_OF_CACHE] = Purpose(
    "used as positions in a cache",
    "the cache is full: give neon.Cache an axis of more places, or set its position to 0, which "
    "begins another sequence",
)


class Cache:
    """Passed to layers as ``cache=``: they continue after the times of earlier calls.

    ``places`` is an axis whose length is the capacity in times: attention keeps the keys and values
    of each, and a recurrent layer its state. All are persistent variables that are not trained, and
    so is ``position``, the number of times seen; setting it to 0 begins a new sequence. ``updates``
    are the effects to be run with the call; a warning is given if they were never requested. Every
    call must have as many examples as the first one, until ``variables`` are set to arrays of
    another number. A time beyond the capacity raises ``IndexRangeError``, which calls the times
    ``name.times``: then more places are needed, or ``position`` must be set to 0. A recurrent layer
    keeps no times, and needs no places.
    """

    def __init__(self, places: Axis, *, name: str | None = None) -> None:
        self.places, self.name = new_axis(places, "Cache"), name
        self.position = self._kept(Axes(), "int64", "position")
        self._layers: list[Layer] = []
        self._updates: dict[Leaf, Tensor] = {}
        self._unread = Unread(
            "updates",
            "the next call would not go on after this one; give *cache.updates to "
            "transformer.computation, beside the results",
        )
        watch_unread(self, [self._unread])

    def enter(self, layer: Layer, x: Tensor, along: Axis) -> Tensor:
        """Return the numbers of the times of ``x``, and register the layer.

        Raises ``ArgumentError`` if the layer was called with this cache before: the two calls would
        overwrite each other's state.
        """
        if any(layer is other for other in self._layers):
            raise ArgumentError(
                f"{user_call(layer)}: was called with this cache before, and keeps in it one "
                "sequence of times; give each call a neon.Cache of its own"
            )
        self._layers.append(layer)
        self.keep(self.position, self.position + tensor_size(x, [along]))
        times = add(self.position, iota(along), name=f"{self.name or 'cache'}.times")
        times.add_tags(TIME_OF_CACHE)
        return times

    def variable(self, axes: Axes, dtype: DTypeLike, place: str) -> Leaf:
        """Return a variable for the layer that was registered last."""
        layer = self._layers[-1]
        owner = layer.name or str(len(self._layers) - 1)
        return self._kept(axes, dtype, f"{owner}.{place}")

    def keep(self, state: Leaf, value: Tensor) -> None:
        """Assign a variable this value after the call."""
        self._updates[state] = value
        self._unread.add(state)

    def state(self, axes: Axes, dtype: DTypeLike, place: str) -> tuple[Leaf, Tensor]:
        """Return a variable, and its value after the earlier times: 0 if there were none."""
        state = self.variable(axes, dtype, place)
        return state, where(self.position > 0, state, 0)

    def extended(self, x: Tensor, along: Axis, times: Tensor, place: str) -> Tensor:
        """Return ``x`` together with its earlier values: over places instead of ``along``."""
        axes = Axes([self.places if axis is along else axis for axis in x.axes])
        state = self.variable(axes, x.dtype, place)
        value = scatter(state, times, cast(x, state.dtype), self.places)
        self.keep(state, value)
        return value

    def filled(self, x: Tensor) -> Tensor:
        """Return ``x`` over places, with 0 after the last time, where old values may be NaN."""
        return where(less(iota(self.places), self._updates[self.position]), x, 0)

    @property
    def variables(self) -> list[Leaf]:
        """The variables of the cache, ``position`` among them."""
        return list(self._updates)

    @property
    def updates(self) -> list[VoidOp]:
        """An assignment for each variable of the cache."""
        self._unread.clear()
        return [assign(state, value) for state, value in self._updates.items()]

    def _kept(self, axes: Axes, dtype: DTypeLike, place: str) -> Leaf:
        name = None if self.name is None else f"{self.name}.{place}"
        return persistent_tensor(axes, dtype, initial_value=0, name=name)
