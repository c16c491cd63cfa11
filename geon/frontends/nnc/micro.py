"""Micro operations: index expressions, elementwise operations, reductions and selections as data.

They compose operations that have no command: ``combine`` of them is interpreted by NumPy loops over
indices, or built of geon's primitives, which compilation fuses and derivatives know.
"""

from __future__ import annotations

import ast
import operator
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import geon

from ...errors import ArgumentError, AxisError, IndexRangeError
from ..positional.values import Value, array, full_tensor

# By name: the function of NumPy arrays and that of tensors.
UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "neg": (np.negative, geon.negative), "log": (np.log, geon.log), "exp": (np.exp, geon.exp),
    "sqrt": (np.sqrt, geon.sqrt), "square": (np.square, geon.square),
    "tanh": (np.tanh, geon.tanh), "abs": (np.abs, geon.absolute), "sin": (np.sin, geon.sin),
    "cos": (np.cos, geon.cos), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), geon.sigmoid),
    "not": (np.logical_not, geon.logical_not),
}  # fmt: skip
BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "plus": (np.add, geon.add), "minus": (np.subtract, geon.subtract),
    "mul": (np.multiply, geon.multiply), "div": (np.divide, geon.divide),
    "pow": (np.power, geon.power), "max": (np.maximum, geon.maximum),
    "min": (np.minimum, geon.minimum), "less": (np.less, geon.less),
    "equal": (np.equal, geon.equal), "and": (np.logical_and, geon.logical_and),
    "or": (np.logical_or, geon.logical_or),
}  # fmt: skip
REDUCE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (np.sum, geon.sum), "prod": (np.prod, geon.prod), "mean": (np.mean, geon.mean),
    "max": (np.max, geon.max), "min": (np.min, geon.min),
    "argmax": (np.argmax, geon.argmax), "argmin": (np.argmin, geon.argmin),
}  # fmt: skip
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg,
}  # fmt: skip


@dataclass(frozen=True)
class Micro:
    """A value over loops ``i0``, ``i1``, ..., one for each of its dimensions."""

    def reindex(self, shape: Sequence[str], index: Sequence[str]) -> Micro:
        """Return the value whose element at ``i0``, ``i1``, ... is this one's at ``index``.

        Both are expressions of +, -, *, // and % over integers, the names of parameters, and
        lengths: ``dA0`` is the length of dimension 0 of the first input, ``dB1`` that of
        dimension 1 of the second. ``index`` may use the loops of the result, too.
        """
        for text in (*shape, *index):
            parsed(text)
        return Reindex(self, tuple(shape), tuple(index))

    def unary(self, op: str) -> Micro:
        """Return a function of each element; ``UNARY`` lists the names."""
        return Unary(self, known(op, UNARY, "unary"))

    def binary(self, op: str, other: Micro) -> Micro:
        """Return a function of the elements of two values of one shape; ``BINARY`` lists names."""
        return Binary(self, other, known(op, BINARY, "binary"))

    def reduce(self, op: str, *axes: int) -> Micro:
        """Return a reduction along dimensions, which keep length 1; ``REDUCE`` lists the names."""
        if known(op, REDUCE, "reduce").startswith("arg") and len(axes) != 1:
            raise ArgumentError(f"reduce {op!r} along {axes}: positions are along one dimension")
        return Reduce(self, op, axes)

    def select(self, axis: int, index: Micro) -> Micro:
        """Return the elements at positions ``index`` along a dimension, which keeps length 1.

        ``index`` is of integers, and has length 1 along the dimension.
        """
        return Select(self, index, axis)


@dataclass(frozen=True)
class Input(Micro):
    """The input of a number from 0 on."""

    number: int


@dataclass(frozen=True)
class Reindex(Micro):
    """``Micro.reindex``."""

    x: Micro
    shape: tuple[str, ...]
    index: tuple[str, ...]


@dataclass(frozen=True)
class Unary(Micro):
    """``Micro.unary``."""

    x: Micro
    op: str


