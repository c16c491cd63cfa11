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
from .control_flow import ConditionalBlock, DynamicRNN, IfElse, StaticRNN, Switch, While
from .creators import op
from .program import Parameter, Program, Var, default_main_program, default_startup_program
from .registry import ProgramError

__all__ = [
    "ConditionalBlock", "Constant", "DynamicRNN", "IfElse", "Initializer", "MSRA", "Normal",
    "ParamAttr", "StaticRNN", "Switch", "TruncatedNormal", "Uniform", "While", "Xavier",
    "array_write", "batch_norm", "conv2d", "create_global_var", "create_parameter", "data",
    "dynamic_gru", "dynamic_lstm", "embedding", "fc", "layer_norm", "row_conv", "sequence_feed",
]  # fmt: skip


@dataclass(frozen=True)
class Initializer:
    """An operator of the start-up program that fills a parameter, with its attributes.

    ``variance(inputs, outputs)`` scales its spread from 1 to that variance, for weights of the
    shape (inputs, outputs) or (outputs, inputs, ...).
    """

    type: str
    attributes: Mapping[str, Any]
    variance: Callable[[int, int], float] | None = None

    def attributes_for(self, shape: Sequence[int]) -> dict[str, Any]:
        """Return the attributes of the operator for a parameter of a shape."""
        if self.variance is None:
            return dict(self.attributes)
        first, second, *window = [*shape, 1, 1][: max(2, len(shape))]
        fans = [first * math.prod(window), second * math.prod(window)]
        scale = math.sqrt(self.variance(*(fans[::-1] if window else fans)))
        spreads = ("min", "max", "std")
        return {k: v * scale if k in spreads else v for k, v in self.attributes.items()}


def Constant(value: float = 0.0) -> Initializer:
    """Return the initialiser that sets each element to ``value``."""
    return Initializer("fill_constant", {"value": value})


def Uniform(low: float = -1.0, high: float = 1.0, seed: int = 0) -> Initializer:
    """Return the initialiser that draws from a uniform distribution."""
    return Initializer("uniform_random", {"min": low, "max": high, "seed": seed})


def Normal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Initializer:
    """Return the initialiser that draws from a normal distribution."""
    return Initializer("gaussian_random", {"mean": loc, "std": scale, "seed": seed})


def TruncatedNormal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Initializer:
    """Return the initialiser that draws again beyond two standard deviations."""
    return replace(Normal(loc, scale, seed), type="truncated_gaussian_random")


def Xavier(uniform: bool = True, seed: int = 0) -> Initializer:
    """Return the initialiser of Glorot and Bengio (2010): the variance 2 / (inputs + outputs)."""
    unit = Uniform(-math.sqrt(3), math.sqrt(3), seed) if uniform else Normal(seed=seed)
    return replace(unit, variance=lambda inputs, outputs: 2 / (inputs + outputs))


def MSRA(uniform: bool = True, seed: int = 0) -> Initializer:
    """Return the initialiser of He et al. (2015): the variance 2 / inputs."""
    return replace(Xavier(uniform, seed), variance=lambda inputs, outputs: 2 / inputs)


@dataclass(frozen=True)
class ParamAttr:
    """The name, initialiser and training of a parameter, as in ``Parameter``.

    A name that exists shares the parameter.
    """

    name: str | None = None
    initializer: Initializer | None = None
    learning_rate: float = 1.0
    regularizer: Any = None
    trainable: bool = True
    gradient_clip: Any = None


OUTER = "@OUTER"  # in the names of the offsets of sequences of sequences
Attr = ParamAttr | str | bool | None  # a name stands for an attribute with it, False for none


