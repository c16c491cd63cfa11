"""``Command``: a row of the table with its attributes, or the derivative of one, to any order."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError, AxisError, DTypeError
from ....op_graph.op_graph import Op, Tensor, post_order
from ....op_graph.transforms.functionalize import substitute
from ...base.arguments import NamedErrors, check_inputs, name_of, takes_inputs
from ...positional.programs import cast
from ...positional.values import HostArray, PositionalArray, Value, array, as_array, renamed
from ..checks import checked
from ..tensors import TensorParam

Values = Sequence[Value | None]
RESULTS = (PositionalArray, HostArray, type(None))  # of functions of commands


@dataclass(frozen=True, eq=False)
class CommandRow:
    """A command: its function on values, the names of its results, and an explicit backward.

    Positional parameters of ``build`` are inputs, keyword parameters attributes. An output with the
    name of an input is the new value of the same memory. ``results`` is the names, or a function
    from the number of inputs and the attributes to the number of outputs. ``inverse`` is the
    function of the backward command where that is no derivative.
    """

    name: str
    build: Callable[..., Any]
    results: tuple[str, ...] | Callable[[int, dict[str, Any]], int] = ("y",)
    inverse: Callable[..., Any] | None = None

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of ``build``."""
        return list(inspect.signature(self.build).parameters.values())

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs; the last of a command of any number begins with a star."""
        return tuple(map(name_of, self.positional))

    @cached_property
    def positional(self) -> list[inspect.Parameter]:
        """The parameters that are inputs."""
        return [p for p in self.parameters if p.kind is not p.KEYWORD_ONLY]

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The defaults of the attributes by name."""
        return {p.name: p.default for p in self.parameters if p.kind is p.KEYWORD_ONLY}

    def count(self, inputs: int, attributes: dict[str, Any]) -> int:
        """Return the number of outputs for a number of inputs."""
        if callable(self.results):
            return self.results(inputs, attributes)
        return len(self.results)


