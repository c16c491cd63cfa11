"""Leaves: placeholders, variables, ``iota``, and lengths as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axes, Axis, as_axes, new_axis
from ..axes.length_operators import LENGTH_VALUE
from ..axes.lengths import Length
from ..building.constants import constant, fit_axes, number, to_array
from ..building.coordinates import keep_coordinates, let_xarray_defer
from ..building.unused_effects import take
from ..building.weak import strengthen
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import Site, describe, user_call, user_site
from ..op_graph import (
    NO_AXES,
    Leaf,
    LeafInfo,
    Op,
    Tensor,
    make,
    make_leaf,
    post_order,
)
from ..syntax.operators import is_function
from ..values.arrays import array_of, is_array
from ..values.attribute_types import DTypeName, OneAxis, Size
from ..values.dtypes import FAMILIAR, INT64, DType, as_dtype, kind, named_dtype
from ..values.labels import by_name, dim_names
from .effects import assignment, listed_ops
from .movement import broadcast

if TYPE_CHECKING:
    from ..building.typing import DTypeLike, Follows, NewAxes, OpKeywords, Tags, TensorLike

PLACEHOLDER = Primitive(
    "placeholder", "leaf", "A value given when a computation is called.", known=True
)
VARIABLE = Primitive(
    "variable", "leaf", "A value that a transformer keeps between calls.", known=True
)


class IotaAttributes(NamedTuple):
    """The only axis, and the dtype of the positions along it."""

    axis: OneAxis
    dtype: DTypeName


class LengthAttributes(NamedTuple):
    """The length expression that is the value."""

    length: Size


def _length_infer(args: tuple[Any, ...], attrs: LengthAttributes) -> Inferred:
    require(isinstance(attrs.length, Length), "the length {}, which is not open", attrs.length)
    return NO_AXES, INT64, ()


IOTA = Primitive(
    "iota",
    "leaf",
    "0, 1, 2, ... along an axis.",
    reference=lambda op: np.arange(int(op.axes[0].expression), dtype=op.dtype),
    attributes=IotaAttributes,
    arity=0,
    infer=lambda args, attrs: (Axes(attrs.axis), named_dtype(attrs.dtype), ()),
)
LENGTH = Primitive(
    "length",
    "leaf",
    "A length of an axis, or an expression of lengths, as a weak integer.",
    reference=lambda op: np.asarray(op.attrs.length, np.int64),
    attributes=LengthAttributes,
    arity=0,
    infer=_length_infer,
    known=True,
)


@public
def placeholder(
    axes: NewAxes = (),
    dtype: DTypeLike = "float32",
    *,
    name: str | None = None,
    tags: Tags = (),
    follows: Follows = (),
    initializers: Sequence[Op] = (),
) -> Leaf:
    """Return a tensor over ``axes`` whose value is given at each call of a computation.

    With no axes it is a scalar. Open axes take their lengths from the data.
    """
    if isinstance(dtype, (list, tuple, Axis, Axes)):
        raise ArgumentError(
            f"{user_call('placeholder')}: {_summary(dtype)} stands where the dtype "
            'does; write geon.placeholder(axes, dtype, name="x")'
        )
    _refuse_name(dtype, "placeholder")
    let_xarray_defer()
    leaf = input_leaf(as_axes(axes), as_dtype(dtype))
    leaf.info.initializers = listed_ops(initializers, "initializers")
    leaf._annotate(name, tags)
    return leaf._annotate(name, tags, follows)


def input_leaf(axes: Axes, dtype: DType, name: str | None = None, site: Site | None = None) -> Leaf:
    """Return a placeholder with the source line ``site``; None means the caller's line."""
    info = LeafInfo(stored=False, trainable=False, persistent=False, initial_value=None)
    leaf = make_leaf(PLACEHOLDER, axes, dtype, info, site)
    return leaf._annotate(name)


