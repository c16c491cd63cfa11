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

from ...errors import ArgumentError, AxisError, DTypeError, IndexRangeError
from ..neon.checks import at_least_zero
from ..positional.values import Value, array, full_tensor, position, positions
from .checks import checked
from .tensors import lengths_of

Table = dict[str, Callable[..., Any]]
# NumPy's functions build geon's ops of tensors; reductions have the same names in both.
UNARY: Table = {
    "neg": np.negative, "log": np.log, "exp": np.exp, "sqrt": np.sqrt, "square": np.square,
    "tanh": np.tanh, "abs": np.abs, "sin": np.sin, "cos": np.cos, "not": np.logical_not,
}  # fmt: skip
BINARY: Table = {
    "plus": np.add, "minus": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "max": np.maximum, "min": np.minimum, "less": np.less, "equal": np.equal,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip
REDUCE: Table = {n: getattr(geon, n) for n in "sum prod mean max min argmax argmin".split()}
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg,
}  # fmt: skip


@checked
@dataclass(frozen=True)
class Micro:
    """A value over loops ``i0``, ``i1``, ..., one for each of its dimensions.

    ``kind`` is "input", "reindex", "unary", "binary", "reduce" or "select", ``args`` what it is
    computed from, and ``data`` the rest: a number, a shape and indices, names, dimensions.
    """

    kind: str
    args: tuple[Micro, ...]
    data: tuple[Any, ...]

    def reindex(self, shape: Sequence[str], index: Sequence[str]) -> Micro:
        """Return the value whose element at ``i0``, ``i1``, ... is this one's at ``index``.

        Both are expressions of +, -, *, // and % over integers, the names of parameters, and
        lengths: ``dA0`` is the length of dimension 0 of the first input, ``dB1`` that of
        dimension 1 of the second. ``index`` may use the loops of the result, too.
        """
        for text in (*shape, *index):
            parsed(text)
        return Micro("reindex", (self,), (tuple(shape), tuple(index)))

    def unary(self, op: str) -> Micro:
        """Return a function of each element; ``UNARY`` lists the names."""
        return Micro("unary", (self,), (known(op, UNARY, "unary"),))

    def binary(self, op: str, other: Micro) -> Micro:
        """Return a function of the elements of two values of one shape; ``BINARY`` lists names."""
        return Micro("binary", (self, other), (known(op, BINARY, "binary"),))

    def reduce(self, op: str, *axes: int) -> Micro:
        """Return a reduction along dimensions, which keep length 1; ``REDUCE`` lists the names."""
        if known(op, REDUCE, "reduce").startswith("arg") and len(axes) != 1:
            raise ArgumentError(
                f"{op!r} along {axes}, and positions are along one dimension; give one"
            )
        return Micro("reduce", (self,), (op, axes))

    def select(self, axis: int, index: Micro) -> Micro:
        """Return the elements at positions ``index`` along a dimension, which keeps length 1.

        ``index`` is of integers, and has length 1 along the dimension.
        """
        return Micro("select", (self, index), (axis,))


@checked
def input(number: int) -> Micro:
    """Return the input of a number from 0 on."""
    at_least_zero("micro.input", "number", number)
    return Micro("input", (), (number,))


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
    values = [evaluated(part, names) for part in parts]
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and np.isscalar(values[1]) and not values[1]:  # type: ignore[attr-defined]  # likewise
        raise ArgumentError(f"{ast.unparse(node)!r} divides by 0; give another divisor")
    return OPERATORS[type(node.op)](*values)  # type: ignore[attr-defined]  # likewise


def affine(text: str, names: Mapping[str, Any], loops: Sequence[str]) -> dict[str, int] | None:
    """Return the factor of each loop in an expression, and its constant under ``""``.

    None if it is not affine: a product, quotient or remainder of loops.
    """
    tree = parsed(text)

    def uses(node: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id in loops for n in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Add, ast.Sub)):
            sides = uses(node.left) + uses(node.right)
            if sides > isinstance(node.op, ast.Mult):
                return None
    zero = {**names, **dict.fromkeys(loops, 0)}
    first = evaluated(tree, zero)
    steps = {loop: evaluated(tree, {**zero, loop: 1}) - first for loop in loops}
    return {"": first, **{loop: step for loop, step in steps.items() if step}}


# Combinations -------------------------------------------------------------------------------------


