"""LSTM layers with packed weights."""

from __future__ import annotations

import math
from typing import Any

import geon

from ....errors import ArgumentError, AxisError
from ..control import scan_rows
from ..indexing import select
from ..movement import concat, split
from ..picking import numbers
from ..products import matmul, turned
from ..reductions import reduce
from ..reshaping import reshape, transpose, unsqueeze
from ..values import Value, as_array
from .common import constant, ew, optional
from .filling import dropout as dropped


def lstm_shapes(
    width: int, hidden: int, layers: int, bidirectional: bool, bias: bool,
    projection: int | None = None,
) -> list[tuple[int, ...]]:  # fmt: skip
    """Return the shapes of the parts of the weights: matrices by layer and direction, then biases.

    The matrices of a layer are of its input, of its last output, and with ``projection`` of its
    output. Gates are in the order input, forget, cell, output.
    """
    ways, size = 2 if bidirectional else 1, projection or hidden
    found: list[tuple[int, ...]] = []
    for layer in range(layers):
        inputs = width if layer == 0 else size * ways
        projected = [] if projection is None else [(projection, hidden)]
        found += [(4 * hidden, inputs), (4 * hidden, size), *projected] * ways
    return found + [(4 * hidden,)] * (2 * ways * layers if bias else 0)


def lstm(
    x: Value, lengths: Value | None, hx: Value | None, cx: Value | None, w: Value, *, hidden: int,
    layers: int = 1, bias: bool = True, batch_first: bool = False, bidirectional: bool = False,
    projection: int | None = None, dropout: float = 0.0, is_test: bool = False,
    seed: int | None = None, random: Any = None,
) -> tuple[Value, Value, Value]:  # fmt: skip
    """Return the outputs of all steps, and the last outputs and states of each layer.

    ``x`` is (steps, rows, width), or (rows, steps, width) with ``batch_first``. ``lengths`` are the
    numbers of steps of rows; the rest of a row is 0. ``w`` is one vector of all weights, in the
    order of ``lstm_shapes``. With ``projection`` outputs have that width: a matrix times those of
    an LSTM without it; Sak, Senior and Beaufays, 2014.
    """
    if len(x.shape) != 3:
        raise AxisError(f"{x} is no batch of sequences; give 3 dimensions: steps, rows, width")
    sequence = transpose(x, [1, 0, 2]) if batch_first else x
    steps, rows, width = (int(n) for n in sequence.shape)
    if projection is not None and not 0 < projection < hidden:
        raise ArgumentError(
            f"projection={projection} of hidden={hidden}; give 1 to {hidden - 1}, or None"
        )
    shapes = lstm_shapes(width, hidden, layers, bidirectional, bias, projection)
    total = sum(math.prod(shape) for shape in shapes)
    if tuple(w.shape) != (total,):
        raise AxisError(
            f"the weights are {w}; {layers} layers of hidden={hidden} for width {width} have "
            f"{total} numbers in one dimension"
        )
    sections = split(w, 0, [math.prod(shape) for shape in shapes])
    parts = [reshape(part, shape) for part, shape in zip(sections, shapes, strict=True)]
    biases = parts[-2 * layers * (1 + bidirectional) :] if bias else []
    matrices = iter(parts)
    inside = None
    if lengths is not None:
        at = reshape(lengths, [1, rows, 1])
        inside = ew(geon.less, numbers(steps, 3, 0), at)
    ends: tuple[list[Value], list[Value]] = ([], [])
    zeros = ew(lambda t: t * 0, reduce(geon.sum, select(sequence, 0, 0), [1]))
    sizes = (projection or hidden, hidden)
    for layer in range(layers):
        outputs = []
        for way in range(1 + bidirectional):
            k = layer * (1 + bidirectional) + way
            gates = matmul(sequence, turned(next(matrices)))
            gates = optional(geon.add, gates, *biases[2 * k : 2 * k + 2])
            recurrent = turned(next(matrices))
            projected = None if projection is None else turned(next(matrices))
            start = [
                ew(geon.add, zeros, constant([[0.0] * size], zeros.dtype))
                if each is None
                else select(each, 0, k)
                for each, size in zip((hx, cx), sizes, strict=True)
            ]
            last, values = _steps(gates, start, recurrent, projected, inside, way == 1)
            outputs.append(values)
            for kept, state in zip(ends, last, strict=True):
                kept.append(unsqueeze(state, [0]))
        sequence = concat(outputs, 2)
        if dropout and not is_test and layer < layers - 1:
            sequence = dropped(sequence, p=dropout, random=random)[0]
    result = transpose(sequence, [1, 0, 2]) if batch_first else sequence
    return result, concat(ends[0], 0), concat(ends[1], 0)


def _steps(
    gates: Value, start: list[Value], recurrent: Value, projected: Value | None,
    inside: Value | None, reverse: bool,
) -> tuple[list[Value], Value]:  # fmt: skip
    """Return the last output and state, and all outputs, of a layer in one direction."""
    weights = as_array(recurrent)
    narrow = None if projected is None else as_array(projected)

    def cell(i: geon.Tensor, f: geon.Tensor, g: geon.Tensor, c: geon.Tensor) -> geon.Tensor:
        return geon.sigmoid(f) * c + geon.sigmoid(i) * geon.tanh(g)

    def body(old: list[Value], slices: list[Value]) -> tuple[list[Value], list[Value]]:
        h, c = old
        whole = ew(geon.add, slices[0], matmul(h, weights))
        i, f, g, o = split(whole, 1, [whole.shape[1] // 4] * 4)
        state = ew(cell, i, f, g, c)
        output = ew(lambda o, c: geon.sigmoid(o) * geon.tanh(c), o, state)
        if narrow is not None:
            output = matmul(output, narrow)
        if len(slices) == 1:
            return [output, state], [output]
        now = slices[1]
        kept = [ew(geon.where, now, new, last) for new, last in ((output, h), (state, c))]
        return kept, [ew(lambda n, t: geon.where(n, t, 0), now, output)]

    last, values = scan_rows(
        body, start, [gates] if inside is None else [gates, inside], gates.shape[0], reverse
    )
    return last, values[0]