def _refuse_name(dtype: Any, what: str) -> None:
    """Raise ``DTypeError`` if ``dtype`` is an unknown string, which may be meant as the name."""
    if isinstance(dtype, str):
        try:
            named_dtype(dtype)
        except DTypeError as error:
            meant = (
                ""
                if dtype in FAMILIAR or "; write" in str(error)
                else f"; a name is given as name={dtype!r}"
            )
            raise DTypeError(f"{user_call(what)}: {error}{meant}") from None


def stand_in(op: Tensor) -> Leaf:
    """Return a placeholder for the value of ``op``, with its source line."""
    info = LeafInfo(stored=False, trainable=False, persistent=False, initial_value=None)
    return make_leaf(PLACEHOLDER, op.axes, op.dtype, info, op._site)


@public
def variable(
    axes: NewAxes | None = None,
    dtype: DTypeLike | None = None,
    *,
    initial_value: TensorLike | Callable[[Axes], TensorLike] | None = None,
    trainable: bool = True,
    persistent: bool = True,
    name: str | None = None,
    tags: Tags = (),
    follows: Follows = (),
    initializers: Sequence[Op] = (),
) -> Leaf:
    """Return a tensor over ``axes`` that a transformer stores and that ``assign`` changes.

    ``initial_value`` is a number, an array (labelled data are matched by name), a callable that
    takes the axes (with lengths) and returns one of these, or a tensor such as a random draw.
    ``initializers`` are further ops to run when it is initialized. ``trainable`` variables are
    listed by ``variables()``; ``persistent`` ones are stored in checkpoints. Without ``axes`` it
    has those of an initial tensor or of labelled data, or is a scalar. The dtype is float32 unless
    given, or that of the initial tensor or array.
    """
    if isinstance(axes, (np.ndarray, np.generic)):
        raise AxisError(
            f"{user_call('Variable')}: {_summary(axes)} stands where the axes do; a first value is "
            "given as initial_value=, for example geon.Variable(axes, initial_value=...)"
        )
    _refuse_name(dtype, "Variable")
    if dtype is not None and not isinstance(dtype, (str, type, np.dtype)):
        raise DTypeError(
            f"{user_call('Variable')}: {_summary(dtype)} stands where the dtype does; a first "
            "value is given as initial_value=, for example geon.Variable(axes, initial_value=...)"
        )
    if not isinstance(initial_value, (Tensor, np.ndarray, np.generic)) and is_array(initial_value):
        initial_value = _foreign(initial_value, axes)
    labelled: Any = initial_value
    if dim_names(initial_value) and axes is not None:
        over = as_axes(axes)
        what = f"the initial value of a variable over {over}"
        initial_value = by_name(initial_value, over.names, what, AxisError)
    elif dim_names(initial_value) is not None:
        initial_value = constant(labelled, dtype=dtype)
    first = initial_value
    if first is not None and not is_function(first):
        if isinstance(first, np.ndarray) and first.ndim and axes is not None:
            fit_axes(first, axes, "Variable" if name is None else f"the variable {name!r}")
        first = _initial_tensor(first, axes, dtype)
    shape = (
        as_axes(axes) if axes is not None else first.axes if isinstance(first, Tensor) else NO_AXES
    )
    given = _default_dtype(initial_value, first) if dtype is None else as_dtype(dtype)
    if isinstance(first, Tensor):
        first = _fitted(first, shape, given)
    let_xarray_defer()
    info = LeafInfo(stored=True, trainable=trainable, persistent=persistent, initial_value=first)
    leaf = make_leaf(VARIABLE, shape, given, info)
    keep_coordinates(leaf, labelled)
    own: tuple[Op, ...] = ()
    if isinstance(first, Tensor):
        own = (assignment(leaf, first),)
    others = listed_ops(initializers, "initializers")
    take(post_order(others))
    info.initializers = (*own, *others)
    leaf._annotate(name, tags)
    return leaf._annotate(name, tags, follows)


