"""What public functions accept, as types: a type checker tells wrong lines from right ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, Union

import numpy as np

from .axes import Axes, Axis
from .op_graph import Op, Tensor


class Array(Protocol):
    """An array of another library, or labelled data."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __array__(self) -> Any: ...


Number: TypeAlias = bool | int | float | np.generic
Nested: TypeAlias = Sequence[Union[Number, "Nested"]]
# A value in an expression.
TensorLike: TypeAlias = Union[Tensor, Number, "np.ndarray[Any, Any]", Array, Nested]
# An axis of a tensor, or its name.
AxisLike: TypeAlias = Axis | str
AxesLike: TypeAlias = Axes | Axis | str | Sequence[Axis | Axes | str]
# Axes where no tensor can tell what a name means.
NewAxes: TypeAlias = Axes | Axis | Sequence[Axis | Axes]
DTypeLike: TypeAlias = Union[str, type, "np.dtype[Any]"]
Tags: TypeAlias = str | Sequence[str] | set[str] | frozenset[str]
Follows: TypeAlias = Op | Sequence[Op]
