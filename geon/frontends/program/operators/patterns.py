"""Operators of functions over named axes: a pattern of letters says which dimension is which axis.

    over("... I J, ... I K -> ... J K", f)

is the function of an operator for ``f(X, Y, I, J, K)``. A letter is an axis, which operands share
where they have the same letter, and ``...`` stands for further dimensions in front, as many in
each. A letter of a result alone is the next axis that ``f`` made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import geon

from ....errors import AxisError
from ....op_graph.axes.lengths import may_equal
from ...positional.elementwise import common_names
from ...positional.movement import with_axis
from ...positional.values import PositionalArray, Value, array, as_array, fresh, renamed
from .rows import Function, settings_of, with_attributes

REST = "..."


def over(pattern: str, f: Function, **attributes: Any) -> Function:
    """Return the function of an operator for ``f(*tensors, *axes, **attributes)``.

    The axes are names, in the order of their letters in ``pattern``. The attributes of the operator
    are the numbers, flags and texts that ``f`` has by default, and ``attributes``.
    """
    left, _, right = pattern.partition("->")
    operands, results = ([each.split() for each in side.split(",")] for side in (left, right))

    def build(*values: Value, **settings: Any) -> Any:
        tensors, names = _operands(values, operands)
        found = f(*tensors, *[names[k] for k in names if isinstance(k, str)], **settings)
        listed = found if isinstance(found, tuple) else (found,)
        made = [_result(t, each, names) for t, each in zip(listed, results, strict=True)]
        return tuple(made) if isinstance(found, tuple) else made[0]

    return with_attributes(build, settings_of(f), attributes)


def _operands(
    values: Sequence[Value], letters: Sequence[list[str]]
) -> tuple[list[geon.Tensor], dict[Any, Any]]:
    """Return the tensors of operands, and the names of axes by letter or number of a dimension.

    Dimensions of ``...`` have the numbers 0, 1, ...; None is the name of one of length 1. Raises
    ``AxisError`` for other ranks, and for lengths that differ under one letter.
    """
    counts = {
        len(v.shape) - len(own) + 1: v
        for v, own in zip(values, letters, strict=True)
        if own[:1] == [REST]
    }
    if len(counts) > 1:
        x, y = counts.values()
        raise AxisError(
            f"{x} and {y} have {len(x.shape)} and {len(y.shape)} dimensions; give equal"
        )
    count = next(iter(counts), 0)
    given: list[PositionalArray] = []
    for value, own in zip(values, letters, strict=True):
        x = as_array(value)
        for k, letter in enumerate(reversed(own), 1):
            x = x if letter == REST else with_axis(x, len(x.dims) - k, letter.lower())
        given.append(x)
    outer = [
        PositionalArray(x.tensor, x.dims[:count])
        for x, own in zip(given, letters, strict=True)
        if own[:1] == [REST]
    ]
    names: dict[Any, Any] = dict(enumerate(common_names(outer) if outer else ()))
    first: dict[str, tuple[geon.Axis, PositionalArray]] = {}
    tensors = []
    for x, own in zip(given, letters, strict=True):
        listed: list[Any] = [*range(count)] if own[:1] == [REST] else []
        listed += [letter for letter in own if letter != REST]
        for letter, dim in zip(listed, x.dims, strict=True):
            if not isinstance(letter, str) or dim is None:
                continue
            before, y = first.setdefault(letter, (dim, x))
            names.setdefault(letter, fresh(dim.name, [n for n in names.values() if n]))
            if not may_equal(before.expression, dim.expression):
                raise AxisError(
                    f"dimension {listed.index(letter)} of {x} has the length {dim.expression}, and "
                    f"{y} has {before.expression} for it; give equal"
                )
        tensors.append(renamed(x, [names[letter] for letter in listed]).tensor)
    return tensors, names


def _result(tensor: geon.Tensor, letters: Sequence[str], names: Mapping[Any, Any]) -> Value:
    """Return a result whose dimensions have these letters."""
    made = iter([axis.name for axis in tensor.axes if axis.name not in names.values()])
    dims: list[Any] = []
    for letter in letters:
        if letter == REST:
            dims += [name for k, name in names.items() if not isinstance(k, str)]
        else:
            dims.append(names[letter] if letter in names else next(made, None))
    return array(tensor, dims)
