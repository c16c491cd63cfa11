"""``Handler``: arrays, and the operations on them, of the layers and modifiers of users.

The last letters of a name say what the arguments are: s a number, v a vector (a matrix with one row
or one column), m a matrix, t an array of any shape. Results are written into ``out``, which may be
one of the arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

import geon

from ....errors import ArgumentError
from ..describable import Describable
from ..errors import ValidationError
from ..randomness import RandomState
from .device_copies import DeviceCopies
from .operations import ACTIVATIONS, ELEMENTWISE, NUMBERS, convolve, deriv_of, pool

LETTERS = "abcdefghijklmnopqrstuvwxyz"  # names of axes, in order


def _pooling(kind: str, text: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the methods for the forward and the backward pass of a kind of pooling."""

    def forward(
        self: Handler, inputs: Any, window: Sequence[int], outputs: Any, padding: int,
        stride: Sequence[int], argmax: Any = None,
    ) -> None:  # fmt: skip
        key = kind, tuple(window), padding, tuple(stride)
        self._run(key, pool(kind, window, padding, stride), [(inputs, "nhwc")], outputs)

    def backward(
        self: Handler, inputs: Any, window: Sequence[int], outputs: Any, padding: int,
        stride: Sequence[int], argmax: Any, in_deltas: Any, out_deltas: Any,
    ) -> None:  # fmt: skip
        key = kind, "deriv", tuple(window), padding, tuple(stride)
        function = deriv_of(pool(kind, window, padding, stride), 1)
        self._add(key, function, [(inputs, "nhwc"), (out_deltas, "nxyc")], [in_deltas])

    forward.__doc__ = f"Compute the {text}."
    backward.__doc__ = "Add the derivatives by the inputs to their deltas."
    return forward, backward


