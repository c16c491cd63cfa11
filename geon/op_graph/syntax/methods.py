"""Methods of tensors for chained calls; each calls the function of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from ..core.argument_hints import differentiates, public
from .operators import LATE_BOUND

if TYPE_CHECKING:
    from ..axes.axes import Axes, Axis
    from ..axes.lengths import Length
    from ..building.typing import AxesLike, AxisLike, DTypeLike, Named, TensorLike
    from ..op_graph import Tensor


class TensorMethods:
    """Methods of tensors: ``x.sum(A)`` is ``geon.sum(x, A)``, and so on."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int | Length, ...]:
        """The lengths of its axes, in order: integers, or expressions over open names."""
        axes: Axes = self.axes  # type: ignore[attr-defined]  # the mixin is a Tensor
        return axes.lengths

    @public
    def sum(
        self,
        reduction_axes: AxesLike | None = None,
        *,
        out_axes: AxesLike | None = None,
        **notes: Unpack[Named],
    ) -> Tensor:
        """Return ``geon.sum`` of the tensor."""
        return _built("sum", self, reduction_axes, out_axes=out_axes)

    @public
    def mean(
        self,
        reduction_axes: AxesLike | None = None,
        *,
        out_axes: AxesLike | None = None,
        **notes: Unpack[Named],
    ) -> Tensor:
        """Return ``geon.mean`` of the tensor."""
        return _built("mean", self, reduction_axes, out_axes=out_axes)

    @public
    def max(
        self,
        reduction_axes: AxesLike | None = None,
        *,
        out_axes: AxesLike | None = None,
        **notes: Unpack[Named],
    ) -> Tensor:
        """Return ``geon.max`` of the tensor."""
        return _built("max", self, reduction_axes, out_axes=out_axes)

    @public
    def min(
        self,
        reduction_axes: AxesLike | None = None,
        *,
        out_axes: AxesLike | None = None,
        **notes: Unpack[Named],
    ) -> Tensor:
        """Return ``geon.min`` of the tensor."""
        return _built("min", self, reduction_axes, out_axes=out_axes)

    @public
    def dot(self, y: TensorLike, over: AxesLike | None = None, **notes: Unpack[Named]) -> Tensor:
        """Return ``geon.dot`` of the tensor and ``y``."""
        return _built("dot", self, y, over)

    @public
    def cast(self, dtype: DTypeLike, **notes: Unpack[Named]) -> Tensor:
        """Return ``geon.cast`` of the tensor."""
        return _built("cast", self, dtype)

    @public
    def rename(self, names: Mapping[AxisLike, Axis | str], **notes: Unpack[Named]) -> Tensor:
        """Return ``geon.rename`` of the tensor."""
        return _built("rename", self, names)

    @public
    def reorder(self, axes: AxesLike, **notes: Unpack[Named]) -> Tensor:
        """Return ``geon.reorder`` of the tensor."""
        return _built("reorder", self, axes)

    @public
    def broadcast(self, axes: AxesLike, **notes: Unpack[Named]) -> Tensor:
        """Return ``geon.broadcast`` of the tensor."""
        return _built("broadcast", self, axes)

    @public
    @differentiates(0, "self")
    def deriv(self, x: Any, *, seed: TensorLike | None = None, unreached: str = "raise") -> Any:
        """Return ``geon.deriv`` of the tensor with respect to ``x``."""
        return LATE_BOUND["deriv"](self, x, seed=seed, unreached=unreached)


def _built(function: str, /, *args: Any, **options: Any) -> Tensor:
    result: Tensor = LATE_BOUND[function](*args, **options)
    return result