@dataclass(frozen=True)
class Binary(Micro):
    """``Micro.binary``."""

    x: Micro
    y: Micro
    op: str


@dataclass(frozen=True)
class Reduce(Micro):
    """``Micro.reduce``."""

    x: Micro
    op: str
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Select(Micro):
    """``Micro.select``."""

    x: Micro
    index: Micro
    axis: int


def known(op: str, table: Mapping[str, Any], what: str) -> str:
    """Return a name of a table; raise ``ArgumentError`` for one that it lacks."""
    if op not in table:
        raise ArgumentError(f"there is no {what} micro operation {op!r}; give one of {[*table]}")
    return op


# Expressions --------------------------------------------------------------------------------------


@lru_cache(1024)
def parsed(text: str) -> ast.expr:
    """Return the tree of an expression; raise ``ArgumentError`` for one that is not allowed."""
    try:
        tree = ast.parse(str(text), mode="eval").body
    except SyntaxError:
        tree = ast.Constant(None)
    leaves = (ast.Name, ast.operator, ast.unaryop, ast.expr_context)
    for node in ast.walk(tree):
        number = isinstance(node, ast.Constant) and type(node.value) is int
        operation = isinstance(node, (ast.BinOp, ast.UnaryOp)) and type(node.op) in OPERATORS
        if not (number or operation or isinstance(node, leaves)):
            raise ArgumentError(
                f"{text!r} is no index expression; give one of +, -, *, // and % over integers, "
                "lengths such as dA0, loops such as i1, and parameters"
            )
    return tree


def evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression, for integers, arrays or tensors as its names."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ArgumentError(
                f"an index expression has the name {node.id!r}; known are {', '.join(names)}: give "
                "a parameter by its name when it is called"
            )
        return names[node.id]
    parts = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]  # type: ignore[attr-defined]  # of `parsed`
    return OPERATORS[type(node.op)](*[evaluated(part, names) for part in parts])  # type: ignore[attr-defined]  # likewise


@dataclass(frozen=True)
class Affine:
    """A sum of loops times integers, and a number under the name ``""``."""

    terms: Mapping[str, int]

    def __add__(self, other: Any) -> Affine:
        rhs = lifted(other).terms
        return Affine({k: self.terms.get(k, 0) + rhs.get(k, 0) for k in {**self.terms, **rhs}})

    def __mul__(self, other: Any) -> Affine:
        left, right = (self, lifted(other)) if set(lifted(other).terms) <= {""} else (other, self)
        if not isinstance(left, Affine) or not set(right.terms) <= {""}:
            raise TypeError("a product of loops")
        return Affine({k: n * right.terms.get("", 0) for k, n in left.terms.items()})

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: Any) -> Affine:
        return self + lifted(other) * -1

    def __rsub__(self, other: Any) -> Affine:
        return lifted(other) - self

    __radd__, __rmul__ = __add__, __mul__


def lifted(value: Any) -> Affine:
    """Return an integer as an affine expression."""
    return value if isinstance(value, Affine) else Affine({"": value})


def affine(text: str, names: Mapping[str, Any], loops: Sequence[str]) -> dict[str, int] | None:
    """Return the factor of each loop in an expression; None if it is not affine."""
    try:
        made = evaluated(parsed(text), {**names, **{k: Affine({k: 1}) for k in loops}})
    except TypeError:  # a quotient, remainder or product of loops
        return None
    return {"": 0, **{k: n for k, n in lifted(made).terms.items() if n or k == ""}}


