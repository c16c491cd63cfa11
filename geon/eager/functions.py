"""Leaving eager computation: functions as one graph, and the graph behind an array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import GeonError, SymbolicError
from ..op_graph.core.source_info import user_call
from ..op_graph.op_graph import Tensor
from ..op_graph.rows.leaves import input_leaf
from .arrays import Array, check_array
from .nodes import local
from .recording import Expanded, has_array, record, symbolic

WHY = (
    "whose graph must not depend on data: geon.where, geon.cond and geon.while_loop choose by values "
    "within a graph; or leave geon.eager.function out"
)
F = TypeVar("F", bound=Callable[..., Any])


def function(f: F) -> F:
    """Return ``f`` as one computation: called with arrays, it is recorded once for their types.

    The arguments are arrays, or numbers and other values that are part of the program, in lists,
    tuples and dictionaries. ``f`` returns tensors in the same structures; assignments that it
    returns are run. Its Python code runs at the first call with arguments of new types or values
    only. Raises ``SymbolicError`` if ``f`` reads a value, as ``if``, ``float`` and ``print`` do:
    its graph would depend on the data.
    """

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        if local.recording or not has_array([*args, *keywords.values()]):
            return f(*args, **keywords)
        try:
            return record(recorded, args, keywords)
        except SymbolicError as error:
            if WHY in str(error):
                raise
            raise SymbolicError(
                f"{error}\n{user_call(f.__name__)} is a geon.eager.function, {WHY}"
            ) from None

    @functools.wraps(f)
    def recorded(*args: Any, **keywords: Any) -> Any:
        return f(*args, **keywords)

    return call  # type: ignore[return-value]  # the same signature


def graph(x: Array) -> Tensor:
    """Return the tensor behind an array, with placeholders for the data that it starts from.

    ``graph(x).placeholders()`` lists them in order of first use, for
    ``transformer.computation(graph, *placeholders)``. Variables stand for themselves, except for
    versions before their last assignment. Axes are open where those of the data were, unless the
    graph states a length.
    """
    found = Expanded([check_array(x, "graph")._node], [])
    for open in (True, False):
        if open and any(call.again is None for call, _ in found.plan):
            continue
        given: list[Any] = []
        for node, leaf in zip(found.inputs, found.leaves, strict=True):
            axes = node.type.declared if open else node.type.axes
            given.append(
                input_leaf(axes, node.type.dtype, site=node.site) if leaf is None else leaf
            )
        try:
            with symbolic():
                made: Tensor = found.tensors(given, open)[found.numbers[x._node]]
            return made
        except GeonError:
            if not open:
                raise
    raise AssertionError("unreachable: the graph was built with these lengths before")