def data(
    name: str, shape: Sequence[int | str], dtype: str = "float32", lod_level: int = 0,
    append_batch_size: bool = True,
) -> Var:  # fmt: skip
    """Declare a variable that a run feeds; an open length of a batch comes first by default.

    With ``lod_level=1`` it has the rows of sequences of different lengths, one after another, whose
    offsets are ``NAME@OFFSETS``. With ``lod_level=2`` these sequences are the parts of others, such
    as sentences of paragraphs, whose offsets count sequences: ``NAME@OUTER@OFFSETS``; and so on.
    ``sequence_feed`` makes what is fed.
    """
    block = default_main_program().global_block()
    if lod_level < 0:
        raise ArgumentError(
            f"{user_call('data')}: lod_level={lod_level}; 0 is for tensors, 1 for rows of "
            "sequences, 2 for rows of sequences of sequences"
        )
    options: dict[str, Any] = {"is_data": True, "stop_gradient": True}
    whole = [-1, *shape] if append_batch_size else shape
    made: Var = block.create_var(name, whole, dtype, **options)
    rows = made.spec.shape[0] if lod_level else None
    for level in range(lod_level):
        own = name + OUTER * level
        names = f"{own}@OFFSETS", f"{own}@POSITIONS"
        offsets, _ = (block.create_var(each, [-1], "int64", **options) for each in names)
        block.program.sequences[str(rows)] = names
        rows = offsets.spec.shape[0] - 1
    return made