# Combinations -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Combined:
    """Outputs of micro operations, as a function of inputs and parameters."""

    outputs: tuple[Micro, ...]

    def interpret(self, *inputs: Any, **parameters: int) -> list[Any]:
        """Return the outputs for arrays, computed by NumPy index by index."""
        return self._walk(_Arrays(), [np.asarray(x) for x in inputs], parameters)

    def tensors(self, *inputs: geon.Tensor, **parameters: int) -> list[geon.Tensor]:
        """Return the outputs for tensors with fixed lengths, of geon's primitives.

        Dimensions are axes in their order; those of outputs are named ``i0``, ``i1``, ...
        """
        return self._walk(_Tensors(), [_loops(x) for x in inputs], parameters)

    def values(self, *inputs: Value, **parameters: int) -> list[Value]:
        """Return the outputs for values with positions, as commands and models take them."""
        made = self.tensors(*[full_tensor(x) for x in inputs], **parameters)
        return [array(y, y.axes) for y in made]

    def gradients(
        self, inputs: Sequence[geon.Tensor], seeds: Sequence[geon.Tensor], **parameters: int
    ) -> list[geon.Tensor]:
        """Return the gradient of each input, over its axes, for gradients ``seeds`` of outputs.

        They are tensors, which can be derived again.
        """
        total: Any = 0.0
        for y, seed in zip(self.tensors(*inputs, **parameters), seeds, strict=True):
            total = total + geon.sum(y * geon.cast_axes(seed, y.axes))
        return list(geon.deriv(total, list(inputs), unreached="zero"))

    def _walk(self, way: Any, inputs: Sequence[Any], parameters: Mapping[str, int]) -> list[Any]:
        names: dict[str, Any] = dict(parameters)
        for letter, x in zip(string.ascii_uppercase, inputs, strict=False):
            names |= {f"d{letter}{k}": length for k, length in enumerate(x.shape)}
        made: dict[Micro, Any] = {}

        def value(op: Micro) -> Any:
            if op not in made:
                if isinstance(op, Input) and not 0 <= op.number < len(inputs):
                    raise ArgumentError(
                        f"input {op.number} of a combination that was given {len(inputs)}; give it"
                    )
                made[op] = inputs[op.number] if isinstance(op, Input) else below(op)
            return made[op]

        def below(op: Any) -> Any:
            x, kind = value(op.x), type(op)
            if kind is Unary:
                return way.unary(op, x)
            if kind is Reduce:
                return way.reduce(op, x)
            if kind is Reindex:
                if len(op.index) != len(x.shape):
                    raise AxisError(
                        f"reindex by {op.index} of a value of {len(x.shape)} dimensions; give an "
                        "index for each"
                    )
                shape = tuple([evaluated(parsed(n), names) for n in op.shape])
                return way.reindex(op, x, shape, names)
            y = value(op.y if kind is Binary else op.index)
            wanted = [1 if kind is Select and k == op.axis else n for k, n in enumerate(x.shape)]
            if list(y.shape) != wanted:
                raise AxisError(
                    f"{kind.__name__.lower()} of values of shapes {tuple(x.shape)} and "
                    f"{tuple(y.shape)}; the second must be {tuple(wanted)}: reindex it"
                )
            return way.binary(op, x, y) if kind is Binary else way.select(op, x, y)

        return [value(op) for op in self.outputs]


def combine(*outputs: Micro) -> Combined:
    """Return micro operations as a function of their inputs."""
    return Combined(outputs)


class _Arrays:
    """Micro operations on NumPy arrays."""

    def unary(self, op: Unary, x: Any) -> Any:
        return UNARY[op.op][0](x)

    def binary(self, op: Binary, x: Any, y: Any) -> Any:
        return BINARY[op.op][0](x, y)

    def reduce(self, op: Reduce, x: Any) -> Any:
        axes = op.axes[0] if op.op.startswith("arg") else op.axes
        return REDUCE[op.op][0](x, axis=axes, keepdims=True)

    def select(self, op: Select, x: Any, y: Any) -> Any:
        return np.take_along_axis(x, y, op.axis)

    def reindex(self, op: Reindex, x: Any, shape: tuple[int, ...], names: Any) -> Any:
        loops = {f"i{k}": each for k, each in enumerate(np.indices(shape, sparse=True))}
        at = [evaluated(parsed(text), {**names, **loops}) for text in op.index]
        for k, each in enumerate(at):
            _inside(op, k, np.min(each, initial=0), np.max(each, initial=0), x.shape[k])
        return np.broadcast_to(x[tuple(at)] if at else x, shape)


