"""``to_sympy``: geon's ops as SymPy expressions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import sympy

from ...errors import ArgumentError
from ...op_graph.axes.axes import Axis
from ...op_graph.axes.lengths import to_sympy as length_to_sympy
from ...op_graph.building.constants import constant_value
from ...op_graph.building.elementwise_build import Elementwise
from ...op_graph.core.argument_hints import public
from ...op_graph.core.source_info import user_call
from ...op_graph.core.traversal import Same
from ...op_graph.op_graph import Leaf, Op, RegionOp, Tensor
from ...op_graph.values.dtypes import kind
from ...op_graph.values.tree import flat, is_mapping
from .functions import BY_PRIMITIVE

MAX_EVALUATED_DEPTH = 64  # levels below which SymPy evaluates: its rules recurse, and deep ones end
MAX_UNROLLED_ELEMENTS = 64  # elements of a maximum, minimum, any or all
MAX_EXACT_DENOMINATOR = 1024  # floats that are such fractions become rationals, others floats
Place = tuple[Same, tuple[Any, ...]]  # an op, and its index along each of its axes


@public
def to_sympy(ops: Any, symbols: Mapping[Tensor, Any] | None = None) -> Any:
    """Return a tensor as a SymPy expression; a list or dictionary of tensors as one of these.

    A placeholder or variable without axes becomes a symbol with its name, real or integer. One with
    axes becomes an element of an indexed base, whose index along an axis ``N`` is the symbol
    ``i_N``. ``symbols`` gives other symbols, or indexed bases, for tensors. Sums, products and
    contractions over axes become ``Sum`` and ``Product``; an open length is a symbol of its name.
    Casts to floats, ``stop_gradient`` and copies leave no trace. Rounded functions such as ``gelu``
    become their definitions, and floats that are small dyadic fractions become rationals.

    Raises ``ArgumentError`` with all ops that have no expression, and their lines.
    """
    leaves, structure = flat(ops, "ops")
    if not (symbols is None or is_mapping(symbols)):
        raise ArgumentError(
            f"{user_call('to_sympy')}: symbols={symbols!r} is no mapping; give a dictionary from "
            "tensors to symbols, such as {x: sympy.Symbol('x')}"
        )
    writer = _Writer(symbols or {})
    for name, op in leaves:
        if not isinstance(op, Tensor):
            raise ArgumentError(
                f"{user_call('to_sympy')}: {name} is {op!r} of type {type(op).__name__}; give a "
                "tensor"
            )
    writer.free = {_free_index(axis) for _, op in leaves for axis in op.axes}
    found = [writer.write(op) for _, op in leaves]
    writer.refuse()
    return structure.filled(iter(found))


class _Writer:
    """The expressions of ops at indices, each made once."""

    def __init__(self, symbols: Mapping[Tensor, Any]) -> None:
        self.symbols: dict[Op, Any] = dict(symbols.items())
        self.free: set[Any] = set()  # the indices along the axes of all results
        self.found: dict[Place, Any] = {}
        self.depths: dict[Place, int] = {}
        self.names: dict[str, Op] = {}
        self.refused: dict[Op, str] = {}

    def write(self, root: Tensor) -> Any:
        """Return the expression of ``root`` at its free indices."""
        start: Place = (Same(root), tuple(map(_free_index, root.axes)))
        stack = [start]
        while stack:
            place = stack[-1]
            if place in self.found:
                stack.pop()
                continue
            op, index = place[0].op, place[1]
            parts = self._parts(op, index)
            missing = [part for part in parts if part not in self.found]
            if missing:
                stack += reversed(missing)
                continue
            depth = 1 + max([self.depths[part] for part in parts], default=0)
            with sympy.evaluate(depth <= MAX_EVALUATED_DEPTH):
                self.found[place] = self._made(op, index, [self.found[part] for part in parts])
            self.depths[place] = depth
            stack.pop()
        return self.found[start]

    def refuse(self) -> None:
        """Raise ``ArgumentError`` with the ops that have no expression, if there are any."""
        if self.refused:
            listed = "\n".join(
                f"  {_shown(op)} made at {op.line_info}{reason}"
                for op, reason in self.refused.items()
            )
            raise ArgumentError(
                f"{user_call('to_sympy')}: these ops have no SymPy expression:\n{listed}\n"
                "give a symbol for the value, to_sympy(op, symbols={tensor: sympy.Symbol(name)})"
            )

    def _parts(self, op: Op, index: tuple[Any, ...]) -> list[Place]:
        """Return the ops, at indices, whose expressions that of an op contains."""
        name = op.primitive.name
        if op in self.symbols or op in self.refused or not op.args:
            return []
        along = dict(zip(op.axes.names, index, strict=True))
        if name == "rename":
            return [(Same(op.args[0]), index)]
        if name in UNROLLED:
            return self._unrolled(op, along)
        if name in REDUCED:
            along = {**along, **self._bound_at(op, index)}
        elif not (
            _is_known(op.primitive) if isinstance(op.primitive, Elementwise) else name in KEPT
        ):
            self.refused[op] = ""
            return []
        return [(Same(arg), tuple([along[axis.name] for axis in arg.axes])) for arg in op.args]

    def _unrolled(self, op: Op, along: Mapping[str, Any]) -> list[Place]:
        """Return all elements that a reduction without an indexed form reduces."""
        lengths = [axis.expression for axis in _reduced_axes(op)]
        known = [length for length in lengths if isinstance(length, int)]
        if len(known) < len(lengths) or math.prod(known) > MAX_UNROLLED_ELEMENTS:
            limit = f"needs at most {MAX_UNROLLED_ELEMENTS} elements along axes of known length"
            self.refused[op] = f", which {limit}"
            return []
        x, names, found = op.args[0], op.attrs.reduced, []
        for place in itertools.product(*map(range, known)):
            at = {**along, **dict(zip(names, map(sympy.Integer, place), strict=True))}
            found.append((Same(x), tuple([at[axis.name] for axis in x.axes])))
        return found

    def _bound_at(self, op: Op, index: tuple[Any, ...]) -> dict[str, Any]:
        """Return index symbols for the axes that a reduction reduces, unlike those around it."""
        around, found = {*index, *self.free}, {}
        for axis in _reduced_axes(op):
            names = itertools.chain(
                [f"i_{axis.name}"], (f"i_{axis.name}_{k}" for k in itertools.count(1))
            )
            symbols = map(_index, names)
            found[axis.name] = next(symbol for symbol in symbols if symbol not in around)
        return found

    def _made(self, op: Op, index: tuple[Any, ...], values: list[Any]) -> Any:
        name = op.primitive.name
        if op in self.symbols:
            return _at(self.symbols[op], index)
        if op in self.refused:
            return sympy.Dummy()
        if isinstance(op, Leaf):
            return self._leaf(op, index)
        if name in UNROLLED:
            return UNROLLED[name](*values)
        if name in REDUCED:
            body = sympy.Mul(*values)
            bound = self._bound_at(op, index)
            limits = [
                (bound[axis.name], 0, length_to_sympy(axis.expression) - 1)
                for axis in _reduced_axes(op)
            ]
            return REDUCED[name](body, *limits)
        if isinstance(op.primitive, Elementwise):
            return _applied(op.primitive, values)
        made = KEPT[name](op, index, values)
        if made is None:
            self.refused[op] = ""
            return sympy.Dummy()
        return made

    def _leaf(self, op: Leaf, index: tuple[Any, ...]) -> Any:
        if op.name is None:
            self.refused[op] = ", which has no name"
            return sympy.Dummy()
        same = self.names.setdefault(op.name, op)
        if same is not op:
            self.refused[op] = f", whose name is also that of the one made at {same.line_info}"
        facts = FACTS[kind(op.dtype)]
        if index:
            return sympy.IndexedBase(op.name, **facts)[index]
        return sympy.Symbol(op.name, **facts)


FACTS = {"f": {"real": True}, "i": {"integer": True}, "b": {}}


def _shown(op: Op) -> str:
    """Return an op as messages show it: a result of a region by the region's name."""
    if op.args and isinstance(op.args[0], RegionOp):
        return f"a result of {op.args[0].primitive.name}"
    return f"{op.primitive.name}, {op}"


