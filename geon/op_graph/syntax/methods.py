"""Methods of tensors for chained calls; each calls the function of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.argument_hints import explained
from .operators import LATE_BOUND

if TYPE_CHECKING:
    from ..axes.axes import Axes, Axis
    from ..axes.lengths import Length
    from ..building.typing import AxesLike, AxisLike, DTypeLike, TensorLike
    from ..op_graph import Tensor


class TensorMethods:
    """What ``x.sum(A)`` and its kin mean: ``geon.sum(x, A)``."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int | Length, ...]:
        """The lengths of its axes, in order: integers, or expressions over open names."""
        axes: Axes = self.axes  # type: ignore[attr-defined]  # the mixin is a Tensor
        return axes.lengths

    @explained
    def sum(self, reduction_axes: AxesLike | None = None, *, out_axes: AxesLike | None = None,
            name: str | None = None) -> Tensor:  # fmt: skip
        """``geon.sum`` of it."""
        return _built("sum", self, reduction_axes, out_axes=out_axes, name=name)

    @explained
    def mean(self, reduction_axes: AxesLike | None = None, *, out_axes: AxesLike | None = None,
             name: str | None = None) -> Tensor:  # fmt: skip
        """``geon.mean`` of it."""
        return _built("mean", self, reduction_axes, out_axes=out_axes, name=name)

    @explained
    def max(self, reduction_axes: AxesLike | None = None, *, out_axes: AxesLike | None = None,
            name: str | None = None) -> Tensor:  # fmt: skip
        """``geon.max`` of it."""
        return _built("max", self, reduction_axes, out_axes=out_axes, name=name)

    @explained
    def min(self, reduction_axes: AxesLike | None = None, *, out_axes: AxesLike | None = None,
            name: str | None = None) -> Tensor:  # fmt: skip
        """``geon.min`` of it."""
        return _built("min", self, reduction_axes, out_axes=out_axes, name=name)

    @explained
    def dot(self, y: TensorLike, over: AxesLike | None = None, *,
            name: str | None = None) -> Tensor:  # fmt: skip
        """``geon.dot`` of it and ``y``."""
        return _built("dot", self, y, over, name=name)

    @explained
    def cast(self, dtype: DTypeLike, *, name: str | None = None) -> Tensor:
        """``geon.cast`` of it."""
        return _built("cast", self, dtype, name=name)

    @explained
    def rename(self, names: Mapping[AxisLike, Axis | str], *, name: str | None = None) -> Tensor:
        """``geon.rename`` of it."""
        return _built("rename", self, names, name=name)

    @explained
    def reorder(self, axes: AxesLike, *, name: str | None = None) -> Tensor:
        """``geon.reorder`` of it."""
        return _built("reorder", self, axes, name=name)

    @explained
    def broadcast(self, axes: AxesLike, *, name: str | None = None) -> Tensor:
        """``geon.broadcast`` of it."""
        return _built("broadcast", self, axes, name=name)

    @explained
    def deriv(self, x: Any, *, seed: TensorLike | None = None, unreached: str = "raise") -> Any:
        """``geon.deriv`` of it with respect to ``x``."""
        return LATE_BOUND["deriv"](self, x, seed=seed, unreached=unreached)


def _built(function: str, /, *args: Any, **options: Any) -> Tensor:
    made: Tensor = LATE_BOUND[function](*args, **options)
    return made
