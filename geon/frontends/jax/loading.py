"""``load``: a jaxpr, or the jaxpr of a function, as tensors, variables and computations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

import geon

from ...errors import ArgumentError
from ...op_graph.core.source_info import building
from ...op_graph.op_graph import Leaf
from ...op_graph.values.dtypes import FLOATS
from ..positional.imported_model import (
    ImportedModel,
    building_node,
    refuse_other_inputs,
    refuse_unsupported,
)
from ..positional.naming import named_axes, parsed_length
from ..positional.programs import Declared, conforming, named_results
from ..positional.values import Size, full_tensor, host, input_array, weight
from .operators.indexing import READS
from .operators.movement import MOVEMENT
from .operators.random import Keys
from .table import primitive_table

MAX_HOST_ELEMENTS = 1024  # of an array that the jaxpr closes over, which is a constant


def load(
    program: Any,
    *examples: Any,
    axes: Mapping[str, Sequence[Any]] | None = None,
    parameters: Sequence[str] = (),
    name: str | None = None,
) -> ImportedModel:
    """Return the model of a function for arguments like ``examples``, or of a ``ClosedJaxpr``.

    ``examples`` are arrays, ``jax.ShapeDtypeStruct`` or structures of these. Dimensions of
    ``jax.export.symbolic_shape`` are open axes, so one compiled program serves all their lengths;
    all others are fixed. Inputs are called after the function's parameters and the place in their
    structure, such as ``params.w``; those of a jaxpr are ``input_0`` and so on. ``axes`` names the
    axes of inputs: ``{"x": ["N", "C"]}``.

    ``parameters`` names arguments of the function whose arrays become variables, trainable if they
    are of a float dtype, with the examples as initial values. Large arrays that a program closes
    over are variables that are not trained. The outputs have the keys that the function
    returns, or are called ``output``, or ``output_0`` and so on.

    Functions with a derivative of their own (``custom_jvp``, ``custom_vjp``) are built as they are
    computed; derivatives in geon are those of that computation. Prints and callbacks are left out.

    Raises ``UnsupportedError`` with the names of all primitives that geon does not have, before
    anything is built, and ``ArgumentError``, which names the equation and the reason, for one that
    cannot be built.
    """
    if isinstance(program, ClosedJaxpr):
        if examples or parameters:
            raise ArgumentError(
                "a jaxpr has its shapes and its constants; examples and parameters= are for "
                "functions"
            )
        names = [f"input_{k}" for k in range(len(program.jaxpr.invars))]
        values: list[Any] = [None] * len(names)
        closed, tree = program, None
    else:
        closed, shapes = jax.make_jaxpr(program, return_shape=True)(*examples)
        tree = jax.tree_util.tree_structure(shapes)
        names, values = _arguments(program, examples, parameters)
    used = name or str(getattr(program, "__name__", "jaxpr"))
    cure = "write those parts of the function with other operations"
    refuse_unsupported(used, unknown_primitives(closed.jaxpr), "primitives", cure)
    loading = _JaxprLoader(closed, names, values, dict(axes or {}), used)
    outputs = loading.results
    whole = outputs if tree is None else jax.tree_util.tree_unflatten(tree, outputs)
    named = dict(named_results(whole))
    return ImportedModel(used, loading.inputs, named, loading.variables, {})


def _arguments(
    function: Callable[..., Any], examples: Sequence[Any], parameters: Sequence[str]
) -> tuple[list[str], list[Any]]:
    """Return the names of the leaves of arguments, and the values of those that are parameters."""
    try:
        own = [p for p in inspect.signature(function).parameters.values()
               if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    except (TypeError, ValueError):
        own = []
    firsts = [own[k].name if k < len(own) else f"input_{k}" for k in range(len(examples))]
    unknown = set(parameters) - set(firsts)
    if unknown:
        raise ArgumentError(
            f"parameters: the function has no argument {sorted(unknown)[0]!r}; it has "
            f"{', '.join(firsts)}"
        )
    names, values = [], []
    for first, example in zip(firsts, examples, strict=True):
        for path, leaf in jax.tree_util.tree_flatten_with_path(example)[0]:
            names.append(".".join(filter(None, [first, path_name(path)])))
            values.append(np.asarray(leaf) if first in parameters else None)
    return names, values


# Lengths and names --------------------------------------------------------------------------------


def length_of(dimension: Any) -> Size:
    """Return a dimension as an integer, or as a length expression if it is symbolic."""
    if isinstance(dimension, (int, np.integer)):
        return int(dimension)
    found = parsed_length(str(dimension))
    if found is None:
        raise ArgumentError(
            f"the dimension {dimension} of the jaxpr; geon's lengths cannot express it"
        )
    return found


def with_lengths(value: Any) -> Any:
    """Return a parameter of an equation with its symbolic dimensions as length expressions."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple([with_lengths(each) for each in value])
    return length_of(value) if jax.export.is_symbolic_dim(value) else value


def path_name(path: Sequence[Any]) -> str:
    """Return the place of a leaf in a structure, such as ``layers.0.w``."""
    parts = []
    for entry in path:
        found = next(
            (getattr(entry, n) for n in ("key", "idx", "name") if hasattr(entry, n)), entry
        )
        parts.append(str(found))
    return ".".join(parts)


# Checks -------------------------------------------------------------------------------------------


