"""The table of commands by name, each with its function and the names of its results."""

from __future__ import annotations

from typing import Any

import geon

from ....errors import ArgumentError
from ....op_graph.values.dtypes import as_dtype
from ...positional.elementwise import chain
from ...positional.functions import scaled
from ...positional.networks import (
    arithmetic,
    boxes,
    compression,
    filling,
    images,
    losses,
    normalisation,
    optimisers,
)
from ...positional.networks.attention import attention
from ...positional.networks.common import ew
from ...positional.networks.recurrent import lstm
from ...positional.programs import cast
from ...positional.values import Value
from .command import CommandRow


def converted(x: Value, *, dtype: Any = None) -> Value:
    """Return ``x`` in another dtype, that of the output by default."""
    if dtype is None:
        raise ArgumentError("the wanted dtype is unknown; give dtype=, or an output")
    return cast(x, as_dtype(dtype))


def custom(*xs: Value, function: Any = None, outputs: int = 1) -> Any:
    """Return what a function of the user returns for the inputs: a value, or ``outputs`` values."""
    if not callable(function):
        raise ArgumentError(f"function={function!r} cannot be called; give a function of values")
    return function(*xs)


def broadcast(x: Value, *, count: int = 2) -> list[Value]:
    """Return ``x`` so many times."""
    if count < 1:
        raise ArgumentError(f"count={count}; give an integer of at least 1")
    return [x] * count


def unary(f: Any) -> Any:
    """Return the function of a command that applies ``f`` to each element."""
    return lambda x: ew(f, x)


def binary(f: Any) -> Any:
    """Return the function of a command that applies ``f`` to pairs of elements."""
    return lambda a, b: ew(f, a, b)


def gelu(t: geon.Tensor, tanh: bool) -> geon.Tensor:
    """Return GELU, exact or by its approximation with tanh."""
    return geon.gelu(t, approximate="tanh" if tanh else "none")


LOSS, SAVED = ("loss", "y"), ("saved_mean", "saved_inv_std")
STATES = ("a", "m", "v", "vm", "step")
ROWS = [
    CommandRow("add", arithmetic.add),
    CommandRow("mul", arithmetic.mul),
    CommandRow("cmul", arithmetic.cmul),
    CommandRow("scalar_mul", lambda x, *, a=1.0: scaled(x, a)),
    CommandRow("gemm", arithmetic.gemm),
    CommandRow("ewsum", lambda *xs: chain(geon.add, xs)),
    CommandRow("ewprod", lambda *xs: chain(geon.multiply, xs)),
    CommandRow("ewdiv", arithmetic.ewdiv),
    CommandRow("ewexp", unary(geon.exp)),
    CommandRow("ewlog", unary(geon.log)),
    CommandRow("ewsqrt", unary(geon.sqrt)),
    CommandRow("clamp", arithmetic.clamp),
    CommandRow("relu", unary(geon.relu)),
    CommandRow("leaky_relu", lambda x, *, slope=0.01: ew(lambda t: geon.leaky_relu(t, slope), x)),
    CommandRow("sigmoid", unary(geon.sigmoid)),
    CommandRow("tanh", unary(geon.tanh)),
    CommandRow("swish", unary(geon.silu)),
    CommandRow("gelu", lambda x, *, tanh=False: ew(lambda t: gelu(t, tanh), x)),
    CommandRow("softmax", arithmetic.softmax),
    CommandRow("max", binary(geon.maximum)),
    CommandRow("min", binary(geon.minimum)),
    CommandRow("convolution", images.convolution),
    CommandRow("convolution_transpose", images.convolution_transpose),
    CommandRow("average_pool", images.pool(lambda t, w: geon.average_pool(t, w, count_pad=False))),
    CommandRow("max_pool", images.pool(geon.max_pool)),
    CommandRow("upsample", images.upsample),
    CommandRow("pad", images.pad),
    CommandRow("batch_norm", normalisation.batch_norm, ("y", "mean", "var", *SAVED)),
    CommandRow("layer_norm", normalisation.layer_norm, ("y", *SAVED)),
    CommandRow("group_norm", normalisation.group_norm, ("y", *SAVED)),
    CommandRow("rmsnorm", normalisation.rmsnorm, ("y", "saved_inv_std")),
    CommandRow("reduce_sum", losses.reduction(geon.sum)),
    CommandRow("reduce_mean", losses.reduction(geon.mean)),
    CommandRow("reduce_max", losses.reduction(geon.max)),
    CommandRow("reduce_min", losses.reduction(geon.min)),
    CommandRow("reduce_norm2", losses.reduction(geon.L2_norm)),
    CommandRow("reduce_isnan", losses.reduction(losses.has_nan)),
    CommandRow("argmax", losses.place(geon.argmax)),
    CommandRow("argmin", losses.place(geon.argmin)),
    CommandRow("binary_crossentropy", losses.binary_crossentropy, ("loss",)),
    CommandRow("categorical_crossentropy", losses.categorical_crossentropy, ("loss",)),
    CommandRow("sigmoid_binary_crossentropy", losses.sigmoid_binary_crossentropy, LOSS),
    CommandRow("softmax_crossentropy", losses.softmax_crossentropy, LOSS),
    CommandRow("mse", losses.mse, ("loss",)),
    CommandRow("smooth_l1", losses.smooth_l1, ("loss",)),
    CommandRow("index_select", losses.index_rows),
    CommandRow("masked_fill", losses.masked_fill),
    CommandRow("dropout", filling.dropout, ("y", "mask")),
    CommandRow("transpose", arithmetic.transpose),
    CommandRow("format_transform", images.format_transform),
    CommandRow("datatype_conversion", converted),
    CommandRow("data_transfer", lambda *xs: list(xs), lambda n, _: n),
    CommandRow("set", filling.fill),
    CommandRow("random_normal", filling.random_normal),
    CommandRow("random_uniform", filling.random_uniform),
    CommandRow("comm_allreduce", lambda *xs: [chain(geon.add, xs)] * len(xs), lambda n, _: n),
    CommandRow("comm_broadcast", broadcast, lambda _, given: int(given["count"])),
    CommandRow("comm_reduce", lambda *xs: chain(geon.add, xs)),
    CommandRow("custom", custom, lambda _, given: int(given["outputs"])),
    CommandRow("lstm", lstm, ("y", "hy", "cy")),
    CommandRow("scaled_dot_product_attention", attention, ("y", "lse")),
    CommandRow("nms", boxes.nms, ("y", "index")),
    CommandRow("roi_align", boxes.roi_align),
    CommandRow("histogram", losses.histogram, ("counts", "statistics")),
    CommandRow("compression_lssc", compression.compress, inverse=compression.decompress),
    CommandRow("sgd", optimisers.sgd, ("a", "m")),
    CommandRow("adam", optimisers.adam("adam"), STATES),
    CommandRow("adamw", optimisers.adam("adamw"), STATES),
    CommandRow("lamb", optimisers.adam("lamb"), STATES),
    CommandRow("rmsprop", optimisers.rmsprop, ("a", "m", "v")),
]