@dataclass(frozen=True)
class Command:
    """A command with attributes: ``order`` 0 is the forward one, 1 its backward, 2 that one's.

    Inputs of a backward command are the gradients of the outputs, the inputs and the outputs of
    the command that it derives; its outputs are the gradients of the inputs.
    """

    row: CommandRow
    given: tuple[tuple[str, Any], ...] = ()
    order: int = 0
    backend: str | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The name in the table, with ``_backward`` for each order."""
        return self.row.name + "_backward" * self.order

    @property
    def id(self) -> str:
        """The name in the original's headers."""
        return f"CCV_NNC_{self.row.name.upper()}_{'BACKWARD' if self.order else 'FORWARD'}"

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name."""
        return {**self.row.attributes, **dict(self.given)}

    @property
    def is_forward(self) -> bool:
        """True for a command that is no backward one."""
        return self.order == 0

    @property
    def backward(self) -> Command:
        """The command of its derivative."""
        return replace(self, order=self.order + 1)

    @property
    def derived(self) -> Command:
        """The command whose derivative this one is."""
        return replace(self, order=self.order - 1)

    def on(self, backend: str | None) -> Command:
        """Return the command for a transformer by name; None is that of the tensors' device."""
        return replace(self, backend=backend)

    def with_attributes(self, **attributes: Any) -> Command:
        """Return the command with some attributes changed."""
        return replace(self, given=checked_attributes(self.row, {**dict(self.given), **attributes}))

    def filled(self, params: Iterable[TensorParam | None]) -> Command:
        """Return the command with attributes that are not given taken from an output's param."""
        first = next((each for each in params if each is not None), None)
        missing = [k for k in ("shape", "dtype") if self.attributes.get(k, 0) is None]
        is_stated = self.order == 0 or self.row.inverse is not None
        if first is None or not missing or not is_stated:
            return self
        return self.with_attributes(**{k: getattr(first, k) for k in missing})

    def counts(self, inputs: int) -> tuple[int, int]:
        """Return the numbers of inputs and outputs of the forward command, for this one's inputs.

        Raises ``ArgumentError`` if no number of them fits.
        """
        for n in range(inputs + 1):
            if takes_inputs(self.row.positional, n) and self.sizes(n)[0] == inputs:
                return n, self.row.count(n, self.attributes)
        whole = ", ".join(self.row.inputs)
        raise ArgumentError(
            f"{self.name} was given {inputs} inputs; it takes the gradients of all outputs, then "
            f"all inputs ({whole}), then all outputs of {self.derived.name}, None for those that "
            "are not needed"
        )

    def sizes(self, forward_inputs: int) -> tuple[int, int]:
        """Return the numbers of inputs and outputs, for inputs of the forward command."""
        n, m = forward_inputs, self.row.count(forward_inputs, self.attributes)
        for _ in range(self.order):
            n, m = 2 * m + n, n
        return n, m

    def layout(self, params: Sequence[TensorParam | None]) -> str:
        """Return the layout of the first input of the forward command; NHWC without inputs."""
        first = 0
        if params and self.order:
            n = self.counts(len(params))[0]
            first = sum([replace(self, order=k).sizes(n)[1] for k in range(self.order)])
        return next((p.format for p in params[first:] if p is not None), "NHWC")

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={value!r}" for name, value in self.given])
        return f"<command {self.name}({shown})>"

    # Building -------------------------------------------------------------------------------------

    def apply(
        self, values: Values, params: Sequence[TensorParam | None] = (), *,
        format: str | None = None, random: Any = None,
    ) -> list[Value | None]:  # fmt: skip
        """Return the outputs as values, built of the inputs; None for an output without gradient.

        ``params`` are those of the inputs, also of those that are None because their shape is
        enough; they give the layout unless ``format`` does. Raises ``GeonError`` that names the
        command and the inputs.
        """

        def name() -> str:
            shown = ", ".join(map(str, values)) or "no inputs"
            return f"command {self.name} of {shown}"

        with NamedErrors("command", name):
            format = format or self.layout(params)
            if self.order and self.row.inverse is None:
                return self._derivative(values, params, format, random)
            if self.order:
                return [self.row.inverse(values[0], **self._attributes(format, random))]  # type: ignore[misc]  # not None
            check_inputs(self.row.positional, values)
            built = self.row.build(*values, **self._attributes(format, random))
            made = list(built) if isinstance(built, (list, tuple)) else [built]
            count = self.row.count(len(values), self.attributes)
            if len(made) != count or not all(isinstance(y, RESULTS) for y in made):
                raise ArgumentError(
                    f"its function returned {built!r:.80}; let it return {count} values, or None "
                    "for those without one"
                )
            return made

    def _attributes(self, format: str, random: Any) -> dict[str, Any]:
        found = self.attributes
        if "format" in found and found["format"] is None:
            found["format"] = format
        if "random" in found:
            seed = found.pop("seed")
            fixed = seed is not None or random is None
            found["random"] = geon.Random(seed or 0) if fixed else random
        return found

    def _derivative(
        self, values: Values, params: Sequence[TensorParam | None], format: str, random: Any
    ) -> list[Value | None]:
        """Derive the lower command on placeholders, and put the values in their place."""
        lower = self.derived
        n, m = lower.sizes(self.counts(len(values))[0])
        seeds, inputs, outputs = values[:m], values[m : m + n], values[m + n :]
        stated = [*params, *[None] * (len(values) - len(params))][m : m + n]
        leaves = [placeholder_like(v, p) for v, p in zip(inputs, stated, strict=True)]
        results = lower.apply(leaves, stated, format=format, random=random)
        known: dict[Op, Op] = {}
        weighted: list[Tensor] = []
        for k, (result, seed) in enumerate(zip(results, seeds, strict=True)):
            is_one = seed is None and k == 0 and all(each is None for each in seeds)
            if result is None or result.dtype.kind not in "fc" or not (is_one or seed is not None):
                continue
            y = as_array(result)
            weights = geon.placeholder(y.tensor.axes, y.dtype)
            ones = seed or array(geon.broadcast(geon.cast(1, y.dtype), y.tensor.axes), y.dims)
            known[weights] = matching(ones, y, f"the gradient of output {k}")
            weighted.append(geon.sum(y.tensor * weights))
        if not weighted:
            raise ArgumentError(f"no output of {lower.name} is a float with a gradient")
        for leaf, value in zip(leaves, inputs, strict=True):
            if leaf is not None and value is not None:
                known[leaf.tensor] = as_array(value).tensor
        for k, (result, value) in enumerate(zip(results, outputs, strict=True)):
            if result is not None and value is not None:
                y = as_array(result)
                known[y.tensor] = matching(value, y, f"output {k}")
        wanted = [x for x in leaves if x is not None and x.dtype.kind in "fc"]
        total = functools.reduce(geon.add, weighted)
        raw = geon.deriv(total, [x.tensor for x in wanted], unreached="zero") if wanted else []
        raw = [geon.cast(each, x.dtype) for each, x in zip(raw, wanted, strict=True)]
        places: dict[Op, str] = {
            x.tensor: f"input {k}" for k, x in enumerate(leaves) if x is not None
        }
        for op in post_order(raw, known):
            if op in places or op.primitive.name == "random_bits":
                what = places.get(op, f"the random output, one of {lower.row.results},")
                raise ArgumentError(
                    f"the gradients need {what} of {lower.name}, which is None; give it"
                )
        rest = iter([array(substitute(g, known), x.dims) for g, x in zip(raw, wanted, strict=True)])  # type: ignore[arg-type]  # a tensor
        return [next(rest) if x is not None and x.dtype.kind in "fc" else None for x in leaves]


