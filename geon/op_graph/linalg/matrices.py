"""Matrices over two named axes: attributes, checks of arguments, and layouts for references."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.affine import Size
from ..axes.axes import Axes, Axis
from ..axes.lengths import Length
from ..building.constants import as_tensor
from ..building.elementwise_build import meet
from ..building.resolve_axes import has_axes, own_axis
from ..building.weak import strengthen
from ..core.primitive import Inferred
from ..core.source_info import user_call
from ..op_graph import Guard, Op, Tensor
from ..rows.elementwise import cast, equal, greater, greater_equal, where
from ..rows.leaves import iota
from ..rows.movement import broadcast, cast_axes
from ..rows.slicing import _slice
from ..values.attribute_types import Flag, Name
from ..values.dtypes import FLOAT32, kind, name_of

if TYPE_CHECKING:
    from ..building.typing import AxesLike, TensorLike

Array = np.ndarray[Any, Any]
PRECISIONS = ("float32", "float64")  # the dtypes of LAPACK that geon has


class MatrixAttributes(NamedTuple):
    """The names of the axes of rows and columns.

    If ``certain``, a matrix without factors is no error: its result is NaN. So it is in lowered
    programs, where a separate op checks the result.
    """

    rows: Name
    columns: Name
    certain: Flag


# Arguments ----------------------------------------------------------------------------------------


def matrix(what: str, x: TensorLike, axes: AxesLike) -> tuple[Tensor, Axis, Axis]:
    """Return ``x`` as floats, and the axes of its rows and columns, which ``axes`` names.

    Integers become float32. Raises ``ArgumentError`` unless ``axes`` are two, ``AxisError`` for one
    that x lacks, and ``DTypeError`` for halves.
    """
    here, tensor = user_call(what), as_tensor(x)
    listed: Any = [axes] if isinstance(axes, (Axis, str)) else axes
    if not isinstance(listed, (list, tuple, Axes)) or len(listed) != 2:
        raise ArgumentError(
            f"{here}: axes={axes!r}: give the two axes of the matrix in {tensor} (made at "
            f"{tensor.line_info}), first that of its rows, then that of its columns"
        )
    rows, columns = (own_axis(tensor, each, what) for each in listed)
    if rows.name == columns.name:
        raise AxisError(
            f"{here}: {rows.name!r} is given as the axis of the rows and of the columns of "
            f"{tensor} (made at {tensor.line_info}); geon.rename gives one of them another name, "
            f"such as {rows.name}.prime"
        )
    return in_precision(here, tensor), rows, columns


def in_precision(here: str, x: Tensor) -> Tensor:
    """Return ``x`` in float32 or float64; integers become float32, halves raise ``DTypeError``."""
    if kind(x.dtype) in "ib":
        return cast(x, FLOAT32)
    if name_of(x.dtype) not in PRECISIONS:
        raise DTypeError(
            f"{here}: {x} (made at {x.line_info}) is {x.dtype.name}, in which matrices are not "
            "factorised; geon.cast it to float32, and the result back"
        )
    return strengthen(x, x.dtype)


def matrix_lengths(what: str, x: Op, rows: str, columns: str) -> tuple[Size, Size]:
    """Return the lengths of the axes of rows and columns; raise ``AxisError`` unless x has both."""
    has_axes(x, (rows, columns), what)
    if rows == columns:
        raise AxisError(
            f"{user_call(what)}: {rows!r} is the axis of the rows and of the columns of {x} "
            f"(made at {x.line_info}); give two axes"
        )
    return x.axes[rows].expression, x.axes[columns].expression


def square_guards(what: str, x: Op, rows: str, columns: str) -> tuple[Guard, ...]:
    """Return the guards that make a matrix square; raise ``AxisError`` if it is not."""
    m, n = matrix_lengths(what, x, rows, columns)
    if m == n:
        return ()
    meaning = (
        f"{user_call(what)}: the matrix over ({rows}, {columns}) in {x} (made at {x.line_info}) "
        f"has {m} rows and {n} columns; give a square one"
    )
    if not isinstance(m - n, Length):
        raise AxisError(meaning)
    return (Guard("==", m, n, meaning),)


def tall_guards(what: str, x: Op, rows: str, columns: str) -> tuple[Guard, ...]:
    """Return the guards by which a matrix has as many rows as columns at least.

    Raises ``AxisError`` if it has fewer.
    """
    m, n = matrix_lengths(what, x, rows, columns)
    short = n - m
    if isinstance(short, int) and short <= 0:
        return ()
    meaning = (
        f"{user_call(what)}: the matrix over ({rows}, {columns}) in {x} (made at {x.line_info}) "
        f"has {m} rows and {n} columns; it needs as many rows as columns: exchange the axes, which "
        "means the transpose, give them known lengths, or give wide=True"
    )
    if isinstance(short, int):
        raise AxisError(meaning)
    return (Guard("<=", n, m, meaning),)


def same_axes_guards(what: str, x: Op, a: Op, longer: str | None = None) -> list[Guard]:
    """Return the guards by which ``x`` is over the axes of ``a``, in any order.

    The axis ``longer``, if given, is one longer in ``x``. Raises ``AxisError`` if they differ.
    """
    if sorted(x.axes.names) != sorted(a.axes.names):
        raise AxisError(
            f"{user_call(what)}: {x} (made at {x.line_info}) is over other axes than {a} (made at "
            f"{a.line_info}); give it the same"
        )
    guards: list[Guard] = []
    for axis in a.axes:
        length = axis.expression + (axis.name == longer)
        guards += meet(what, axis.name, (x.axes[axis.name].expression, x), (length, a))
    return guards


def is_wide(what: str, x: Tensor, rows: Axis, columns: Axis, wide: bool | None) -> bool:
    """Return True for a matrix with fewer rows than columns, or one that the user calls ``wide``.

    Raises ``ArgumentError`` unless ``wide`` is a bool or None, and ``AxisError`` for known lengths
    that it contradicts.
    """
    m, n = rows.expression, columns.expression
    more = n - m
    here = f"{user_call(what)}: the matrix over ({rows.name}, {columns.name}) in {x} (made at"
    if not (wide is None or isinstance(wide, bool)):
        raise ArgumentError(f"{user_call(what)}: wide={wide!r}; give True, False or None")
    if not isinstance(more, int) or wide is None:
        return bool(wide) or (isinstance(more, int) and more > 0)
    if more < 0 and wide:
        raise AxisError(
            f"{here} {x.line_info}) has {m} rows and {n} columns; wide=True needs as many columns "
            "as rows: leave it out"
        )
    return wide


def columns_of_wide(
    what: str, x: Tensor, rows: Axis, columns: Axis, start: int | Length, stop: int | Length
) -> Tensor:
    """Return a range of the columns of a matrix that must have as many as rows."""
    m, n = rows.expression, columns.expression
    meaning = (
        f"{user_call(what)}: the matrix over ({rows.name}, {columns.name}) in {x} (made at "
        f"{x.line_info}) has {m} rows and {n} columns; wide=True needs as many columns as rows: "
        "leave it out for other matrices"
    )
    guards = (Guard("<=", m, n, meaning),) if isinstance(n - m, Length) else ()
    items = tuple([("range", start, stop, 1) if a is columns else None for a in x.axes])
    return _slice(x, items, (), guards)


def require_precision(what: str, args: Iterable[Op]) -> None:
    """Raise ``DTypeError`` unless all arguments have one dtype of ``PRECISIONS``."""
    operands = list(args)
    for arg in operands:
        if name_of(arg.dtype) not in PRECISIONS or arg.dtype is not operands[0].dtype:
            raise DTypeError(
                f"{what} of {arg} (made at {arg.line_info}), which is {arg.dtype.name}; all "
                "operands must be float32, or all float64"
            )


def square_infer(what: str, extra_rows: int = 0) -> Callable[[tuple[Any, ...], Any], Inferred]:
    """Return the inference of a factorisation of square matrices.

    Its result has ``extra_rows`` more rows.
    """

    def infer(args: tuple[Any, ...], attrs: MatrixAttributes) -> Inferred:
        x = args[0]
        guards = square_guards(what, x, attrs.rows, attrs.columns)
        require_precision(what, args)
        axes = x.axes
        if extra_rows:
            longer = x.axes[attrs.rows].expression + extra_rows
            axes = Axes([a.with_length(longer) if a.name == attrs.rows else a for a in axes])
        return axes, x.dtype, guards

    return infer


# References ---------------------------------------------------------------------------------------


def rows_last(x: Array, axes: Axes, *names: str) -> Array:
    """Return an array over ``axes`` with the named ones last, in this order."""
    kept = [k for k, name in enumerate(axes.names) if name not in names]
    return x.transpose([*kept, *(axes.index(name) for name in names)])


def in_place_of(value: Array, axes: Axes, *names: str) -> Array:
    """Return an array whose last dimensions are ``names`` as an array over ``axes``."""
    order = [*(name for name in axes.names if name not in names), *names]
    return value.transpose([order.index(name) for name in axes.names])


def each_matrix(function: Callable[..., Array], shape: tuple[int, ...], *arrays: Array) -> Array:
    """Return ``function`` of each matrix, of this shape; NaN where it raises ``LinAlgError``.

    The leading dimensions of all ``arrays`` are the same, behind which each has two.
    """
    batch = arrays[0].shape[:-2]
    out = np.empty((*batch, *shape), arrays[0].dtype)
    for at in np.ndindex(batch):
        try:
            out[at] = function(*[array[at] for array in arrays])
        except np.linalg.LinAlgError:
            out[at] = np.nan
    return out


# Parts of matrices --------------------------------------------------------------------------------


def fresh(axis: Axis, *used: Axes) -> Axis:
    """Return ``axis`` with primes added to its name until none of ``used`` has it."""
    while any(axis in axes for axes in used):
        axis = axis.prime
    return axis


def renamed(x: Tensor, names: dict[str, str]) -> Tensor:
    """Return ``x`` with axes renamed at once, so that two may change places."""
    return cast_axes(x, Axes([a.named(names.get(a.name, a.name)) for a in x.axes]))


def innermost(x: Tensor, *names: str) -> Tensor:
    """Return ``x`` with the named axes innermost, in this order, and the others before them."""
    return broadcast(x, Axes(x.axes.without(names), [x.axes[name] for name in names]))


def transposed(x: Tensor, rows: str, columns: str) -> Tensor:
    """Return the transpose of a square matrix, with its axes in the order of ``x``."""
    return broadcast(renamed(x, {rows: columns, columns: rows}), x.axes)


def lower_part(x: Tensor, rows: str, columns: str, strictly: bool = False) -> Tensor:
    """Return ``x`` with 0 above the diagonal; ``strictly`` on it too."""
    holds = greater if strictly else greater_equal
    kept = holds.apply(iota(x.axes[rows]), iota(x.axes[columns]))
    return broadcast(where.apply(kept, x, 0), x.axes)


def upper_part(x: Tensor, rows: str, columns: str, strictly: bool = False) -> Tensor:
    """Return ``x`` with 0 below the diagonal; ``strictly`` on it too."""
    return lower_part(x, columns, rows, strictly)


def identity_matrix(rows: Axis, columns: Axis, dtype: Any) -> Tensor:
    """Return the identity matrix over two axes."""
    return cast(equal.apply(iota(rows), iota(columns)), dtype)