class Handler(Describable):
    """Arrays and operations of a transformer; the arrays are NumPy's, of one dtype.

    ``rnd`` is the source of random numbers, also of the seeds of layers. ``transformer`` compiles
    operations and passes, each when it is first used; give one to choose its options. If that
    computes on a device, ``on_device`` has the values that passes of layers left there.
    """

    __undescribed__ = {"context": 0, "rnd": None, "array_type": np.ndarray}
    __default_values__ = {"dtype": "float32"}
    transformer_name: ClassVar[str] = "numpy"
    add_tt: Callable[..., None]  # one of the methods that the rows of ELEMENTWISE become

    def __init__(
        self, dtype: Any = "float32", seed: int | None = None, transformer: Any = None
    ) -> None:
        self.dtype = _float_dtype(dtype, type(self).__name__)
        self.__init_from_description__({})
        self.rnd = RandomState(seed)
        self._transformer: Any = transformer

    def __init_from_description__(self, description: dict[str, Any]) -> None:
        self.array_type: type = np.ndarray
        self.rnd = RandomState()
        self._made: dict[Any, Any] = {}
        self._transformer = None
        self.on_device = DeviceCopies(self)
        act, deriv = {"linear": self.copy_to}, {"linear": _linear_deriv(self)}
        for name in ACTIVATIONS:
            act[name], deriv[name] = getattr(self, name), getattr(self, f"{name}_deriv")
        self.act_func, self.act_func_deriv = act, deriv
        self.inplace_act_func = {name: _in_place(function) for name, function in act.items()}
        self.inplace_act_func_deriv = {name: _deriv_in_place(f) for name, f in deriv.items()}

    def __describe__(self) -> dict[str, Any]:
        return {"@type": type(self).__name__, "dtype": self.dtype}

    def __deepcopy__(self, memo: Any) -> Handler:
        return self

    @property
    def transformer(self) -> Any:
        """Return the transformer, which is made when it is first needed."""
        if self._transformer is None:
            self._transformer = geon.make_transformer(self.transformer_name)
        return self._transformer

    def _run(
        self,
        name: Any,
        function: Callable[..., Any],
        arrays: Sequence[tuple[Any, Sequence[Any]]],
        out: Any,
        numbers: Sequence[float] = (),
    ) -> None:
        """Compute a function of tensors over these axes, and of numbers, into an array or several.

        ``name`` with the axes and dtypes is the key of the compiled function.
        """
        key = (name, *[(tuple(map(str, axes)), array.dtype) for array, axes in arrays])
        computation = self._made.get(key)
        if computation is None:
            leaves = [
                geon.placeholder(
                    [geon.Axis(a) if isinstance(a, str) else a for a in axes], array.dtype
                )
                for array, axes in arrays
            ]
            scalars = [geon.placeholder([], self.dtype) for _ in numbers]
            result = function(*leaves, *scalars)
            computation = self.transformer.computation(result, *leaves, *scalars)
            self._made[key] = computation
        computation(*[array for array, _ in arrays], *map(float, numbers), out=out)

    def _add(
        self, name: Any, function: Callable[..., Any], arrays: Sequence[Any], to: Sequence[Any]
    ) -> None:
        """Add the results of a function of tensors over these axes to arrays."""
        found = [np.empty(array.shape, self.dtype) for array, _ in arrays[: len(to)]]
        self._run(name, function, arrays, found)
        for target, value in zip(to, found, strict=True):
            self.add_tt(target, value.reshape(target.shape), target)

    # Memory --------------------------------------------------------------------------------------

    def allocate(self, shape: Sequence[int]) -> Any:
        """Return an array with any values."""
        return np.empty(tuple(shape), self.dtype)

    def ones(self, shape: Sequence[int]) -> Any:
        """Return an array of ones."""
        return np.ones(tuple(shape), self.dtype)

    def zeros(self, shape: Sequence[int]) -> Any:
        """Return an array of zeros."""
        return np.zeros(tuple(shape), self.dtype)

    def create_from_numpy(self, arr: Any) -> Any:
        """Return a copy of a NumPy array, in the handler's dtype."""
        return np.array(arr, self.dtype)

    def get_numpy_copy(self, mem: Any) -> Any:
        """Return a copy as a NumPy array."""
        return np.array(mem, subok=False)

    def set_from_numpy(self, mem: Any, arr: Any) -> None:
        """Set an array to the values of a NumPy array of its shape."""
        if np.shape(arr) != tuple(mem.shape):
            raise ValidationError(
                f"set_from_numpy: the values have the shape {np.shape(arr)} and the array "
                f"{tuple(mem.shape)}; give values of that shape"
            )
        np.copyto(mem, arr, casting="unsafe")

    def copy_to(self, src: Any, dest: Any) -> None:
        """Copy an array to another of its shape, or size."""
        np.copyto(dest, src if src.shape == dest.shape else src.reshape(dest.shape))

    def copy_to_if(self, src: Any, dest: Any, cond: Any) -> None:
        """Copy the elements where ``cond`` is not 0."""
        np.copyto(dest, src, where=cond != 0)

    def fill(self, mem: Any, val: float) -> None:
        """Set all elements to a number."""
        mem.fill(val)

    def fill_if(self, mem: Any, val: float, cond: Any) -> None:
        """Set the elements where ``cond`` is not 0 to a number."""
        np.copyto(mem, val, where=cond != 0)

    def is_fully_finite(self, a: Any) -> bool:
        """Return True if no element is infinite or NaN."""
        return bool(np.isfinite(a).all())

    # Products, sums and indices ------------------------------------------------------------------

    def dot_mm(self, a: Any, b: Any, out: Any, transa: bool = False, transb: bool = False) -> None:
        """Compute the product of matrices, of their transposes where that is said."""
        arrays = [(a, "ka" if transa else "ak"), (b, "bk" if transb else "kb")]
        self._run("dot_mm", lambda a, b: geon.dot(a, b, over="k"), arrays, out)

    def dot_add_mm(
        self, a: Any, b: Any, out: Any, transa: bool = False, transb: bool = False
    ) -> None:
        """Add the product of matrices to ``out``."""
        arrays = [(a, "ka" if transa else "ak"), (b, "bk" if transb else "kb"), (out, "ab")]
        self._run("dot_add_mm", lambda a, b, o: geon.dot(a, b, over="k") + o, arrays, out)

    def sum_t(self, a: Any, axis: int | None, out: Any) -> None:
        """Compute the sum over one dimension, whose length in ``out`` may be 1, or over all."""
        axes = LETTERS[: a.ndim]
        over = list(axes) if axis is None else [axes[axis]]
        target = out.reshape(
            [n for k, n in enumerate(a.shape) if axis is not None and axes[k] not in over]
        )
        self._run(("sum_t", axis), lambda a: geon.sum(a, over), [(a, axes)], target)

    def broadcast_t(self, a: Any, axis: int, out: Any) -> None:
        """Repeat an array with the length 1 in dimension ``axis`` along that."""
        if a.shape[axis] != 1:
            raise ValidationError(
                f"broadcast_t: dimension {axis} of the shape {a.shape} has not the length 1"
            )
        np.copyto(out, a)

    def binarize_v(self, v: Any, out: Any) -> None:
        """Set each row of ``out`` to 0, but to 1 at the index that the column ``v`` has for it."""
        column = geon.Axis("b")

        def onehot(v: Any, out: Any) -> Any:
            index = geon.broadcast(geon.cast(geon.iota(column), self.dtype), out.axes)
            return geon.where(geon.equal(geon.broadcast(v, out.axes), index), 1.0, 0 * out)

        self._run("binarize_v", onehot, [(v[:, 0], "a"), (out, "ab")], out)

    def index_m_by_v(self, m: Any, v: Any, out: Any) -> None:
        """Set each row of the column ``out`` to the element of ``m`` at the index in ``v``."""

        def pick(m: Any, v: Any) -> Any:
            return geon.take_along(m, geon.cast(v, "int64"), "b")

        self._run("index_m_by_v", pick, [(m, "ab"), (v[:, 0], "a")], out[:, 0])

    def merge_tt(self, a: Any, b: Any, out: Any) -> None:
        """Concatenate along the last dimension."""
        np.concatenate([a, b], -1, out=out)

    def split_add_tt(self, x: Any, out_a: Any, out_b: Any) -> None:
        """Add the first part of the last dimension to ``out_a``, the rest to ``out_b``."""
        size = out_a.shape[-1]
        self.add_tt(x[..., :size], out_a, out_a)
        self.add_tt(x[..., size:], out_b, out_b)

    def softmax_m(self, m: Any, out: Any) -> None:
        """Compute the softmax of each row."""
        self._run("softmax_m", lambda m: geon.softmax(m, "b"), [(m, "ab")], out)

    # Images over (N, height, width, channels) ----------------------------------------------------

    def conv2d_forward_batch(
        self, inputs: Any, params: Any, bias: Any, outputs: Any, padding: int, stride: Sequence[int]
    ) -> None:
        """Convolve images with filters (number, height, width, channels), and add the bias."""
        function = convolve(params.shape[1:3], padding, stride)
        key = "conv", params.shape[1:3], padding, tuple(stride)
        arrays = [(inputs, "nhwi"), (params, _filters(params)), (bias.reshape(-1), "c")]
        self._run(key, function, arrays, outputs)

    def conv2d_backward_batch(
        self, inputs: Any, params: Any, padding: int, stride: Sequence[int], in_deltas: Any,
        out_deltas: Any, params_deltas: Any, bias_deltas: Any,
    ) -> None:  # fmt: skip
        """Add the derivatives by inputs, filters and bias to their deltas."""
        function = deriv_of(convolve(params.shape[1:3], padding, stride), 3)
        key = "conv_deriv", params.shape[1:3], padding, tuple(stride)
        bias = np.zeros(params.shape[0], self.dtype)
        given = [(inputs, "nhwi"), (params, _filters(params)), (bias, "c"), (out_deltas, "nxyc")]
        self._add(key, function, given, [in_deltas, params_deltas, bias_deltas])

    maxpool2d_forward_batch, maxpool2d_backward_batch = _pooling(
        "max", "largest element of each window; ``argmax`` is not needed and not set"
    )
    avgpool2d_forward_batch, _avgpool2d_backward = _pooling(
        "avg", "mean of each window, in which padding counts as 0"
    )

    def avgpool2d_backward_batch(
        self, inputs: Any, window: Sequence[int], outputs: Any, padding: int,
        stride: Sequence[int], in_deltas: Any, out_deltas: Any,
    ) -> None:  # fmt: skip
        """Add the derivatives by the inputs to their deltas."""
        self._avgpool2d_backward(
            inputs, window, outputs, padding, stride, None, in_deltas, out_deltas
        )

    # Random numbers ------------------------------------------------------------------------------

    def fill_gaussian(self, mean: float, std: float, out: Any) -> None:
        """Set an array to normal random numbers."""
        np.copyto(out, std * self.rnd.standard_normal(out.shape) + mean, casting="unsafe")

    def generate_probability_mask(self, mask: Any, probability: float) -> None:
        """Set each element to 1 with this probability, else to 0."""
        np.copyto(mask, self.rnd.uniform(size=mask.shape) < probability, casting="unsafe")