def placeholder_like(value: Value | None, param: TensorParam | None) -> PositionalArray | None:
    """Return a placeholder over the axes of a value, or of a param's shape; None without both."""
    if value is not None:
        given = as_array(value)
        tensor = geon.placeholder(given.tensor.axes, given.dtype)
        return array(tensor, [None if d is None else d.name for d in given.dims])
    return None if param is None else leaf_of(param)


def leaf_of(param: TensorParam, name: str | None = None) -> PositionalArray:
    """Return a placeholder of a param; it has no axes for lengths of 1."""
    axes = [
        None if n == 1 else geon.Axis(f"{name or 'd'}_{k}", n) for k, n in enumerate(param.shape)
    ]
    leaf = geon.placeholder([a for a in axes if a is not None], param.dtype, name=name)
    return PositionalArray(leaf, tuple(axes))


def matching(value: Value, like: PositionalArray, what: str) -> Tensor:
    """Return the tensor of a value with the axes of ``like``, whose shape it must have."""
    given = as_array(value, like.dims)
    if given.shape != like.shape:
        raise AxisError(f"{what} is {given}, and must have the shape of {like}; give one that has")
    names = [None if d is None else d.name for d in like.dims]
    tensor = as_array(cast(renamed(given, names), like.dtype)).tensor
    order = like.tensor.axes.names
    return tensor if tensor.axes.names == order else geon.reorder(tensor, order)


def checked_attributes(row: CommandRow, given: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return attributes as sorted pairs that hash; raise ``ArgumentError`` for an unknown one."""
    unknown = sorted(given.keys() - row.attributes.keys())
    if unknown:
        known = ", ".join([name for name in row.attributes if name != "random"]) or "none"
        raise ArgumentError(
            f"{row.name} has no attribute {unknown[0]!r}; its attributes are {known}"
        )
    held = {name: _hashable(value) for name, value in given.items()}
    for p in row.parameters:
        if p.name in held:
            checked.check(p, held[p.name])
    return tuple(sorted(held.items()))


def _hashable(value: Any) -> Any:
    if isinstance(value, (list, tuple, range)):
        return tuple([_hashable(each) for each in value])
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype):
        return value.name
    try:
        hash(value)
    except TypeError:
        raise DTypeError(
            f"an attribute is {value!r:.80}; give a number, a text, a tuple or a function"
        ) from None
    return value
