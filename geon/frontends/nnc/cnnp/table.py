"""The table of models: layers, models that are one command, and functions of values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ...neon.initialisers import Uniform
from ...positional import movement
from ...positional.networks.recurrent import lstm_shapes
from ...positional.reshaping import flatten_to, reshape
from ...positional.reshaping import transpose as permuted
from ...positional.values import PositionalArray, Value, as_array, position
from ..checks import checked
from ..commands import command_table
from ..commands.command import Command
from ..lowering import lower, part_value, read
from ..symbolic.graph import SymbolicGraph
from ..tensors import part_of
from .layers import LAYERS, initial
from .model import LeafModel, Scope

Made = Value | Sequence[Value | None]
# Models that are the first output of one command: its name, then attributes that may be given by
# position. Further attributes are given by name.
OF_COMMANDS: dict[str, str] = {
    "sum": "ewsum", "add": "add p q", "mul": "mul p", "scalar_mul": "scalar_mul a",
    "cmul": "cmul", "matmul": "gemm transpose_a transpose_b", "div": "ewdiv", "sqrt": "ewsqrt",
    "exp": "ewexp", "log": "ewlog", "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh",
    "swish": "swish", "gelu": "gelu tanh", "leaky_relu": "leaky_relu slope",
    "softmax": "softmax axis", "pad": "pad type begin end",
    "transpose": "transpose axes", "masked_fill": "masked_fill eq fill",
    "index_select": "index_select", "upsample": "upsample type scale",
    "reduce_sum": "reduce_sum axes", "reduce_mean": "reduce_mean axes",
    "reduce_max": "reduce_max axes", "reduce_min": "reduce_min axes",
    "reduce_norm2": "reduce_norm2 axes", "argmax": "argmax axis", "argmin": "argmin axis",
    "min": "min", "max": "max", "clamp": "clamp min max",
    "datatype_conversion": "datatype_conversion dtype",
}  # fmt: skip


def lstm(
    m: Scope, x: Value, lengths: Value | None = None, *, hidden: int, states: bool = False,
    **options: Any,
) -> Made:  # fmt: skip
    """Return the outputs of all steps of an LSTM; with ``states``, the last states, too."""
    kept = {"layers": 1, "bidirectional": False, "bias": True, "projection": None} | options
    chosen = {k: kept[k] for k in ("layers", "bidirectional", "bias", "projection")}
    shapes = lstm_shapes(int(x.shape[-1]), hidden, **chosen)
    size = sum(map(math.prod, shapes))
    w = m.parameter("weight", (size,), Uniform(m.build.random, -(hidden**-0.5), hidden**-0.5))
    given = x, lengths, None, None, w
    outputs = m.exec("lstm", *given, hidden=hidden, is_test=not m.build.training, **options)
    return outputs if states else outputs[:1]


def attention(
    m: Scope, q: Value, k: Value, v: Value, mask: Value | None = None, *,
    unify: int | None = None, bias: bool = True, init: Any = None, **options: Any,
) -> Made:  # fmt: skip
    """Return attention; with ``unify``, heads are joined and multiplied with (unify, joined)."""
    w = b = None
    if unify is not None:
        joined = v.shape[-1] * (v.shape[-2] if len(v.shape) == 4 else 1)
        w = m.parameter("weight", (unify, joined), initial(m, init), fan=((1,), (0,)))
        b = m.parameter("bias", (unify,), 0.0, "bias") if bias else None
    return m.exec("scaled_dot_product_attention", q, k, v, mask, w, b, **options)[:1]


def concat(m: Scope, *xs: Value, axis: int = -1) -> Made:
    """Return the inputs joined along a dimension."""
    return movement.concat(xs, axis)


def chunk(m: Scope, x: Value, *, n: int, axis: int = -1) -> Made:
    """Return ``n`` parts of equal length along a dimension."""
    at = position(axis, len(x.shape))
    if n < 1 or x.shape[at] % n:
        raise ArgumentError(
            f"{x.shape[at]} elements of dimension {at} do not divide into n={n} parts; give a "
            "number that divides them"
        )
    return movement.split(x, at, [x.shape[at] // n] * n)


def reshaped(
    m: Scope, x: Value, *, shape: Sequence[int], offset: Any = None, stride: Any = None
) -> Made:
    """Return ``x`` in another shape, or the box of it at ``offset`` in steps of ``stride``."""
    if offset is None and stride is None:
        return reshape(x, list(shape))
    return part_value(part_of(list(map(int, x.shape)), shape, offset, stride), x)


def extract(m: Scope, *xs: Value, index: int) -> Made:
    """Return the input of a number, such as one of several outputs of a model."""
    if not -len(xs) <= index < len(xs):
        raise ArgumentError(f"there is no input {index} of {len(xs)}; give a smaller index")
    return xs[index]


def parameter(
    m: Scope, *, shape: Sequence[int], init: Any = 0.0, bias: bool = False, dtype: Any = None
) -> Made:
    """Return a parameter; the model has no inputs."""
    ends = tuple(range(1, len(shape))), (0,)
    return m.parameter("value", shape, init, "bias" if bias else "weight", ends, dtype)


def variable(m: Scope, *, shape: Sequence[int], init: Any = 0.0, dtype: Any = None) -> Made:
    """Return a variable that is not trained; the model has no inputs."""
    return m.parameter("value", shape, init, "state", dtype=dtype)


def scalar(m: Scope, *like: Value, value: float, dtype: Any = None) -> Made:
    """Return a number, in the dtype of the input if there is one."""
    kind = dtype or (like[0].dtype.name if like else "float32")
    return PositionalArray(geon.constant(value, dtype=kind), ())


def move(m: Scope, source: Value, target: Value) -> Made:
    """Return the first input; the second one has its shape."""
    if tuple(source.shape) != tuple(target.shape):
        raise ArgumentError(f"{source} does not fit into {target}; give one of its shape")
    return source


def debug(m: Scope, *xs: Value, function: Callable[..., Any]) -> Made:
    """Return the inputs, after ``function`` was called with them when the graph is built."""
    function(*xs)
    return xs


def cmd_exec(
    m: Scope, *xs: Value, command: Command, parameters: Mapping[int, Any] | None = None
) -> Made:
    """Return the outputs of a command; ``parameters`` has (shape, initial value) by input."""
    given, own = iter(xs), parameters or {}
    for k, each in own.items():
        if not isinstance(each, tuple) or len(each) != 2:
            raise ArgumentError(f"parameters[{k}]={each!r:.80}; give a pair of shape and value")
    places = range(len(xs) + len(own))
    values = [m.parameter(f"input{k}", *own[k]) if k in own else next(given) for k in places]
    return command.apply(values, format=m.format, random=m.build.random)


def graph(
    m: Scope, *xs: Value, graph: SymbolicGraph, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Made:
    """Return the values of symbols ``outputs`` of a symbolic graph, for those of ``inputs``."""
    if len(inputs) != len(xs):
        raise ArgumentError(f"{len(xs)} inputs for {len(inputs)} symbols; give one for each")
    env = dict(zip(inputs, xs, strict=True))
    lower(graph.topsort(), env, m.build.random)
    return [read(env, symbol) for symbol in outputs]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **LAYERS, "lstm": lstm, "scaled_dot_product_attention": attention, "concat": concat,
    "chunk": chunk, "reshape": reshaped, "extract": extract, "parameter": parameter,
    "variable": variable, "scalar": scalar, "move": move, "debug": debug, "cmd_exec": cmd_exec,
    "graph": graph,
    "identity": lambda m, *xs: xs, "contiguous": lambda m, *xs: xs,
    "permute": lambda m, x, *, order: permuted(x, order),
    "flatten": lambda m, x: flatten_to(as_array(x), 1, len(x.shape)),
}  # fmt: skip


def of_command(command: str, order: Sequence[str]) -> list[inspect.Parameter]:
    """Return the attributes of a command as arguments, those of ``order`` first."""
    known = command_table()[command].attributes
    named = dict.fromkeys([*order, *[k for k in known if k not in ("random", "is_test", "seed")]])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [inspect.Parameter(name, kind, default=known[name]) for name in named]


def of_one_command(command: str) -> Callable[..., Made]:
    """Return the function of a model that is the first output of a command."""

    def function(m: Scope, *xs: Value, **attributes: Any) -> Made:
        inputs = (None, *xs) if command == "ewdiv" and len(xs) == 1 else xs
        return m.exec(command, *inputs, **attributes)[:1]

    return function


def factory(name: str) -> Callable[..., LeafModel]:
    """Return the function that makes models of a row: it takes attributes, and a name."""
    if name in OF_COMMANDS:
        command, *order = OF_COMMANDS[name].split()
        function, taken = of_one_command(command), of_command(command, order)
    else:
        function, own = FUNCTIONS[name], inspect.signature(FUNCTIONS[name]).parameters
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        taken = [p.replace(kind=kind) for p in own.values() if p.kind is p.KEYWORD_ONLY]
        if "options" in own:  # further attributes are those of the command of this name
            taken += [each for each in of_command(name, ()) if each.name not in own]
    label = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
    signature = inspect.Signature([*taken, label])

    def make(*values: Any, **attributes: Any) -> LeafModel:
        try:
            given = dict(signature.bind(*values, **attributes).arguments)
        except TypeError as error:
            raise ArgumentError(f"{error}; it takes {signature}") from None
        for p in taken:
            if p.name in given:
                checked.check(p, given[p.name])
        return LeafModel(name, function, given, given.pop("name", None))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = function.__doc__ or f"Return a model of the command ``{name}``."
    make.__signature__ = signature  # type: ignore[attr-defined]  # for help()
    return checked(make, f"cnnp.{name}")


MODELS: dict[str, Callable[..., LeafModel]] = {
    name: factory(name) for name in sorted({**OF_COMMANDS, **FUNCTIONS})
}