def _operation(name: str, text: str, formula: Callable[..., Any]) -> Callable[..., None]:
    """Return the method of a row of ``ELEMENTWISE``."""
    names = list(inspect.signature(formula).parameters)
    result = "y" if name in ACTIVATIONS else "dx" if name.endswith("_deriv") else "out"
    parameters = names if result in names else [*names, result]
    tensors = [n for n in names if n not in NUMBERS and not (result == "dx" and n == "x")]
    numbers = [n for n in names if n in NUMBERS]

    def compute(*values: Any) -> Any:
        given = dict(zip([*tensors, *numbers], values, strict=True))
        return formula(*[given.get(n) for n in names])

    def method(self: Handler, *args: Any, **keywords: Any) -> None:
        given = dict(zip(parameters, args, strict=False)) | keywords
        if given.keys() != set(parameters) or len(args) + len(keywords) != len(parameters):
            raise ArgumentError(f"{name} takes {', '.join(parameters)}")
        axes = LETTERS[: given[result].ndim]
        arrays = [_operand(name, n, given[n], given[result], axes) for n in tensors]
        self._run(name, compute, arrays, given[result], [given[n] for n in numbers])

    method.__name__, method.__doc__ = name, f"Compute {text} into ``{result}``."
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    listed = [inspect.Parameter(n, kind) for n in ("self", *parameters)]
    method.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # for help()
    return method


