"""The variables of a transformer: their slots, names in checkpoints, and open lengths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import AxisError, FeedError
from ..op_graph.axes import Axes, default_lengths
from ..op_graph.lengths import Length
from ..op_graph.op_graph import Leaf, Op, Tensor, post_order, storage_leaves
from . import checkpoint
from .calls import Dim, Slot, State, known
from .feeding import make_feed
from .gate import Writing


def dims_of(axes: Axes) -> tuple[Any, ...]:
    """Lengths as the runtime takes them: integers, or ``Dim`` for expressions over open names."""
    return tuple(dim_of(axis.expression) for axis in axes)


def dim_of(length: int | Length) -> Any:
    """One length as the runtime takes it."""
    if isinstance(length, int):
        return length
    return Dim(str(length), sorted(length.names()), length.evaluate)


class Variables:
    """Storage leaves in the order a transformer met them, each with its slot."""

    def __init__(self) -> None:
        self.state = State()
        self.slots: dict[Leaf, Slot] = {}

    @property
    def leaves(self) -> list[Leaf]:
        """The variables known so far, in order."""
        return list(self.slots)

    def add(self, leaves: Iterable[Leaf]) -> None:
        """Know these variables, and those that their initial values read."""
        waiting = list(leaves)
        for leaf in waiting:
            if leaf in self.slots or not leaf.info.stored:
                continue
            label = f"variable {leaf} (made at {leaf.file_info})"
            self.slots[leaf] = Slot(label, leaf.dtype, leaf.axes.names, dims_of(leaf.axes))
            waiting += storage_leaves(*_initial_ops(leaf))

    def slot(self, leaf: Leaf) -> Slot:
        """The slot of a variable."""
        return self.slots[leaf]

    def lengths(self) -> dict[str, int]:
        """What allocated variables say of open names."""
        found: dict[str, int] = {}
        for slot in self.slots.values():
            if slot.array is not None:
                for dim, size in zip(slot.dims, slot.array.shape, strict=True):
                    if isinstance(dim, Dim) and dim.text in dim.names:
                        found.setdefault(dim.text, size)
        return found

    def allocatable(self, leaf: Leaf, lengths: dict[str, int]) -> bool:
        """Whether every length of a variable is known."""
        everything = {**learned(leaf), **lengths}
        return all(known(dim, everything) for dim in self.slots[leaf].dims)

    def allocate(self, leaf: Leaf, lengths: dict[str, int]) -> None:
        """Give a variable memory; open lengths from ``lengths``, others, its initial value."""
        everything = {**default_lengths(), **self.lengths(), **lengths}
        for name, size in learned(leaf).items():
            if everything.setdefault(name, size) != size and name in _bare(leaf):
                raise AxisError(
                    f"the initial value of {leaf} (made at {leaf.file_info}) has length {size} "
                    f"along {name!r}, where {everything[name]} is in use"
                )
        self.state.allocate(self.slots[leaf], everything)

    def called(self, leaf: Leaf) -> Any:
        """The array that a callable initial value gives for the variable's axes."""
        array = self.slots[leaf].array
        axes = Axes(*(a.with_length(n) for a, n in zip(leaf.axes, array.shape, strict=True)))
        make: Any = leaf.info.initial_value
        value = make(axes)
        if isinstance(value, Tensor):
            raise FeedError(
                f"the callable initial value of {leaf} (made at {leaf.file_info}) gave a tensor; "
                "it must give an array, or pass the tensor itself as initial_value"
            )
        return np.broadcast_to(np.asarray(value), array.shape)

    def put(self, leaf: Leaf, value: Any) -> None:
        """Set a variable from a user's array."""
        slot = self.slots[leaf]
        if slot.array is None:
            shape = np.shape(value)
            if len(shape) == len(slot.dims):
                sizes = {
                    dim.text: n
                    for dim, n in zip(slot.dims, shape, strict=True)
                    if isinstance(dim, Dim) and dim.text in dim.names
                }
                self.allocate(leaf, {**sizes, **self.lengths(), **sizes})
            else:
                self.allocate(leaf, {})
        dims = tuple(slot.array.shape)
        array = make_feed(slot.dtype, dims, slot.label)(value)
        with Writing(self.state.gate):
            np.copyto(slot.array, array)
            slot.ready = True

    def entries(self) -> tuple[list[Leaf], list[checkpoint.Entry]]:
        """The persistent variables, and each as a checkpoint sees it."""
        leaves = [leaf for leaf in self.slots if leaf.info.persistent]
        keys = checkpoint.keys_for(
            [(leaf.name, "variable", leaf.axes.names, self.slots[leaf].label) for leaf in leaves]
        )
        entries = []
        for leaf, key in zip(leaves, keys, strict=True):
            slot = self.slots[leaf]
            shape = slot.array.shape if slot.array is not None else tuple(
                dim if isinstance(dim, int) else None for dim in slot.dims
            )
            axes = tuple(zip(leaf.axes.names, shape, strict=True))
            entries.append(
                checkpoint.Entry(
                    key, leaf.name is None, "variable", axes, leaf.dtype.name, slot.label
                )
            )
        return leaves, entries

    def restore(self, leaves: Sequence[Leaf], arrays: Sequence[Any]) -> None:
        """Put arrays that were checked into variables, all or none."""
        lengths: dict[str, int] = self.lengths()
        for leaf, array in zip(leaves, arrays, strict=True):
            for axis, size in zip(leaf.axes, array.shape, strict=True):
                name = axis.open_name
                if name is not None and lengths.setdefault(name, size) != size:
                    raise checkpoint.CheckpointError(
                        f"the checkpoint gives {self.slots[leaf].label} length {size} along "
                        f"{name!r}, and another variable {lengths[name]}; nothing was changed"
                    )
        for leaf in leaves:
            self.allocate(leaf, lengths)
        with Writing(self.state.gate):
            for leaf, array in zip(leaves, arrays, strict=True):
                np.copyto(self.slots[leaf].array, array)
                self.slots[leaf].ready = True

    def clear(self) -> None:
        """Forget all variables and free their memory."""
        for slot in self.slots.values():
            slot.array = None
        self.slots.clear()


def _initial_ops(leaf: Leaf) -> list[Op]:
    first = leaf.info.initial_value
    return [*([first] if isinstance(first, Tensor) else []), *leaf.initializers]


def _bare(leaf: Leaf) -> set[str]:
    return {axis.open_name for axis in leaf.axes if axis.open_name is not None}


def learned(leaf: Leaf) -> dict[str, int]:
    """Open names that the shape of an initial array fixes."""
    first = leaf.info.initial_value
    found: dict[str, int] = {}
    if isinstance(first, Tensor):
        for op in post_order([first]):
            for guard in op.guards:
                for left, right in ((guard.left, guard.right), (guard.right, guard.left)):
                    if guard.relation == "==" and isinstance(left, int):
                        if isinstance(right, Length) and str(right) in right.names():
                            found.setdefault(str(right), left)
    return found