def sequence_feed(
    name: str, sequences: Sequence[Any], lod_level: int = 1
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the feed of data with ``lod_level=1`` for a list of arrays, one of rows for each.

    For ``lod_level=2`` it is a list of such lists, and so on. Besides the rows these are for each
    level the offsets, and the numbers of the steps of the longest sequence.
    """
    if lod_level > 1:
        parts = [part for each in sequences for part in each]
        found = sequence_feed(name, parts, lod_level - 1)
    else:
        found = {name: np.concatenate(sequences)}
    lengths, own = [len(each) for each in sequences], name + OUTER * (lod_level - 1)
    found[f"{own}@OFFSETS"] = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    found[f"{own}@POSITIONS"] = np.arange(max(lengths, default=0))
    return found


def create_parameter(
    shape: Sequence[int], dtype: str = "float32", attr: Attr = None,
    default: Initializer | None = None, name: str = "parameter",
) -> Parameter:  # fmt: skip
    """Declare a parameter in the global block, and its initialiser in the start-up program.

    ``default`` is the initialiser without one in ``attr``, by default ``Xavier()``. ``name`` is the
    beginning of its name without one in ``attr``. A parameter that exists is shared, and must have
    this shape and dtype.
    """
    given = (
        attr if isinstance(attr, ParamAttr) else ParamAttr(attr if isinstance(attr, str) else None)
    )
    block = default_main_program().global_block()
    own = given.name or block.program.unique_name(name)
    known = block.variables.get(own)
    if known is not None:
        if not isinstance(known, Parameter) or (known.shape, known.dtype) != (tuple(shape), dtype):
            raise ProgramError(
                f"{user_call('create_parameter')}: {known} exists, and cannot be shared as a "
                f"parameter ({', '.join(map(str, shape))}) {dtype}; choose another name"
            )
        return known
    options = {k: v for k, v in vars(given).items() if k not in ("name", "initializer")}
    made: Parameter = block.create_var(
        own, shape, dtype, cls=Parameter, persistable=True, **options
    )
    initialise(default_startup_program(), made, given.initializer or default or Xavier())
    return made


def initialise(startup: Program, var: Var, by: Initializer) -> None:
    """Add the initialiser of a persistable variable to a start-up program."""
    block = startup.global_block()
    if var.name not in block.variables:
        block.create_var(var.name, var.shape, var.dtype, persistable=True)
        attributes = {**by.attributes_for(var.shape), "shape": var.shape, "dtype": var.dtype}
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


def _layer(type: str, x: Var, act: str | None = None, /, **given: Any) -> Var:
    """Add an operator of one output that the next layer reads; return it activated."""
    found = getattr(op, type)(x, **given)
    first: Var = found[0] if isinstance(found, tuple) else found
    return first if act is None else _layer(act, first)


def _with_bias(x: Var, attr: Attr, at: int, act: str | None) -> Var:
    """Return ``x`` plus a bias along position ``at``, unless it is False, and activated."""
    if attr is not False:
        bias = create_parameter([x.shape[at]], x.dtype, attr, Constant(0.0), "bias")
        x = op.elementwise_add(x, bias, axis=at)
    return x if act is None else _layer(act, x)


def fc(
    input: Var | Sequence[Var], size: int, num_flatten_dims: int = 1, param_attr: Any = None,
    bias_attr: Attr = None, act: str | None = None,
) -> Var:  # fmt: skip
    """Return inputs times weights, summed, plus a bias, activated by the operator ``act``.

    The dimensions from ``num_flatten_dims`` on are one of the product. ``param_attr`` is a
    ``ParamAttr`` or a name, or a list with one for each input.
    """
    inputs: list[Any] = [input] if isinstance(input, Var) else [*input]
    attrs = param_attr if isinstance(param_attr, list) else [param_attr] * len(inputs)
    terms = []
    for x, attr in zip(inputs, attrs, strict=True):
        if -1 in x.shape[num_flatten_dims:]:
            raise ProgramError(
                f"{user_call('fc')}: the width of {x} is open from dimension {num_flatten_dims} "
                "on; weights need a length, so declare it with one"
            )
        shape = [math.prod(x.shape[num_flatten_dims:]), size]
        w = create_parameter(shape, x.dtype, attr, name="fc.w")
        terms.append(op.mul(x, w, x_num_col_dims=num_flatten_dims))
    total = terms[0] if len(terms) == 1 else op.sum(terms)
    return _with_bias(total, bias_attr, num_flatten_dims, act)


def embedding(
    input: Var, size: Sequence[int], is_sparse: bool = False, padding_idx: int = -1,
    param_attr: Attr = None, dtype: str = "float32",
) -> Var:  # fmt: skip
    """Return the rows of a table of ``size`` (words, width) at the indices ``input``.

    ``is_sparse`` keeps the gradient as selected rows until the optimiser uses it. Rows at
    ``padding_idx`` are 0.
    """
    table = create_parameter(size, dtype, param_attr, name="embedding.w")
    return _layer("lookup_table", table, Ids=input, is_sparse=is_sparse, padding_idx=padding_idx)


def conv2d(
    input: Var, num_filters: int, filter_size: int | Sequence[int], stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
    param_attr: Attr = None, bias_attr: Attr = None, act: str | None = None,
) -> Var:  # fmt: skip
    """Return images (N, C, H, W) convolved by filters, plus a bias by channel, activated."""
    window, *given = (
        [v] * 2 if isinstance(v, int) else list(v) for v in (filter_size, stride, padding, dilation)
    )
    shape = [num_filters, input.shape[1] // groups, *window]
    w = create_parameter(shape, input.dtype, param_attr, MSRA(uniform=False), "conv2d.w")
    options: Any = dict(zip(("strides", "paddings", "dilations"), given, strict=True))
    return _with_bias(
        _layer("conv2d", input, Filter=w, groups=groups, **options), bias_attr, 1, act
    )


def batch_norm(
    input: Var, act: str | None = None, is_test: bool = False, momentum: float = 0.9,
    epsilon: float = 1e-5, param_attr: Attr = None, bias_attr: Attr = None,
) -> Var:  # fmt: skip
    """Return channels with mean 0 and variance 1, scaled; running statistics are persistable."""
    shape, dtype = [input.shape[1]], input.dtype
    scale = create_parameter(shape, dtype, param_attr, Constant(1.0), "batch_norm.scale")
    bias = create_parameter(shape, dtype, bias_attr, Constant(0.0), "batch_norm.bias")
    name = default_main_program().unique_name("batch_norm")
    mean = create_global_var(shape, 0.0, dtype, f"{name}.mean")
    variance = create_global_var(shape, 1.0, dtype, f"{name}.variance")
    return _layer(
        "batch_norm", input, act, Scale=scale, Bias=bias, Mean=mean, Variance=variance,
        MeanOut=mean, VarianceOut=variance, is_test=is_test, momentum=momentum, epsilon=epsilon,
    )  # fmt: skip


def layer_norm(
    input: Var, scale: bool = True, shift: bool = True, begin_norm_axis: int = 1,
    epsilon: float = 1e-5, act: str | None = None,
) -> Var:  # fmt: skip
    """Return rows with mean 0 and variance 1 over the dimensions from ``begin_norm_axis`` on."""
    shape, options = [math.prod(input.shape[begin_norm_axis:])], {}
    for slot, value, is_wanted in (("Scale", 1.0, scale), ("Bias", 0.0, shift)):
        if is_wanted:
            by, name = Constant(value), f"layer_norm.{slot}"
            options[slot] = create_parameter(shape, input.dtype, None, by, name)
    return _layer(
        "layer_norm", input, act, begin_norm_axis=begin_norm_axis, epsilon=epsilon, **options
    )


def dynamic_lstm(
    input: Var, size: int, h_0: Var | None = None, c_0: Var | None = None, param_attr: Attr = None,
    bias_attr: Attr = None, use_peepholes: bool = True, **options: Any,
) -> tuple[Var, Var]:  # fmt: skip
    """Return the outputs and states of an LSTM after each row of sequences, (rows, size / 4) both.

    ``input`` (rows, size) has the sums of the gates, such as those of ``fc``. ``options`` are
    attributes of the operator ``lstm``.
    """
    elements, peepholes = 7 if use_peepholes else 4, use_peepholes and bias_attr is not False
    found: tuple[Var, Var] = _over_rows(
        "lstm", input, size / 4, (4, elements), (param_attr, bias_attr), (h_0, c_0),
        use_peepholes=peepholes, **options,
    )  # fmt: skip
    return found


def dynamic_gru(
    input: Var, size: int, h_0: Var | None = None, param_attr: Attr = None, bias_attr: Attr = None,
    **options: Any,
) -> Var:  # fmt: skip
    """Return the states of a GRU after each row of sequences, (rows, size).

    ``input`` (rows, 3 size) has the sums of the gates and the candidate, such as those of ``fc``.
    ``options`` are attributes of the operator ``gru``.
    """
    attrs = param_attr, bias_attr
    made: Var = _over_rows("gru", input, size, (3, 3), attrs, (h_0,), **options)
    return made


def _over_rows(
    type: str, input: Var, width: float, counts: tuple[int, int], attrs: tuple[Attr, Attr],
    states: Sequence[Var | None], **options: Any,
) -> Any:  # fmt: skip
    """Add a recurrent operator over the rows of sequences, with states of a width.

    ``counts`` are the numbers of widths that a row of the input and the bias have.
    """
    what, (gates, elements) = user_call(f"dynamic_{type}"), counts
    offsets, positions = input.block.program.sequence_of(input, what)
    size = int(width)
    if size != width or input.shape[1:] != (gates * size,):
        raise ArgumentError(
            f"{what}: states of the width {width:g} need an input of {gates} times the width, and "
            f"it is {input}; change size"
        )
    w = create_parameter([size, gates * size], input.dtype, attrs[0], name=f"{type}.w")
    bias = None
    if attrs[1] is not False:
        shape = [1, elements * size]
        bias = create_parameter(shape, input.dtype, attrs[1], Constant(0.0), f"{type}.b")
    return getattr(op, type)(input, *states, w, bias, offsets, positions, **options)


def row_conv(
    input: Var, future_context_size: int, param_attr: Attr = None, act: str | None = None
) -> Var:
    """Return sums of each row of sequences and those after it, weighted by column, activated."""
    shape = [future_context_size + 1, input.shape[1]]
    w = create_parameter(shape, input.dtype, param_attr, name="row_conv.w")
    offsets, _ = input.block.program.sequence_of(input, user_call("row_conv"))
    return _layer("row_conv", input, act, Filter=w, Offsets=offsets)


def array_write(x: Var, i: Var, array: Var | None = None, capacity: int = 0) -> Var:
    """Write ``x`` at index ``i`` of an array; without one, make one of ``capacity`` tensors."""
    return _layer("write_to_array", x, Index=i, Array=array, Out=array, capacity=capacity)


def __getattr__(name: str) -> Any:
    return getattr(op, name)