def _operand(name: str, parameter: str, array: Any, out: Any, axes: str) -> tuple[Any, str]:
    """Return an array and its axes: those of the result, or one of them for a vector."""
    if parameter != "v":
        return array, axes
    if array.shape == (1, out.shape[1]):
        return array[0], axes[1]
    if array.shape != (out.shape[0], 1):
        raise ValidationError(
            f"{name}: the vector has the shape {array.shape} and the matrix {out.shape}; give a "
            f"row (1, {out.shape[1]}) or a column ({out.shape[0]}, 1)"
        )
    return array[:, 0], axes[0]


for _name, _row in ELEMENTWISE.items():
    setattr(Handler, _name, _operation(_name, *_row))


def _float_dtype(dtype: Any, what: str) -> str:
    name = np.dtype(dtype).name
    if name not in ("float32", "float64"):
        raise ValidationError(f"{what}: dtype={name}; give float32 or float64")
    return name


def _filters(params: Any) -> list[Any]:
    """Return the axes of filters (number, height, width, channels)."""
    return ["c", geon.Axis("r", params.shape[1]), geon.Axis("s", params.shape[2]), "i"]


def _linear_deriv(handler: Handler) -> Callable[..., None]:
    return lambda x, y, dy, dx: handler.copy_to(dy, dx)


def _in_place(function: Callable[..., None]) -> Callable[[Any], None]:
    return lambda x: function(x, x)


def _deriv_in_place(function: Callable[..., None]) -> Callable[[Any, Any], None]:
    return lambda y, dy: function(None, y, dy, dy)
