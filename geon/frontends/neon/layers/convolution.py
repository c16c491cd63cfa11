"""Layers with windows: ``Convolution``, ``Deconvolution`` and ``Pooling``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....errors import ArgumentError
from ....op_graph.axes.axes import Axes, Axis, as_axes, new_axis
from ....op_graph.building.resolve_axes import by_own_axis
from ....op_graph.functions.convolutions import convolution, transposed_convolution
from ....op_graph.functions.pooling import average_pool, lp_pool, max_pool
from ....op_graph.op_graph import Leaf, Tensor
from ....op_graph.rows.windows import Window, check_windows
from ..activations import identity
from ..axis import channel_axes
from ..checks import a_function
from .axes import made_apart, resolve_over
from .layer import Layer, Training, parameter_dtype
from .linear import make_bias

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....op_graph.axes.lengths import Length
    from ....op_graph.building.typing import AxesLike, AxisLike, NewAxes
    from ..initialisers import First

    Own = Window | Axis | int
    Windows = Mapping[Axis, Own] | Mapping[str, Own] | Mapping[Axis | str, Own]


class Convolution(Layer):
    """Convolution with filters ``w``: ``Convolution({H: 3, W: Window(3, pad="same")}, K, init)``.

    It sums over the positions in a window and over ``over``, or all axes without windows but N, T,
    D, H and W. Axes ``apart``, such as groups, have filters of their own and stay; with
    ``axes=[]``, each channel is filtered separately. The filters are over positions, ``apart``, the
    summed axes, then ``axes``. With ``bias``, a bias ``b`` over ``apart`` and ``axes`` is added,
    then the activation is applied.
    """

    def __init__(
        self,
        windows: Windows,
        axes: NewAxes,
        init: First,
        bias: First | None = None,
        activation: Callable[[Tensor], Tensor] = identity,
        *,
        over: AxesLike | None = None,
        apart: AxesLike = (),
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        check_windows(windows, type(self).__name__)
        self.windows: dict[Any, Any] = dict(windows)
        self.axes, self.init = as_axes(axes), init
        a_function(type(self).__name__, "activation", activation)
        self.bias, self.activation, self.over, self.apart = bias, activation, over, apart

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """The filtered windows of ``x``: its remaining axes, then the layer's."""
        windows = {
            name: _named(name, w) for name, w in by_own_axis(x, self.windows, repr(self)).items()
        }
        apart = resolve_over(x, self.apart, Axes(), repr(self))
        channels = channel_axes(x.axes).without(windows).without(apart)
        over = (
            resolve_over(x, self.over, channels, repr(self))
            if len(channels) or self.over
            else Axes()
        )
        x, over = made_apart(x, over, self.axes, repr(self))
        positions = as_axes([_own(window) for window in windows.values()])
        w = self.variable(
            "w",
            Axes(positions, apart, over, self.axes),
            self.init,
            inputs=Axes(positions, over),
            outputs=Axes(positions, self.axes),
            dtype=parameter_dtype(x),
        )
        y = self.result(x, w, windows, over)
        if self.bias is not None:
            y = y + make_bias(self, y, Axes(apart, self.axes), self.bias)
        return self.activation(y)

    def result(self, x: Tensor, w: Leaf, windows: Mapping[Any, Window], over: Axes) -> Tensor:
        """Return the convolution of ``x`` with the filters."""
        return convolution(x, w, windows, over)


class Deconvolution(Convolution):
    """Transposed convolution: the derivative of a convolution with these windows, as a layer.

    Arguments are those of ``Convolution``. With a stride, several lengths have the same number of
    windows; ``lengths`` selects one of them, by default the smallest.
    """

    def __init__(
        self,
        windows: Windows,
        axes: NewAxes,
        init: First,
        bias: First | None = None,
        activation: Callable[[Tensor], Tensor] = identity,
        *,
        over: AxesLike | None = None,
        apart: AxesLike = (),
        lengths: Mapping[AxisLike, int | Length] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(windows, axes, init, bias, activation, over=over, apart=apart, name=name)
        self.lengths = lengths

    def result(self, x: Tensor, w: Leaf, windows: Mapping[Any, Window], over: Axes) -> Tensor:
        """Return the transposed convolution of ``x`` with the filters."""
        return transposed_convolution(x, w, windows, over, lengths=self.lengths)


class Pooling(Layer):
    """The maximum, the mean or the ``p``-norm of each window: ``Pooling({H: 2, W: 2})``.

    ``kind`` is "max", "average" or "norm". An integer stands for adjacent windows that do not
    overlap. ``count_pad`` counts padding in a mean.
    """

    def __init__(
        self,
        windows: Windows,
        kind: str = "max",
        *,
        count_pad: bool = False,
        p: float = 2,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        check_windows(windows, "Pooling")
        if kind not in ("max", "average", "norm"):
            raise ArgumentError(
                f"Pooling: there is no kind={kind!r}; give 'max', 'average' or 'norm'"
            )
        self.windows: dict[Any, Any] = {
            axis: Window(window, stride=window) if isinstance(window, int) else window
            for axis, window in windows.items()
        }
        self.kind, self.count_pad, self.p = kind, count_pad, p

    def forward(self, x: Tensor, training: Training | None = None) -> Tensor:
        """A value for each window of ``x``."""
        if self.kind == "max":
            return max_pool(x, self.windows)
        if self.kind == "average":
            return average_pool(x, self.windows, count_pad=self.count_pad)
        return lp_pool(x, self.windows, self.p)


def _named(axis: str, window: Any) -> Window:
    """Return a window along an axis, with an axis for the positions inside."""
    given = window if isinstance(window, Window) else Window(window)
    if not isinstance(given.axis, int):
        return given
    own = Axis(f"{axis}.window", given.axis)
    return Window(own, given.stride, given.dilation, given.pad, given.ceil)


def _own(window: Window) -> Axis:
    """Return the axis of the positions inside a window."""
    return new_axis(window.axis, "Convolution")
