"""Type aliases of the arguments that public functions accept, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, ClassVar, Protocol, SupportsIndex, TypeAlias, TypedDict, Union, Unpack

import numpy as np

from ..axes.axes import Axes, Axis
from ..op_graph import Op, Tensor
from .elementwise_build import Elementwise


class Array(Protocol):
    """An array of another library, or labelled data."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __array__(self) -> Any: ...


class Lent(Protocol):
    """An array that another library lends by DLPack, in any memory."""

    def __dlpack__(self, *args: Any, **keywords: Any) -> Any: ...


class OnDevice(Protocol):
    """An array in the memory of a GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class DataclassInstance(Protocol):
    """A dataclass instance."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Number: TypeAlias = bool | int | float | np.generic
# Nested lists of numbers; a recursive Sequence type would accept strings too.
Nested: TypeAlias = list[Any] | tuple[Any, ...]
# A value in an expression.
TensorLike: TypeAlias = Union[Tensor, Number, "np.ndarray[Any, Any]", Array, Nested]
# The value of a placeholder or a variable.
FeedLike: TypeAlias = Union[Number, "np.ndarray[Any, Any]", Array, Lent, OnDevice, Nested]
# The results of a computation: ops in any structure.
Results: TypeAlias = Op | list[Any] | tuple[Any, ...] | Mapping[Any, Any] | DataclassInstance
# The index in x[...]; keys of a mapping are axes or their names.
Place: TypeAlias = SupportsIndex | slice | Tensor | EllipsisType
At: TypeAlias = Place | tuple[Place, ...] | Mapping[Any, SupportsIndex | slice | Tensor]
# An axis of a tensor, or its name.
AxisLike: TypeAlias = Axis | str
AxesLike: TypeAlias = Axes | Axis | str | Sequence[Axis | Axes | str]
# New axes: names alone are not accepted, because no tensor gives them a length.
NewAxes: TypeAlias = Axes | Axis | Sequence[Axis | Axes]
# Integers for open axes or their names.
Lengths: TypeAlias = Mapping[Axis, int] | Mapping[str, int] | Mapping[Axis | str, int]
DTypeLike: TypeAlias = Union[str, type, "np.dtype[Any]"]
Tags: TypeAlias = str | Sequence[str] | set[str] | frozenset[str]
Follows: TypeAlias = Op | Sequence[Op]


class Named(TypedDict, total=False):
    """The keyword that ``public`` takes for a function that returns a tensor: its name."""

    name: str | None


class OpKeywords(Named, total=False):
    """The keywords that ``public`` takes for a function that returns a new op."""

    tags: Tags
    follows: Follows


class Unary(Elementwise):
    """A primitive of one operand."""

    def __call__(  # type: ignore[override, empty-body]  # it takes just so many
        self,
        x: TensorLike,
        /,
        *,
        axes: AxesLike | None = None,
        **notes: Unpack[OpKeywords],
    ) -> Tensor: ...


class Binary(Elementwise):
    """A primitive of two operands."""

    def __call__(  # type: ignore[override, empty-body]  # it takes just so many
        self,
        x: TensorLike,
        y: TensorLike,
        /,
        *,
        axes: AxesLike | None = None,
        **notes: Unpack[OpKeywords],
    ) -> Tensor: ...


class Ternary(Elementwise):
    """A primitive of three operands."""

    def __call__(  # type: ignore[override, empty-body]  # it takes just so many
        self,
        x: TensorLike,
        y: TensorLike,
        z: TensorLike,
        /,
        *,
        axes: AxesLike | None = None,
        **notes: Unpack[OpKeywords],
    ) -> Tensor: ...
