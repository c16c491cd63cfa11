"""Elementwise functions of operands that are aligned from the right."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import geon

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.lengths import may_equal
from .folding import fold
from .values import Dim, PositionalArray, Size, Value, array, as_array, fresh, new_axis, renamed


def functions_of(names: str) -> dict[str, Callable[..., Any]]:
    """Return functions of geon by name; ``abs:absolute`` is one that has another name in geon."""
    pairs = [name.partition(":") for name in names.split()]
    return {name: getattr(geon, own or name) for name, _, own in pairs}


# Functions of one tensor that PyTorch, JAX and ONNX (with a capital letter) call as geon does.
COMMON = functions_of(
    "acos acosh asin asinh atan atanh ceil cos cosh erf exp floor log sign sin sinh sqrt tan tanh"
)
# Functions that PyTorch and JAX call alike: of one tensor, of two, and comparisons.
ALIKE = COMMON | functions_of("abs:absolute digamma erfc expm1 lgamma log1p neg:negative rsqrt")
ARITHMETIC = functions_of("add sub:subtract mul:multiply")
COMPARISONS = functions_of(
    "eq:equal ne:not_equal lt:less le:less_equal gt:greater ge:greater_equal"
)
# Operators of ONNX that are one primitive of geon. The exporter writes those whose kernels lack a
# dtype by formulas.
ONNX_PRIMITIVES = {name.capitalize(): f for name, f in COMMON.items()} | functions_of(
    """
    Abs:absolute Add:add And:logical_and BitwiseAnd:bitwise_and BitwiseNot:bitwise_not
    BitwiseOr:bitwise_or BitwiseXor:bitwise_xor Div:divide Equal:equal Greater:greater
    GreaterOrEqual:greater_equal IsNaN:isnan Less:less LessOrEqual:less_equal Max:maximum
    Min:minimum Mul:multiply Neg:negative Not:logical_not Or:logical_or Reciprocal:reciprocal
    Round:round Sub:subtract Where:where Xor:logical_xor
    """
)


def elementwise(f: Callable[..., Any], *values: Value) -> Value:
    """Return ``f`` of the elements of operands that are broadcast by position.

    A length of 1 stretches. An open length is taken to be no 1: it must equal the other one, which
    is checked when data come. Raises ``AxisError`` for lengths that cannot be equal.
    """
    folded = fold(f.__name__, values)
    if folded is not None:
        return folded
    arrays = aligned(values)
    tensors = connected([value.tensor for value in arrays])
    return array(f(*tensors), dims_of(arrays))


def mapped(f: Callable[..., Any]) -> Callable[..., Value]:
    """Return the function of operands and options that is ``f`` of their elements."""

    def build(*operands: Value, **options: Any) -> Value:
        return elementwise((lambda *t: f(*t, **options)) if options else f, *operands)

    return build


def aligned(values: Sequence[Value]) -> list[PositionalArray]:
    """Return operands of one rank, whose axes have equal names exactly where positions agree.

    Names come from the first operand that has an axis at the position. Operands of smaller rank get
    positions of length 1 in front.
    """
    rank = max([len(value.shape) for value in values])
    # Tensors name the axes; constants and parameters take their names.
    first = [as_array(v) for v in values if isinstance(v, PositionalArray)]
    like = dims_of([_widened(value, rank) for value in first])
    arrays = [_widened(as_array(value, like), rank) for value in values]
    names = common_names(arrays)
    return [renamed(value, _own(value, names)) for value in arrays]


def dims_of(arrays: Sequence[PositionalArray]) -> tuple[Dim, ...]:
    """Return the axis at each position of operands of one rank: the first one that is there."""
    if not arrays:
        return ()
    columns = zip(*[value.dims for value in arrays], strict=True)
    return tuple([next((d for d in column if d is not None), None) for column in columns])


def connected(tensors: list[geon.Tensor]) -> list[geon.Tensor]:
    """Return the operands of an elementwise function, the first repeated if two share no axis."""
    ranked = [tensor for tensor in tensors if tensor.axes]
    pairs = zip(ranked[:-1], ranked[1:], strict=True)
    if all(set(a.axes.names) & set(b.axes.names) for a, b in pairs):
        return tensors
    axes: dict[str, geon.Axis] = {}
    for tensor in tensors:
        axes.update({axis.name: axis for axis in tensor.axes if axis.name not in axes})
    return [
        geon.broadcast(tensor, list(axes.values())) if tensor.axes else tensor for tensor in tensors
    ]


def _widened(value: PositionalArray, rank: int) -> PositionalArray:
    missing = rank - len(value.dims)
    return PositionalArray(value.tensor, (None,) * missing + value.dims) if missing else value


def _own(value: PositionalArray, names: Sequence[str | None]) -> list[str | None]:
    return [None if d is None else n for d, n in zip(value.dims, names, strict=True)]


def common_names(arrays: Sequence[PositionalArray]) -> list[str | None]:
    """Return one name for each position of arrays of one rank, all different.

    None stands for a length of 1 in all of them. Raises ``AxisError`` where lengths differ.
    """
    columns = list(zip(*[value.dims for value in arrays], strict=True))
    for number, column in enumerate(columns):
        dims = [dim for dim in column if dim is not None]
        for dim in dims[1:]:
            if not may_equal(dims[0].expression, dim.expression):
                raise AxisError(
                    f"dimension {number} is {dims[0].expression} in one operand and "
                    f"{dim.expression} in another: {', '.join(map(str, arrays))}; lengths must be "
                    "equal or 1"
                )
    names: list[str | None] = [None] * len(columns)
    for value in arrays:
        for number, dim in enumerate(value.dims):
            if dim is not None and names[number] is None:
                names[number] = fresh(dim.name, [name for name in names if name is not None])
    return names


def expand(value: Value, shape: Sequence[Size]) -> PositionalArray:
    """Return a value broadcast, in both directions, with a shape."""
    rank = max(len(value.shape), len(shape))
    given = _widened(as_array(value), rank)
    target: list[Size] = [*[1] * (rank - len(shape)), *shape]
    taken = [dim.name for dim in given.dims if dim is not None]
    dims: list[Dim] = []
    added: list[geon.Axis] = []
    for number, (dim, length) in enumerate(zip(given.dims, target, strict=True)):
        if dim is None and length != 1:
            dim = new_axis(length, f"d{number}", taken)
            taken.append(dim.name)
            added.append(dim)
        elif dim is not None and length != 1 and not may_equal(dim.expression, length):
            raise AxisError(
                f"dimension {number} of {given} is to become {length}; only a length of 1 stretches"
            )
        dims.append(dim)
    if not added:
        return given
    tensor = geon.broadcast(given.tensor, [*given.tensor.axes, *added])
    return array(tensor, dims)


def chain(f: Callable[..., Any], values: Sequence[Value]) -> Value:
    """Return ``f`` of two operands applied from left to right to one or more."""
    if not values:
        raise ArgumentError("there are no values to put together; give one or more")
    return functools.reduce(lambda x, y: elementwise(f, x, y), values)
