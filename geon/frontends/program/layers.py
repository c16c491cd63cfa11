"""Layers: operators with parameters, which they declare in the global block and initialise.

Every registered operator is a function of this module, too: ``layers.tanh(x)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from .control_flow import DynamicRNN, IfElse, StaticRNN, Switch, While
from .creators import op
from .program import Parameter, Program, Var, default_main_program, default_startup_program
from .registry import ProgramError

__all__ = [
    "Constant", "DynamicRNN", "IfElse", "Initializer", "MSRA", "Normal", "ParamAttr", "StaticRNN",
    "Switch", "TruncatedNormal", "Uniform", "While", "Xavier", "array_read", "array_write",
    "batch_norm", "conv2d", "create_global_var", "create_parameter", "data", "embedding", "fc",
    "layer_norm", "sequence_feed",
]  # fmt: skip


@dataclass(frozen=True)
class Initializer:
    """An operator of the start-up program that fills a parameter, and its attributes by shape."""

    type: str
    attributes: Callable[[Sequence[int]], Mapping[str, Any]]


def Constant(value: float = 0.0) -> Initializer:
    """Return the initialiser that sets each element to ``value``."""
    return Initializer("fill_constant", lambda shape: {"value": value})


def Uniform(low: float = -1.0, high: float = 1.0, seed: int = 0) -> Initializer:
    """Return the initialiser that draws from a uniform distribution."""
    return Initializer("uniform_random", lambda shape: {"min": low, "max": high, "seed": seed})


def Normal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Initializer:
    """Return the initialiser that draws from a normal distribution."""
    return Initializer("gaussian_random", lambda shape: {"mean": loc, "std": scale, "seed": seed})


def TruncatedNormal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Initializer:
    """Return the initialiser that draws again beyond two standard deviations."""
    made = Normal(loc, scale, seed)
    return replace(made, type="truncated_gaussian_random")


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of inputs and outputs of one element: of (in, out), or (out, in, ...)."""
    if len(shape) < 2:
        return (shape[0] if shape else 1,) * 2
    window = math.prod(shape[2:])
    first, second = shape[0] * window, shape[1] * window
    return (first, second) if len(shape) == 2 else (second, first)


def _scaled(divisor: Callable[[int, int], float], uniform: bool, seed: int) -> Initializer:
    """Return draws with the variance ``1 / divisor(inputs, outputs)`` and the mean 0."""

    def attributes(shape: Sequence[int]) -> Mapping[str, Any]:
        deviation = math.sqrt(1 / divisor(*fans(shape)))
        bound = math.sqrt(3) * deviation
        made = Uniform(-bound, bound, seed) if uniform else Normal(0.0, deviation, seed)
        return made.attributes(shape)

    return Initializer("uniform_random" if uniform else "gaussian_random", attributes)


def Xavier(uniform: bool = True, seed: int = 0) -> Initializer:
    """Return the initialiser of Glorot and Bengio (2010): the variance 2 / (inputs + outputs)."""
    return _scaled(lambda inputs, outputs: (inputs + outputs) / 2, uniform, seed)


def MSRA(uniform: bool = True, seed: int = 0) -> Initializer:
    """Return the initialiser of He et al. (2015): the variance 2 / inputs."""
    return _scaled(lambda inputs, _: inputs / 2, uniform, seed)


@dataclass(frozen=True)
class ParamAttr:
    """The name, initialiser and training of a parameter; see ``Parameter``.

    A name that exists shares the parameter.
    """

    name: str | None = None
    initializer: Initializer | None = None
    learning_rate: float = 1.0
    regularizer: Any = None
    trainable: bool = True
    gradient_clip: Any = None


# Variables ----------------------------------------------------------------------------------------


def data(
    name: str,
    shape: Sequence[int | str],
    dtype: str = "float32",
    lod_level: int = 0,
    append_batch_size: bool = True,
) -> Var:
    """Declare a variable that a run feeds; an open length of a batch comes first by default.

    With ``lod_level=1`` it has the rows of sequences of different lengths, one after another. Their
    offsets are fed as ``name@OFFSETS``, and the numbers 0, 1, ... up to the greatest length as
    ``name@POSITIONS``.
    """
    block = default_main_program().global_block()
    whole = [-1, *shape] if append_batch_size else list(shape)
    options: dict[str, Any] = {"is_data": True, "stop_gradient": True}
    made: Var = block.create_var(name, whole, dtype, **options)
    if lod_level not in (0, 1):
        raise ArgumentError(
            f"{user_call('data')}: lod_level={lod_level}; 0 is for tensors and 1 for sequences of "
            "rows"
        )
    if lod_level:
        parts = [f"{name}@OFFSETS", f"{name}@POSITIONS"]
        for part in parts:
            block.create_var(part, [-1], "int64", **options)
        assert made.declared is not None
        block.program.sequences[str(made.declared.shape[0])] = (parts[0], parts[1])
    return made