def inner_jaxprs(parameters: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """Yield the jaxprs among the parameters of an equation."""
    for value in parameters.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, ClosedJaxpr):
                yield each.jaxpr
            elif isinstance(each, Jaxpr):
                yield each


def needed_equations(jaxpr: Jaxpr) -> list[Any]:
    """Return the equations that the results depend on, in their order."""
    needed = {v for v in jaxpr.outvars if isinstance(v, Var)}
    found = []
    for equation in reversed(jaxpr.eqns):
        if any(v in needed for v in equation.outvars):
            found.append(equation)
            needed |= {v for v in equation.invars if isinstance(v, Var)}
    return found[::-1]


def unknown_primitives(jaxpr: Jaxpr) -> Iterator[str]:
    """Yield the primitives of needed equations, of inner jaxprs too, that have no row."""
    for equation in needed_equations(jaxpr):
        if equation.primitive.name not in primitive_table():
            yield equation.primitive.name
            continue
        for inner in inner_jaxprs(equation.params):
            yield from unknown_primitives(inner)


# Building -----------------------------------------------------------------------------------------


class _JaxprLoader:
    """The parts of a model while it is loaded."""

    def __init__(
        self,
        closed: ClosedJaxpr,
        names: Sequence[str],
        values: Sequence[Any],
        axes: dict[str, Any],
        name: str,
    ) -> None:
        self.name = name
        self.inputs: dict[str, Leaf] = {}
        self.variables: dict[str, Leaf] = {}
        inputs = [n for n, value in zip(names, values, strict=True) if value is None]
        refuse_other_inputs("axes", axes, name, inputs)
        start: list[Any] = []
        for variable, each, value in zip(closed.jaxpr.invars, names, values, strict=True):
            lengths = [length_of(n) for n in variable.aval.shape]
            if value is not None:
                start.append(weight(value, each, self.variables, value.dtype.name in FLOATS))
            elif jax.dtypes.issubdtype(variable.aval.dtype, jax.dtypes.extended):
                made = named_axes(each, (*lengths, 2), None)
                words = input_array(self._input(each, made, "uint32"))
                start.append(primitive_table()["random_wrap"].build(words, impl="fry"))
            else:
                made = named_axes(each, lengths, axes.get(each))
                start.append(input_array(self._input(each, made, variable.aval.dtype)))
        constants: list[Any] = []
        for k, value in enumerate(closed.consts):
            array = np.asarray(value)
            is_small = array.size <= MAX_HOST_ELEMENTS
            large = weight(array, f"constant_{k}", self.variables, False)
            constants.append(host(array) if is_small else large)
        found = self.build(closed.jaxpr, constants, start, True)
        self.results = [full_tensor(_plain(value)) for value in found]
        order = [each for each in (*names, *self.variables) if each in self.variables]
        self.variables = {each: self.variables[each] for each in order}

    def _input(self, name: str, axes: list[geon.Axis], dtype: Any) -> Leaf:
        self.inputs[name] = geon.placeholder(axes, dtype, name=name)
        return self.inputs[name]

    def build(
        self, jaxpr: Jaxpr, constants: Sequence[Any], given: Sequence[Any], is_outer: bool = False
    ) -> list[Any]:
        """Build the needed equations for values of the arguments; return the results."""
        values: dict[Var, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        values.update(zip(jaxpr.invars, given, strict=True))

        def read(atom: Any) -> Any:
            if isinstance(atom, Literal):
                return host(np.asarray(atom.val, atom.aval.dtype))
            return values[atom]

        with building() as current:
            for number, equation in enumerate(needed_equations(jaxpr)):
                what = f"equation {number} ({equation.primitive.name})"
                if is_outer:
                    current.site = (self.name, number, what)
                with building_node(what, self.name):
                    found = self._equation(equation, [read(atom) for atom in equation.invars])
                values.update(zip(equation.outvars, found, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _inner(self, jaxpr: Any, given: Sequence[Any]) -> list[Any]:
        if isinstance(jaxpr, Jaxpr):
            return self.build(jaxpr, (), given)
        return self.build(jaxpr.jaxpr, [host(np.asarray(c)) for c in jaxpr.consts], given)

    def _equation(self, equation: Any, operands: list[Any]) -> Sequence[Any]:
        row = primitive_table()[equation.primitive.name]
        parameters = {key: with_lengths(value) for key, value in equation.params.items()}
        declared = [
            Declared(v.aval.dtype, tuple([length_of(n) for n in v.aval.shape]))
            for v in equation.outvars
        ]
        more = {"builder": self._inner, "parameters": parameters, "results": declared}
        keywords = {key: {**parameters, **more}[key] for key in row.takes}
        if any(isinstance(each, Keys) for each in operands) and row.name in {**MOVEMENT, **READS}:
            halves = [row.build(*[_word(each, k) for each in operands], **keywords) for k in (0, 1)]
            return [Keys((halves[0], halves[1]))]
        found = row.build(*operands, **keywords)
        return conforming(found if isinstance(found, tuple) else (found,), declared)


def _word(operand: Any, number: int) -> Any:
    return operand.words[number] if isinstance(operand, Keys) else operand


def _plain(value: Any) -> Any:
    if isinstance(value, Keys):
        return primitive_table()["random_unwrap"].build(value)
    return value