Variable = variable


@public
def persistent_tensor(
    axes: NewAxes | None = None,
    dtype: DTypeLike | None = None,
    *,
    initial_value: TensorLike | Callable[[Axes], TensorLike] | None = None,
    name: str | None = None,
    tags: Tags = (),
    follows: Follows = (),
    initializers: Sequence[Op] = (),
) -> Leaf:
    """Return a variable that is stored in checkpoints, but not trainable."""
    return variable(
        axes,
        dtype,
        initial_value=initial_value,
        trainable=False,
        persistent=True,
        name=name,
        tags=tags,
        follows=follows,
        initializers=initializers,
    )


@public
def temporary_tensor(
    axes: NewAxes | None = None,
    dtype: DTypeLike | None = None,
    *,
    initial_value: TensorLike | Callable[[Axes], TensorLike] | None = None,
    name: str | None = None,
    tags: Tags = (),
    follows: Follows = (),
    initializers: Sequence[Op] = (),
) -> Leaf:
    """Return a variable that is stored between calls, but not in checkpoints, and not trainable."""
    return variable(
        axes,
        dtype,
        initial_value=initial_value,
        trainable=False,
        persistent=False,
        name=name,
        tags=tags,
        follows=follows,
        initializers=initializers,
    )


def _foreign(value: Any, axes: Any) -> Any:
    """Return another library's array as a NumPy array, unless it is labelled."""
    if dim_names(value) is not None:
        return value
    over = "" if axes is None else f" over {as_axes(axes)}"
    return array_of(value, f"the initial value of a variable{over}", DTypeError)


def _summary(value: Any) -> str:
    """Return a short description of a value for messages."""
    shape = getattr(value, "shape", None)
    if shape is None or isinstance(value, Tensor):
        return repr(value)
    return f"a {type(value).__name__} of shape {tuple(shape)}"


def _initial_tensor(value: Any, axes: Any, dtype: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if dtype is None and isinstance(value, (list, tuple)):
        dtype = "float32"  # Python numbers are weak in a list too
    try:
        array, _ = to_array(value, dtype)
    except DTypeError as error:
        place = describe(user_site())
        raise DTypeError(f"the initial value of a variable at {place}: {error}") from None
    if array.ndim == 0:
        return constant(value) if dtype is None else constant(value, dtype=dtype)
    return constant(array, axes)


def _default_dtype(given: Any, first: Any) -> Any:
    if isinstance(first, Tensor) and not first.weak and isinstance(given, (Tensor, np.ndarray)):
        return first.dtype
    return as_dtype("float32")


def _fitted(first: Tensor, axes: Axes, dtype: Any) -> Tensor:
    if not first.weak and _kind(first.dtype) != _kind(dtype):
        raise DTypeError(
            f"the initial value {first} (made at {first.line_info}) is {first.dtype.name}, the "
            f"variable {dtype.name}; geon.cast it or give the variable that dtype"
        )
    return broadcast(strengthen(first, dtype), axes)


def _kind(dtype: Any) -> str:
    """Return the kind of a dtype: "f" for all floats; signed and unsigned integers differ."""
    own: str = dtype.kind
    return "f" if kind(dtype) == "f" else own  # NumPy has no kind for bfloat16


@public
def iota(axis: Axis, dtype: DTypeLike = "int64", **notes: Unpack[OpKeywords]) -> Tensor:
    """Return 0, 1, 2, ... along ``axis``, over just that axis."""
    let_xarray_defer()
    return make(IOTA, (), (new_axis(axis, "iota"), as_dtype(dtype).name))


def length_value(length: int | Length) -> Tensor:
    """Return a length as a weak integer scalar."""
    if isinstance(length, int):
        return number(length, INT64, weak=True)
    return make(LENGTH, (), (length,), weak=True)


LENGTH_VALUE["value"] = length_value