def sequence_feed(name: str, sequences: Sequence[Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the feed of data with ``lod_level=1`` for a list of arrays, one of rows for each."""
    lengths = [len(each) for each in sequences]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    positions = np.arange(max(lengths, default=0))
    return {
        name: np.concatenate(sequences), f"{name}@OFFSETS": offsets, f"{name}@POSITIONS": positions
    }  # fmt: skip


def create_parameter(
    shape: Sequence[int],
    dtype: str = "float32",
    attr: ParamAttr | str | None = None,
    default: Initializer | None = None,
    name: str = "parameter",
) -> Parameter:
    """Declare a parameter in the global block, and its initialiser in the start-up program.

    ``default`` is the initialiser without one in ``attr``, by default ``Xavier()``. ``name`` is the
    beginning of its name without one in ``attr``. A parameter that exists is shared, and must have
    this shape and dtype.
    """
    given = ParamAttr(attr) if isinstance(attr, str) else attr or ParamAttr()
    program = default_main_program()
    own = given.name or program.unique_name(name)
    known = program.global_block().variables.get(own)
    if known is not None:
        if not isinstance(known, Parameter) or known.shape != tuple(shape) or known.dtype != dtype:
            raise ProgramError(
                f"{user_call('create_parameter')}: {known} exists, and cannot be shared as a "
                f"parameter ({', '.join(map(str, shape))}) {dtype}; choose another name"
            )
        return known
    made: Parameter = program.global_block().create_var(
        own,
        shape,
        dtype,
        cls=Parameter,
        persistable=True,
        trainable=given.trainable,
        learning_rate=given.learning_rate,
        regularizer=given.regularizer,
        gradient_clip=given.gradient_clip,
    )
    initialise(default_startup_program(), made, given.initializer or default or Xavier())
    return made


def initialise(startup: Program, var: Var, by: Initializer) -> None:
    """Add the initialiser of a persistable variable to a start-up program."""
    block = startup.global_block()
    if var.name in block.variables:
        return
    block.create_var(var.name, var.shape, var.dtype, persistable=True)
    attributes = {**by.attributes(var.shape), "shape": var.shape, "dtype": var.dtype}
    block.append_op(by.type, {}, {"Out": var.name}, attributes)


def create_global_var(
    shape: Sequence[int], value: float, dtype: str = "float32", name: str | None = None
) -> Var:
    """Declare a persistable variable that is no parameter, such as a counter of steps."""
    block = default_main_program().global_block()
    own = name or block.program.unique_name("global")
    made: Var = block.create_var(own, shape, dtype, persistable=True, stop_gradient=True)
    initialise(default_startup_program(), made, Constant(value))
    return made


# Layers with parameters ---------------------------------------------------------------------------


def _activated(x: Var, act: str | None) -> Var:
    found: Var = x if act is None else getattr(op, act)(x)
    return found


def _finished(x: Var, bias: ParamAttr | str | bool | None, at: int, act: str | None) -> Var:
    """Return ``x`` plus a bias along position ``at``, unless it is False, and activated."""
    if bias is not False:
        attr = None if bias is True else bias
        b = create_parameter([x.shape[at]], x.dtype, attr, Constant(0.0), "bias")
        x = op.elementwise_add(x, b, axis=at)
    return _activated(x, act)


def fc(
    input: Var | Sequence[Var],
    size: int,
    num_flatten_dims: int = 1,
    param_attr: ParamAttr | str | Sequence[Any] | None = None,
    bias_attr: ParamAttr | str | bool | None = None,
    act: str | None = None,
) -> Var:
    """Return inputs times weights, summed, plus a bias, activated by the operator ``act``.

    The dimensions from ``num_flatten_dims`` on are one of the product.
    """
    inputs = list(input) if isinstance(input, (list, tuple)) else [input]
    attrs = (
        list(param_attr) if isinstance(param_attr, (list, tuple)) else [param_attr] * len(inputs)
    )
    terms = []
    pairs: Any = zip(inputs, attrs, strict=True)
    for x, attr in pairs:
        width = math.prod(x.shape[num_flatten_dims:])
        if -1 in x.shape[num_flatten_dims:]:
            raise ProgramError(
                f"{user_call('fc')}: the width of {x} is open from dimension {num_flatten_dims} "
                "on; weights need a length, so declare it with one"
            )
        w = create_parameter([width, size], x.dtype, attr, name="fc.w")
        terms.append(op.mul(x, w, x_num_col_dims=num_flatten_dims))
    total = terms[0] if len(terms) == 1 else op.sum(terms)
    return _finished(total, bias_attr, num_flatten_dims, act)


def embedding(
    input: Var,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    param_attr: ParamAttr | str | None = None,
    dtype: str = "float32",
) -> Var:
    """Return the rows of a table of ``size`` (words, width) at the indices ``input``.

    ``is_sparse`` keeps the gradient as selected rows until the optimiser uses it.
    """
    w = create_parameter(size, dtype, param_attr, name="embedding.w")
    padding = -1 if padding_idx is None else padding_idx
    found: Var = op.lookup_table(w, input, is_sparse=is_sparse, padding_idx=padding)
    return found


def conv2d(
    input: Var,
    num_filters: int,
    filter_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    param_attr: ParamAttr | str | None = None,
    bias_attr: ParamAttr | str | bool | None = None,
    act: str | None = None,
) -> Var:
    """Return images (N, C, H, W) convolved by filters, plus a bias by channel, activated."""
    window, stride, padding, dilation = (
        [v] * 2 if isinstance(v, int) else list(v) for v in (filter_size, stride, padding, dilation)
    )
    shape = [num_filters, input.shape[1] // groups, *window]
    w = create_parameter(shape, input.dtype, param_attr, MSRA(uniform=False), "conv2d.w")
    out = op.conv2d(input, w, strides=stride, paddings=padding, dilations=dilation, groups=groups)
    return _finished(out, bias_attr, 1, act)


def batch_norm(
    input: Var,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    param_attr: ParamAttr | str | None = None,
    bias_attr: ParamAttr | str | None = None,
) -> Var:
    """Return channels with mean 0 and variance 1, scaled; running statistics are persistable."""
    shape, dtype = [input.shape[1]], input.dtype
    scale = create_parameter(shape, dtype, param_attr, Constant(1.0), "batch_norm.scale")
    bias = create_parameter(shape, dtype, bias_attr, Constant(0.0), "batch_norm.bias")
    name = default_main_program().unique_name("batch_norm.stats")
    mean = create_global_var(shape, 0.0, dtype, f"{name}.mean")
    variance = create_global_var(shape, 1.0, dtype, f"{name}.variance")
    y, _, _ = op.batch_norm(
        input, scale, bias, mean, variance, MeanOut=mean, VarianceOut=variance,
        is_test=is_test, momentum=momentum, epsilon=epsilon,
    )  # fmt: skip
    return _activated(y, act)


def layer_norm(
    input: Var,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-5,
    act: str | None = None,
) -> Var:
    """Return rows with mean 0 and variance 1 over the dimensions from ``begin_norm_axis`` on."""
    shape = [math.prod(input.shape[begin_norm_axis:])]
    given = [
        create_parameter(shape, input.dtype, None, Constant(value), f"layer_norm.{name}")
        for name, value, wanted in (("scale", 1.0, scale), ("bias", 0.0, shift))
        if wanted
    ]
    names = [slot for slot, wanted in (("Scale", scale), ("Bias", shift)) if wanted]
    y = op.layer_norm(
        input,
        begin_norm_axis=begin_norm_axis,
        epsilon=epsilon,
        **dict(zip(names, given, strict=True)),
    )
    return _activated(y, act)


# Arrays of tensors --------------------------------------------------------------------------------


def array_write(x: Var, i: Var, array: Var | None = None, capacity: int | None = None) -> Var:
    """Write ``x`` at index ``i`` of an array; without one, make one of ``capacity`` tensors."""
    found: Var = op.write_to_array(x, i, array, Out=array, capacity=capacity)
    return found


def array_read(array: Var, i: Var) -> Var:
    """Return the tensor at index ``i`` of an array."""
    found: Var = op.read_from_array(array, i)
    return found


def __getattr__(name: str) -> Any:
    return getattr(op, name)
