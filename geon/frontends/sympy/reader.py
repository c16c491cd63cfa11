"""``from_sympy``: SymPy expressions as one geon graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import sympy
from sympy.core.function import AppliedUndef, UndefinedFunction
from sympy.functions.elementary.piecewise import ExprCondPair

import geon

from ...errors import ArgumentError, AxisError
from ...op_graph.axes.axes import Axes, Axis, as_axes
from ...op_graph.axes.lengths import Length
from ...op_graph.building.constants import as_tensor
from ...op_graph.building.elementwise_build import Elementwise
from ...op_graph.core.argument_hints import public
from ...op_graph.core.source_info import user_call
from ...op_graph.op_graph import Tensor
from ...op_graph.rows.leaves import length_value
from ...op_graph.values.dtypes import as_dtype, kind
from ...op_graph.values.tree import flat, is_mapping
from .functions import BY_CLASS
from .indexing import NO_SCOPE, Scope, element, is_element, reduced, scope_of

if TYPE_CHECKING:
    from ...op_graph.building.typing import DTypeLike, NewAxes

REDUCTIONS = (sympy.Sum, sympy.Product)
MAX_INT64 = 2**63 - 1
MAX_SHOWN_UNKNOWN = 12  # maximum classes and symbols that one error lists
Place = tuple[Any, Scope]  # an expression, and the indices that sums around it bind


@public
def from_sympy(
    expressions: Any,
    symbols: Mapping[Any, Any],
    *,
    axes: NewAxes | None = None,
    dtype: DTypeLike = "float64",
) -> Any:
    """Return SymPy expressions as tensors of one graph, which shares equal subexpressions.

    ``expressions`` is an expression, a matrix or array, or a list, tuple or dictionary of these.
    The result has the same structure, in the same order. A matrix becomes a tensor over ``axes``,
    one axis for each dimension; a column or row may have a single axis. Each result has the axes of
    the symbols that it contains, in their order in ``symbols``.

    ``symbols`` gives for each symbol, or its name, a tensor, a number, or axes. Axes, ``()`` for a
    scalar, make a placeholder of ``dtype`` with the name of the symbol. The key of an indexed base
    or of a matrix symbol stands for a tensor whose axes its indices go along; the key of a function
    for a function of tensors. ``Sum`` and ``Product`` over integers become reductions; their limits
    may contain open lengths of the tensors' axes, as symbols of their names. Numbers take the dtype
    of the tensors that they meet; results without symbols have ``dtype``.

    Raises ``ArgumentError`` with all symbols and functions that are unknown, before anything is
    built, and ``AxisError`` for axes that do not fit.
    """
    leaves, structure = flat(expressions, "expressions")
    reader = _ExpressionReader(symbols, as_dtype(dtype))
    elements = [_elements(value, name) for name, value in leaves]
    reader.check([root for roots, _ in elements for root in roots])
    found = []
    for (name, _), (roots, shape) in zip(leaves, elements, strict=True):
        values = [reader.read(root) for root in roots]
        found.append(values[0] if shape is None else reader.stacked(values, shape, axes, name))
    return structure.filled(iter(found))


def _elements(value: Any, name: str) -> tuple[list[Any], tuple[int, ...] | None]:
    """Return the expressions of a matrix or array, row-major, and its shape; or one and None."""
    if isinstance(value, (sympy.MatrixBase, sympy.NDimArray)):
        return list(sympy.flatten(value.tolist())), tuple(int(length) for length in value.shape)
    if isinstance(value, Tensor):
        raise ArgumentError(f"{user_call('from_sympy')}: {name} is {value}, a tensor already")
    try:
        made = sympy.sympify(value, strict=True)
    except sympy.SympifyError:
        made = None
    if not isinstance(made, sympy.Basic):
        raise ArgumentError(
            f"{user_call('from_sympy')}: {name} is {value!r} of type {type(value).__name__}, no "
            "SymPy expression; give one, such as sympy.sympify(text)"
        )
    return [made], None


class _ExpressionReader:
    """The values of expressions, each computed once; ``symbols`` and ``dtype`` as in the call."""

    def __init__(self, symbols: Mapping[Any, Any], dtype: Any) -> None:
        if not is_mapping(symbols):
            raise ArgumentError(
                f"{user_call('from_sympy')}: symbols is a dictionary from symbols to tensors or "
                f"axes, such as {{x: [N]}}, not {symbols!r}"
            )
        self.dtype = dtype
        self.functions: dict[Any, Any] = {}
        self.leaves: dict[Any, Any] = {}
        for key, value in symbols.items():
            if isinstance(key, (UndefinedFunction, sympy.core.function.FunctionClass)):
                self.functions[key] = value
            else:
                self.leaves[self._key(key)] = self._leaf(key, value)
        tensors = [value for value in self.leaves.values() if isinstance(value, Tensor)]
        self.order = tuple(dict.fromkeys(name for x in tensors for name in x.axes.names))
        # Open lengths by name: a limit of a sum may contain them.
        self.lengths = {
            axis.open_name: axis.expression for x in tensors for axis in x.axes if axis.open_name
        }
        # Keyed by the ids of expression and scope; the places keep both alive. Equality of deep
        # expressions is recursive, identity is not.
        self.values: dict[tuple[int, int], Any] = {}
        self.parts: dict[tuple[int, int], list[Place]] = {}

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return key
        if isinstance(key, (sympy.Symbol, sympy.MatrixSymbol, sympy.IndexedBase)):
            return _label(key)
        raise ArgumentError(
            f"{user_call('from_sympy')}: a key of symbols is {key!r}; give a symbol, an indexed "
            "base, a matrix symbol, a function or a name"
        )

    def _leaf(self, key: Any, value: Any) -> Any:
        if isinstance(value, (Axis, Axes)) or (
            isinstance(value, (list, tuple)) and all(isinstance(part, Axis) for part in value)
        ):
            return geon.placeholder(as_axes(value), self.dtype, name=self._key(key))
        return length_value(value) if isinstance(value, Length) else as_tensor(value)

    # Checking -----------------------------------------------------------------------------------

    def check(self, roots: Sequence[Any]) -> None:
        """Raise ``ArgumentError`` with the symbols and classes that nothing is known about."""
        bound: set[Any] = set()
        symbols: dict[Any, None] = {}
        classes: dict[str, None] = {}
        seen: dict[int, Any] = {}  # with the expressions, so that no other gets their ids
        waiting = list(reversed(roots))
        while waiting:
            expr = waiting.pop()
            if id(expr) in seen:
                continue
            seen[id(expr)] = expr
            if isinstance(expr, sympy.Symbol):
                symbols[expr] = None
            elif isinstance(expr, REDUCTIONS):
                bound |= {limit[0] for limit in expr.limits}
                waiting.append(expr.function)
            elif is_element(expr):
                if _label(expr.args[0]) not in self.leaves:
                    symbols[expr.args[0]] = None
                waiting += expr.args[1:]
            elif isinstance(expr, sympy.Mul):
                waiting += reversed(expr.args)
            elif _number(expr) is None and self._function(expr) is None:
                classes[expr.func.__name__ if expr.args else str(expr)] = None
                waiting += expr.args if isinstance(expr, sympy.Function) else ()
            else:
                waiting += reversed(expr.args)
        known = {*self.leaves, *self.lengths}
        missing = [s for s in symbols if s not in bound and _label(s) not in known]
        self._refuse(missing, list(classes))

    def _refuse(self, symbols: Sequence[Any], classes: Sequence[str]) -> None:
        problems = []
        if symbols:
            names = sorted({_label(symbol) for symbol in symbols})
            problems.append(
                f"symbols has no entry for {_listed(names)}; add {{{names[0]}: tensor}}, or "
                f"{{{names[0]}: [axes]}} for a placeholder"
            )
        if classes:
            names = sorted(classes)
            problems.append(
                f"geon has nothing for {_listed(names)}; write it in functions of geon with "
                ".doit() or .rewrite(...), or add the function to symbols, with a function of "
                "tensors as its value"
            )
        if problems:
            raise ArgumentError(f"{user_call('from_sympy')}: {'; '.join(problems)}")

    def _function(self, expr: Any) -> Any:
        """Return the function that computes an expression from its arguments, or None."""
        cls = type(expr)
        if cls not in self.functions:
            known = (RULES.get(base) or BY_CLASS.get(base) for base in cls.__mro__)
            undefined = issubclass(cls, AppliedUndef)
            self.functions[cls] = None if undefined else next(filter(None, known), None)
        return self.functions[cls]

    # Building -----------------------------------------------------------------------------------

    def read(self, root: Any) -> Tensor:
        """Return the tensor of an expression, with axes in the order of the symbols."""
        value = self._value(root)
        x = as_tensor(value)
        if x.weak and kind(x.dtype) != "b":
            x = geon.cast(x, self.dtype)
        known = [name for name in self.order if name in x.axes]
        return geon.reorder(x, [*known, *(name for name in x.axes.names if name not in known)])

    def _value(self, root: Any) -> Any:
        stack: list[Place] = [(root, NO_SCOPE)]
        while stack:
            expr, scope = stack[-1]
            key = (id(expr), id(scope))
            if key in self.values:
                stack.pop()
                continue
            parts = self.parts.get(key)
            if parts is None:
                parts = self.parts[key] = self._parts(expr, scope)
            missing = [part for part in parts if (id(part[0]), id(part[1])) not in self.values]
            if missing:
                stack += reversed(missing)
                continue
            values = [self.values[id(part), id(inner)] for part, inner in parts]
            self.values[key] = self._built(expr, scope, values, parts)
            stack.pop()
        return self.values[id(root), id(NO_SCOPE)]

    def _parts(self, expr: Any, scope: Scope) -> list[Place]:
        """Return the expressions whose values that of ``expr`` is computed from."""
        if isinstance(expr, REDUCTIONS):
            return [(expr.function, scope_of(expr, scope, self.lengths, self.order))]
        if isinstance(expr, sympy.Mul):
            return [(part.base if _is_inverse(part) else part, scope) for part in expr.args]
        if is_element(expr):
            return [(part, scope) for part in expr.args[1:]]
        return [] if _number(expr) is not None else [(part, scope) for part in expr.args]

    def _built(self, expr: Any, scope: Scope, values: list[Any], parts: list[Place]) -> Any:
        number = _number(expr)
        if number is not None:
            return number
        if isinstance(expr, sympy.Symbol):
            index = scope.get(expr)
            return self._named(expr) if index is None else index.value
        if isinstance(expr, REDUCTIONS):
            return reduced(expr, values[0], parts[0][1], scope)
        if is_element(expr):
            return element(expr, self._named(expr.args[0]), values, scope)
        if isinstance(expr, sympy.Mul):
            return _product(expr, _meeting(values) if scope else values)
        function = self._function(expr)
        values = [self._real(x) if _is_real(function) else x for x in values]
        return function(*(_meeting(values) if scope else values))

    def _named(self, symbol: Any) -> Any:
        name = _label(symbol)
        found = self.leaves.get(name)
        if found is None and name in self.lengths:
            return length_value(self.lengths[name])
        if found is None:
            raise ArgumentError(
                f"{user_call('from_sympy')}: the index {symbol} is used outside of its sum, and "
                "symbols has no entry for it"
            )
        return found

    def _real(self, value: Any) -> Any:
        """Return a tensor of integers in ``dtype``, for functions whose values are no integers."""
        is_tensor = isinstance(value, Tensor) and not value.weak
        return geon.cast(value, self.dtype) if is_tensor and kind(value.dtype) == "i" else value

    def stacked(self, values: list[Tensor], shape: tuple[int, ...], axes: Any, name: str) -> Tensor:
        """Return the elements of a matrix or array as one tensor, with ``axes`` first."""
        over = Axes() if axes is None else as_axes(axes)
        lengths = shape if len(over) == len(shape) else tuple(n for n in shape if n != 1)
        if axes is None or len(over) != len(lengths):
            raise AxisError(
                f"{user_call('from_sympy')}: {name} has the shape {shape}"
                + ("" if axes is None else f" and axes are {over}")
                + "; give axes=, an axis for each dimension"
            )
        new = [axis.with_length(n) for axis, n in zip(over, lengths, strict=True)]
        for axis, made in zip(over, new, strict=True):
            if isinstance(axis.expression, int) and axis.expression != made.expression:
                raise AxisError(
                    f"{user_call('from_sympy')}: {name} has the shape {shape}, and the axis {axis} "
                    f"of axes= has length {axis.expression}, not {made.expression}"
                )
        union = _union(values)
        rows = [geon.broadcast(x, union) for x in values]
        line = Axis("_".join(over.names) + "_elements", len(values))
        return geon.unflatten(geon.stack(rows, line), line, new)


def _label(symbol: Any) -> str:
    """Return the name by which a symbol, indexed base or matrix symbol is known."""
    return str(getattr(symbol, "name", symbol))


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - MAX_SHOWN_UNKNOWN
    return ", ".join(names[:MAX_SHOWN_UNKNOWN]) + (f" and {rest} more" if rest > 0 else "")


def _is_inverse(expr: Any) -> bool:
    return isinstance(expr, sympy.Pow) and expr.exp is sympy.S.NegativeOne


def _is_real(function: Any) -> bool:
    """Return True for primitives that compute integers in float32, and functions made of them."""
    return not isinstance(function, Elementwise) or function.rule == "float"


def _number(expr: Any) -> int | float | bool | None:
    """Return the value of a number or truth value, None for other expressions."""
    if isinstance(expr, (sympy.logic.boolalg.BooleanTrue, sympy.logic.boolalg.BooleanFalse)):
        return bool(expr)
    if not isinstance(expr, (sympy.Number, sympy.NumberSymbol)):
        return None
    if isinstance(expr, sympy.Integer) and abs(int(expr)) <= MAX_INT64:
        return int(expr)
    try:
        return expr.p / expr.q if isinstance(expr, sympy.Rational) else float(expr)
    except OverflowError:
        return float("inf") if expr > 0 else float("-inf")


def _product(expr: Any, values: list[Any]) -> Any:
    """Return the factors over the divisors; a leading -1 negates the first factor."""
    pairs = list(zip(expr.args, values, strict=True))
    above = [value for part, value in pairs if not _is_inverse(part)]
    below = [value for part, value in pairs if _is_inverse(part)]
    if len(above) > 1 and expr.args[0] is sympy.S.NegativeOne:
        above[:2] = [geon.negative(above[1])]
    multiplied = reduce(geon.multiply, above or [1])
    return geon.divide(multiplied, reduce(geon.multiply, below)) if below else multiplied


def _meeting(values: list[Any]) -> list[Any]:
    """Return operands of which the first tensor has all axes, if two of them share none.

    Inside of a sum the index has an axis of its own, and meets every tensor.
    """
    tensors = [x for x in values if isinstance(x, Tensor) and len(x.axes)]
    if len(tensors) < 2:
        return values
    first = tensors[0]
    return [geon.broadcast(x, _union(tensors)) if x is first else x for x in values]


def _union(tensors: Sequence[Tensor]) -> Axes:
    return Axes(list({axis.name: axis for x in tensors for axis in x.axes}.values()))


def _piecewise(*pairs: tuple[Any, Any]) -> Any:
    """Return the first value whose condition holds; NaN where none does."""
    *pairs_before, (value, condition) = pairs
    total = value if condition is True else geon.where(condition, value, float("nan"))
    for value, condition in reversed(pairs_before):
        total = geon.where(condition, value, total)
    return total


# Of classes whose arguments are not all expressions.
RULES: dict[Any, Any] = {
    sympy.Piecewise: _piecewise,
    ExprCondPair: lambda value, condition: (value, condition),
}