@checked
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
        if len(seeds) != len(self.outputs):
            raise ArgumentError(
                f"{len(seeds)} seeds for {len(self.outputs)} outputs; give one for each"
            )
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
                made[op] = below(op)
            return made[op]

        def below(op: Micro) -> Any:
            if op.kind == "input":
                if op.data[0] >= len(inputs):
                    raise ArgumentError(
                        f"input {op.data[0]} of a combination that was given {len(inputs)}; give it"
                    )
                return inputs[op.data[0]]
            args = [value(arg) for arg in op.args]
            x = args[0]
            if op.kind == "reindex":
                shape, index = op.data
                if len(index) != len(x.shape):
                    raise AxisError(
                        f"reindex by {index} of a value of {len(x.shape)} dimensions; give an "
                        "index for each"
                    )
                lengths = lengths_of([evaluated(parsed(n), names) for n in shape])
                return way.reindex(op, x, lengths, names)
            if len(args) == 2:
                axis = position(op.data[0], len(x.shape)) if op.kind == "select" else None
                wanted = tuple([1 if k == axis else n for k, n in enumerate(x.shape)])
                if tuple(args[1].shape) != wanted:
                    raise AxisError(
                        f"{op.kind} of values of shapes {tuple(x.shape)} and "
                        f"{tuple(args[1].shape)}; the second must be {wanted}: reindex it"
                    )
            if op.kind == "select" and args[1].dtype.kind not in "iu":
                raise DTypeError(f"the index is {args[1].dtype}; give integers")
            if op.kind == "reduce":
                positions(op.data[1], len(x.shape))
            if op.kind in ("unary", "binary"):
                return (UNARY if op.kind == "unary" else BINARY)[op.data[0]](*args)
            return getattr(way, op.kind)(*args, *op.data)

        return [value(op) for op in self.outputs]


@checked
def combine(*outputs: Micro) -> Combined:
    """Return micro operations as a function of their inputs."""
    return Combined(outputs)


class _Arrays:
    """Micro operations on NumPy arrays."""

    def reduce(self, x: Any, op: str, axes: tuple[int, ...]) -> Any:
        return getattr(np, op)(x, axis=axes[0] if op.startswith("arg") else axes, keepdims=True)

    def select(self, x: Any, index: Any, axis: int) -> Any:
        """Return the elements at positions of a dimension, which keeps length 1."""
        if index.size and not 0 <= index.min() <= index.max() < x.shape[axis]:
            raise IndexRangeError(
                f"positions {index.min()} to {index.max()} along dimension {axis}, which has 0 to "
                f"{x.shape[axis] - 1}; give others"
            )
        return np.take_along_axis(x, index, axis)

    def reindex(self, op: Micro, x: Any, shape: tuple[int, ...], names: Any) -> Any:
        """Return the elements at the indices, computed for all loops."""
        loops = {f"i{k}": each for k, each in enumerate(np.indices(shape, sparse=True))}
        at = [evaluated(parsed(text), {**names, **loops}) for text in op.data[1]]
        for k, each in enumerate(at):
            if np.size(each):
                _inside(op, k, np.min(each), np.max(each), x.shape[k])
        return np.broadcast_to(x[tuple(at)] if at else x, shape)


class _Tensors:
    """Micro operations on tensors over the axes ``i0``, ``i1``, ..."""

    def reduce(self, x: Any, op: str, axes: tuple[int, ...]) -> Any:
        over = [x.axes[k].name for k in axes]
        return _with_ones(x, REDUCE[op](x, over[0] if op.startswith("arg") else over), over)

    def select(self, x: Any, index: Any, axis: int) -> Any:
        name = x.axes[axis].name
        return _with_ones(x, geon.take_along(x, index[{name: 0}], name), [name])

    def reindex(self, op: Micro, x: Any, shape: tuple[int, ...], names: Any) -> Any:
        """Return slices and windows where indices are affine, and gathered elements elsewhere."""
        loops = {f"i{k}": geon.Axis(f"i{k}", length) for k, length in enumerate(shape)}
        source = [geon.Axis(f"from{k}", length) for k, length in enumerate(x.shape)]
        y, used, rest = geon.cast_axes(x, source), set[str](), dict[Any, Any]()
        for k, text in enumerate(op.data[1]):
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


def _with_ones(x: geon.Tensor, reduced: geon.Tensor, names: Sequence[str]) -> geon.Tensor:
    """Return a tensor with the axes of ``x``, of length 1 those of these names."""
    return geon.broadcast(reduced, [a.with_length(1) if a.name in names else a for a in x.axes])


def _loops(x: geon.Tensor) -> geon.Tensor:
    """Return a tensor with its axes named as loops; its lengths must be fixed."""
    if not all(isinstance(axis.length, int) for axis in x.axes):
        raise AxisError(
            f"micro operations of {x} (made at {x.line_info}), which has an open length; give its "
            "axes lengths"
        )
    return geon.cast_axes(x, [geon.Axis(f"i{k}", n) for k, n in enumerate(x.shape)])


def _inside(op: Micro, dimension: int, first: Any, last: Any, length: Any) -> None:
    """Raise ``IndexRangeError`` unless indices lie inside a dimension."""
    if first < 0 or last >= length:
        raise IndexRangeError(
            f"reindex by {op.data[1]}: indices of dimension {dimension} are {first} to {last}, and "
            f"it has 0 to {length - 1}; change the expression {op.data[1][dimension]!r} or the "
            f"shape {op.data[0]}"
        )
