"""Values of positional programs: tensors with ordered axes, host arrays, and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import geon

from ...errors import AxisError, DTypeError, GeonError, SizeError
from ...op_graph.axes.lengths import Length
from ...op_graph.evaluation.interpreter import interpret
from ...op_graph.op_graph import post_order
from ...op_graph.values.dtypes import ALL_DTYPES

Dim = geon.Axis | None
Size = int | Length

MAX_KNOWN_ELEMENTS = 1 << 26  # of values that are computed when a model is imported
Positions = int | Iterable[int] | None  # one or several, from the end if negative; None are all


class UnknownValueError(GeonError, ValueError):
    """A value that must be known when the model is imported depends on inputs of a call.

    ``inputs`` are the names of these inputs; none if it depends on the step of a loop.
    """

    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class PositionalArray:
    """A tensor whose axes have positions.

    ``dims`` has the axis at each position, or None where the length is 1: the tensor lacks these
    axes, so that broadcasting, squeezing and transposing need no op. No axis of the tensor has
    the known length 1.
    """

    tensor: geon.Tensor
    dims: tuple[Dim, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.tensor.dtype

    @property
    def shape(self) -> tuple[Size, ...]:
        """The length at each position: an integer, or an expression over open names."""
        return tuple([1 if axis is None else axis.expression for axis in self.dims])

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(['1' if d is None else str(d) for d in self.dims])})"


@dataclass(frozen=True, eq=False, slots=True)
class HostArray:
    """An array that is known when the model is imported.

    Elements of an array of NumPy's dtype ``object`` are length expressions and integers, with
    ``dtype`` int64, or texts, with ``dtype`` object.
    """

    array: np.ndarray[Any, Any]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[Size, ...]:
        """The length at each position."""
        return self.array.shape

    @property
    def is_symbolic(self) -> bool:
        """True if an element is a length expression."""
        return self.array.dtype == object and self.dtype != object

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.array.shape))})"


@dataclass(frozen=True, eq=False, slots=True)
class Weight:
    """An array of the model's file that becomes a variable where a tensor is first needed.

    ``make`` builds the variable over the axes that it is given, one for each dimension; their
    names follow from the first use.
    """

    array: np.ndarray[Any, Any]
    name: str
    make: Callable[[Sequence[geon.Axis]], geon.Tensor]
    made: list[PositionalArray] = field(default_factory=list)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[Size, ...]:
        """The length at each position."""
        return self.array.shape

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.array.shape))})"


def weight(
    array: np.ndarray[Any, Any], name: str, variables: dict[str, Any], trainable: bool
) -> Weight:
    """Return a weight that is added to ``variables`` where it becomes a variable."""

    def make(axes: Sequence[geon.Axis]) -> geon.Tensor:
        variables[name] = geon.Variable(
            axes, array.dtype, initial_value=array, name=name or None, trainable=trainable
        )
        return variables[name]

    return Weight(array, name, make)


Value = PositionalArray | HostArray | Weight


# Making values ------------------------------------------------------------------------------------


def host(value: Any, dtype: Any = None) -> HostArray:
    """Return a host value of a number, an array or a nested list, which may have lengths in it."""
    array = np.asarray(value)
    if array.dtype != object:
        array = array if dtype is None else array.astype(dtype)
        return HostArray(array, array.dtype)
    if any(isinstance(element, Length) for element in array.flat):
        return HostArray(array, np.dtype(np.int64 if dtype is None else dtype))
    if any(isinstance(element, (str, bytes)) for element in array.flat):
        return HostArray(array, np.dtype(object))
    array = array.astype(np.int64 if dtype is None else dtype)
    return HostArray(array, array.dtype)


def array(tensor: geon.Tensor, dims: Iterable[Dim | str]) -> PositionalArray:
    """Return ``tensor`` with its axes at these positions, without axes of length 1.

    ``dims`` are axes of the tensor or their names, and None for a position of length 1.
    """
    names = [dim.name if isinstance(dim, geon.Axis) else dim for dim in dims]
    single = [axis for axis in tensor.axes if axis.expression == 1]
    if single:
        tensor = tensor[dict.fromkeys(single, 0)]
    axes = tensor.axes
    return PositionalArray(
        tensor, tuple([None if name is None else axes.get(name) for name in names])
    )


def input_array(leaf: geon.Tensor) -> PositionalArray:
    """Return a placeholder or variable as an array, with its axes in their order."""
    return array(leaf, leaf.axes)


def as_array(value: Value, like: Sequence[Dim] = ()) -> PositionalArray:
    """Return a value as a tensor with positions.

    A host value or parameter takes the names of ``like``, aligned from the right, where the
    lengths are equal.
    """
    if isinstance(value, PositionalArray):
        return value
    if isinstance(value, Weight):
        if not value.made:
            axes = _axes_like(value.array.shape, like, value.name)
            value.made.append(input_array(value.make(axes)))
        return value.made[0]
    if not isinstance(value, HostArray) or value.dtype.name not in ALL_DTYPES:
        raise DTypeError(f"{value} is needed as a tensor, and geon has none of it; cast it first")
    axes = _axes_like(value.array.shape, like, "d")
    if value.is_symbolic:
        return array(_lengths_tensor(value, axes), axes)
    return array(geon.constant(np.asarray(value.array, order="C"), axes, value.dtype), axes)


def _lengths_tensor(value: HostArray, axes: Sequence[geon.Axis]) -> geon.Tensor:
    elements: list[Any] = list(value.array.flat)
    parts = [geon.cast(element, value.dtype) for element in elements]
    if not axes:
        return parts[0]
    whole = geon.stack(parts, geon.Axis("lengths", len(parts)))
    if len(axes) == 1:
        return whole.rename({"lengths": axes[0].name})
    return geon.unflatten(whole, "lengths", axes)


def _axes_like(shape: Sequence[int], like: Sequence[Dim], base: str) -> list[geon.Axis]:
    """Return new axes of these lengths, named as ``like`` where the lengths are equal."""
    offset = len(like) - len(shape)
    names: list[str] = []
    for position, length in enumerate(shape):
        dim = like[position + offset] if position + offset >= 0 else None
        fits = dim is not None and not (
            isinstance(dim.expression, int) and dim.expression != length
        )
        name = dim.name if fits and dim is not None else f"{base}_{position}"
        names.append(fresh(name, names))
    return [geon.Axis(name, length) for name, length in zip(names, shape, strict=True)]


# Reading values -----------------------------------------------------------------------------------


def known(value: Value, what: str = "a value") -> np.ndarray[Any, Any]:
    """Return the array of a value that must be known when the model is imported.

    It may have length expressions as elements. Raises ``UnknownValueError``, which names the inputs
    of the model that the value depends on.
    """
    if not isinstance(value, PositionalArray):
        return value.array
    leaves = value.tensor.placeholders() + value.tensor.variables()
    names = tuple([str(leaf.name) for leaf in leaves if leaf.name is not None])
    error = UnknownValueError(f"{what} must be known when the model is imported, and depends on ")
    if len(names) < len(leaves):
        error.args = (f"{error}the step of a loop",)
        raise error
    weights = [str(leaf.name) for leaf in value.tensor.variables()]
    cures = [f"values={{{name!r}: array}}" for name in names if name not in weights]
    cures += [f"frozen={weights}"] if weights else []
    error.args = (f"{error}{', '.join(names)}; give load {' and '.join(cures)}",)
    error.inputs = tuple([name for name in names if name not in weights])
    if leaves:
        raise error
    for op in post_order([value.tensor]):
        count = math.prod([n for axis in op.axes if isinstance(n := axis.expression, int)])
        if count > MAX_KNOWN_ELEMENTS:
            raise SizeError(
                f"{what} must be known when the model is imported, and follows from {op} with "
                f"{count:,} elements; at most {MAX_KNOWN_ELEMENTS:,} are computed then"
            )
    try:
        found = interpret([value.tensor], {}, {})[value.tensor]
    except KeyError:  # an open length
        error.args = (
            f"{what} must be known when the model is imported, and depends on lengths in a way "
            "that no expression of lengths has; give them: axes={name: [..., geon.Axis('T', 8)]}",
        )
        raise error from None
    order = [value.tensor.axes.names.index(dim.name) for dim in value.dims if dim is not None]
    return np.transpose(found, order).reshape([int(length) for length in value.shape])


def known_list(value: Value, what: str = "a value") -> list[Any]:
    """Return the elements of a known vector or scalar as numbers or length expressions."""
    found: list[Any] = known(value, what).reshape(-1).tolist()
    return found


def full_tensor(value: Value) -> geon.Tensor:
    """Return a tensor with an axis for every position, in order, also for those of length 1."""
    given = as_array(value)
    names: list[str] = [dim.name for dim in given.dims if dim is not None]
    tensor = given.tensor
    order: list[str] = []
    for position, dim in enumerate(given.dims):
        if dim is None:
            name = fresh(f"d{position}", names)
            names.append(name)
            tensor = geon.expand(tensor, geon.Axis(name, 1))
            order.append(name)
        else:
            order.append(dim.name)
    return tensor if order == list(tensor.axes.names) else geon.reorder(tensor, order)


# Positions and names ------------------------------------------------------------------------------


def position(axis: int, rank: int, extra: int = 0) -> int:
    """Return a position counted from 0; raise ``AxisError`` if it is out of range.

    ``extra`` more positions than ``rank`` exist, such as in the result of an unsqueeze.
    """
    whole = rank + extra
    if not -whole <= axis < whole:
        raise AxisError(
            f"position {axis} is out of range for {whole} dimensions; give one from {-whole} to "
            f"{whole - 1}"
        )
    return axis % whole if whole else 0


def positions(axes: Positions, rank: int, extra: int = 0) -> list[int]:
    """Return positions counted from 0 of one axis, of a list of them, or of all for None.

    Raises ``AxisError`` if one is out of range or there twice.
    """
    if axes is None:
        return list(range(rank))
    try:
        listed = [int(axis) for axis in (axes if isinstance(axes, Iterable) else [axes])]
    except (TypeError, ValueError):
        raise AxisError(f"positions {axes!r:.80} are no integers; give integers") from None
    found = [position(axis, rank, extra) for axis in listed]
    if len({*found}) < len(found):
        raise AxisError(f"positions {listed} of {rank + extra} dimensions: one is there twice")
    return found


def fresh(name: str, taken: Iterable[str]) -> str:
    """Return ``name``, or with a number from 2 after it, so that it is not among ``taken``."""
    taken = set(taken)
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def new_axis(length: Size, base: str, taken: Iterable[str]) -> geon.Axis:
    """Return an axis with a name that is not ``taken``: an open length's own name, or ``base``."""
    axis = geon.Axis(base, length)
    return axis.named(fresh(axis.open_name or base, taken))


def axes_for(shape: Iterable[Size]) -> list[geon.Axis]:
    """Return an axis for each dimension, named by its open length or by its position."""
    axes: list[geon.Axis] = []
    for k, length in enumerate(shape):
        axes.append(new_axis(length, f"d{k}", [axis.name for axis in axes]))
    return axes


def renamed(value: PositionalArray, names: Sequence[str | None]) -> PositionalArray:
    """Return the array with these names of axes, by position; None where the length is 1."""
    pairs = [(d.name, n) for d, n in zip(value.dims, names, strict=True) if d is not None]
    changed: dict[Any, Any] = {old: new for old, new in pairs if old != new}
    if not changed:
        return value
    tensor = value.tensor.rename(changed)
    axes = [None if d is None else n for d, n in zip(value.dims, names, strict=True)]
    return PositionalArray(tensor, tuple([None if n is None else tensor.axes[n] for n in axes]))