def _index(name: str) -> Any:
    return sympy.Symbol(name, integer=True, nonnegative=True)


def _free_index(axis: Axis) -> Any:
    return _index(f"i_{axis.name}")


def _at(symbol: Any, index: tuple[Any, ...]) -> Any:
    return symbol[index] if isinstance(symbol, sympy.IndexedBase) else symbol


def _reduced_axes(op: Op) -> list[Axis]:
    names = op.attrs.over if op.primitive.name == "dot" else op.attrs.reduced
    return [op.args[0].axes[name] for name in names]


REDUCED: dict[str, Any] = {"sum": sympy.Sum, "dot": sympy.Sum, "prod": sympy.Product}
UNROLLED: dict[str, Any] = {
    "max": sympy.Max,
    "min": sympy.Min,
    "first_max": sympy.Max,
    "any": sympy.Or,
    "all": sympy.And,
}


# Elementwise ops ----------------------------------------------------------------------------------


def _where(condition: Any, x: Any, y: Any) -> Any:
    return sympy.Piecewise((x, condition), (y, True))


# Primitives whose class takes other arguments, or that several classes make. The formulas of the
# rows themselves serve all others.
FORMULAS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "floordivide": lambda x, y: sympy.floor(x / y),
    "trunc": lambda x: sympy.sign(x) * sympy.floor(sympy.Abs(x)),
}