class _Tensors:
    """Micro operations on tensors over the axes ``i0``, ``i1``, ..."""

    def unary(self, op: Unary, x: Any) -> Any:
        return UNARY[op.op][1](x)

    def binary(self, op: Binary, x: Any, y: Any) -> Any:
        return BINARY[op.op][1](x, y)

    def reduce(self, op: Reduce, x: Any) -> Any:
        axes = [x.axes[k].name for k in op.axes]
        return geon.broadcast(
            REDUCE[op.op][1](x, axes[0] if op.op.startswith("arg") else axes),
            [a.with_length(1) if a.name in axes else a for a in x.axes],
        )

    def select(self, op: Select, x: Any, y: Any) -> Any:
        axis = x.axes[op.axis]
        found = geon.take_along(x, y[{axis.name: 0}], axis)
        return geon.broadcast(found, [axis.with_length(1) if a is axis else a for a in x.axes])

    def reindex(self, op: Reindex, x: Any, shape: tuple[int, ...], names: Any) -> Any:
        """Return slices and windows where indices are affine, and gathered elements elsewhere."""
        loops = {f"i{k}": geon.Axis(f"i{k}", length) for k, length in enumerate(shape)}
        source = [geon.Axis(f"from{k}", length) for k, length in enumerate(x.shape)]
        y, used, rest = geon.cast_axes(x, source), set[str](), dict[Any, Any]()
        for k, text in enumerate(op.index):
            at, axis = affine(text, names, list(loops)), source[k]
            over = [name for name in at or () if name]
            if at is None or len(over) > 2 or used & {*over} or 0 in shape:
                rest[axis] = text
                continue
            ends = [(loops[name].length - 1) * at[name] for name in over]
            first = at[""] + sum(min(end, 0) for end in ends)
            last = at[""] + sum(max(end, 0) for end in ends)
            _inside(op, k, first, last, axis.length)
            if len(over) == 2 and min(at[name] for name in over) < 0:
                rest[axis] = text
                continue
            used |= {*over}
            if not over:
                y = y[{axis: first}]
            elif len(over) == 1:
                step = at[over[0]]
                begin, end = (first, last + 1) if step > 0 else (last, first - 1)
                part = y[{axis: slice(begin, None if end < 0 else end, step)}]
                y = part.rename({axis.name: over[0]})
            else:
                part = y[{axis: slice(first, last + 1)}]
                inner = geon.Window(loops[over[1]], at[over[0]], at[over[1]])
                y = geon.window(part, {axis: inner}).rename({axis.name: over[0]})
        if rest:
            y = geon.gather(y, {a: self._positions(text, names, loops) for a, text in rest.items()})
        return geon.broadcast(y, list(loops.values()))

    def _positions(self, text: str, names: Any, loops: Mapping[str, geon.Axis]) -> Any:
        """Return the values of an index expression over the loops that it uses."""
        tree = parsed(text)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        over = [axis for name, axis in loops.items() if name in used]
        numbers = {a.name: geon.broadcast(geon.iota(a), over) for a in over}
        return geon.cast(evaluated(tree, {**names, **numbers}), "int64")


def _loops(x: geon.Tensor) -> geon.Tensor:
    """Return a tensor with its axes named as loops; its lengths must be fixed."""
    if not all(isinstance(axis.length, int) for axis in x.axes):
        raise AxisError(
            f"micro operations of {x} (made at {x.line_info}), which has an open length; give its "
            "axes lengths"
        )
    return geon.cast_axes(x, [geon.Axis(f"i{k}", n) for k, n in enumerate(x.shape)])


def _inside(op: Reindex, dimension: int, first: Any, last: Any, length: Any) -> None:
    """Raise ``IndexRangeError`` unless indices lie inside a dimension."""
    if first < 0 or last >= length:
        raise IndexRangeError(
            f"reindex by {op.index}: indices of dimension {dimension} are {first} to {last}, and "
            f"it has 0 to {length - 1}; change the expression {op.index[dimension]!r} or the shape "
            f"{op.shape}"
        )