def _is_known(row: Elementwise) -> bool:
    return row.name in FORMULAS or row.name in BY_PRIMITIVE or row.sympy is not None


def _applied(row: Elementwise, values: list[Any]) -> Any:
    made = FORMULAS.get(row.name) or BY_PRIMITIVE.get(row.name)
    if made is not None:
        return made(*values)
    letters, formula = _formula(row.sympy or "")
    return formula.xreplace(dict(zip(letters, values, strict=False)))


@cache
def _formula(text: str) -> tuple[tuple[Any, ...], Any]:
    """Return the letters of a row's formula, and the formula."""
    letters = tuple(sympy.Dummy(letter) for letter in "xyz")
    return letters, sympy.sympify(text, locals=dict(zip("xyz", letters, strict=True)))


# Other ops ----------------------------------------------------------------------------------------


def _constant(op: Op, index: tuple[Any, ...], values: list[Any]) -> Any:
    if index:
        return None
    return _number(constant_value(op).item())


def _number(value: Any) -> Any:
    """Return a Python number as a SymPy one: exact for integers and small dyadic fractions."""
    if isinstance(value, bool):
        return sympy.true if value else sympy.false
    if isinstance(value, int):
        return sympy.Integer(value)
    if math.isnan(value) or math.isinf(value):
        return sympy.nan if math.isnan(value) else sympy.oo * (1 if value > 0 else -1)
    top, bottom = value.as_integer_ratio()
    exact = bottom <= MAX_EXACT_DENOMINATOR and abs(top) < 2**53
    return sympy.Rational(top, bottom) if exact else sympy.Float(value)


def _cast(op: Op, index: tuple[Any, ...], values: list[Any]) -> Any:
    source, target = kind(op.args[0].dtype), kind(op.dtype)
    if target == "b" and source != "b":
        return sympy.Ne(values[0], 0)
    if source == "b" and target != "b":
        return _where(values[0], sympy.Integer(1), sympy.Integer(0))
    if source == "f" and target == "i":
        return FORMULAS["trunc"](values[0])
    return values[0]


def _same(op: Op, index: tuple[Any, ...], values: list[Any]) -> Any:
    return values[0]


KEPT: dict[str, Callable[..., Any]] = {
    "constant": _constant,
    "cast": _cast,
    "stop_gradient": _same,
    "copy": _same,
    "broadcast": _same,
    "reorder": _same,
    "rename": _same,
    "iota": lambda op, index, values: index[0],
    "length": lambda op, index, values: length_to_sympy(op.attrs.length),
    "polygamma": lambda op, index, values: sympy.polygamma(op.attrs.n, values[0]),
}
