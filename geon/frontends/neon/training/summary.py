"""``Summary``: a table of a layer and its inner layers, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ....op_graph.axes.lengths import Length
from ....op_graph.core.traversal import post_order
from ....op_graph.op_graph import Leaf, Op, Tensor
from .operations import operations, ops_between

if TYPE_CHECKING:
    from ..layers import Layer

Count = int | Length
HEAD = ("layer", "result", "variable", "elements", "bytes", "operations")
TEXT_COLUMNS = 3  # number of left-aligned text columns; number columns follow


@dataclass(frozen=True, eq=False)
class SummaryLine:
    """One layer of a summary: its path in the network, its class, and its own figures.

    ``results`` are the axes of its results, call by call. ``variables`` are its own, by name.
    ``operations`` are its own for one example, without inner layers.
    """

    depth: int
    place: str
    kind: str
    results: tuple[str, ...]
    variables: tuple[tuple[str, Leaf], ...]
    operations: Count

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield its table rows, one for each variable or result, whichever are more."""
        title = f"{'  ' * self.depth}{self.place + ': ' if self.place else ''}{self.kind}"
        own = [
            (f"{place}{leaf.axes}", format_count(leaf.axes.size), format_count(count_bytes(leaf)))
            for place, leaf in self.variables
        ]
        for number in range(max(1, len(own), len(self.results))):
            first = number == 0
            yield (
                title if first else "",
                self.results[number] if number < len(self.results) else "",
                *(own[number] if number < len(own) else ("", "", "")),
                format_count(self.operations) if first else "",
            )


@dataclass(frozen=True)
class Summary:
    """The layers of a network with the axes of their results, their variables, and operations.

    ``str`` is a text, and notebooks show a table. Operations are those of one example without
    training, and each counts in the innermost layer that makes it; elements, bytes and operations
    are expressions if lengths are open.
    """

    lines: tuple[SummaryLine, ...]
    elements: Count
    bytes: Count
    untrained_elements: Count
    untrained_bytes: Count
    operations: Count

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows below the head: those of the layers, then the sums."""
        found = [row for line in self.lines for row in line.rows()]
        trained = (
            format_count(self.elements),
            format_count(self.bytes),
            format_count(self.operations),
        )
        rest = (format_count(self.untrained_elements), format_count(self.untrained_bytes), "")
        return [*found, ("trained", "", "", *trained), ("not trained", "", "", *rest)]

    def __str__(self) -> str:
        rows = [HEAD, *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
        return "\n".join(
            "  ".join(
                f"{cell:<{width}}" if column < TEXT_COLUMNS else f"{cell:>{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="text-align: left">{name}</th>' for name in HEAD)
        return f"<table><tr>{head}</tr>{''.join(map(_html, self.rows()))}</table>"


def summary(layer: Layer, result: Tensor | None = None) -> Summary:
    """Return the summary of a layer, with the calls that ``result`` depends on, or all known ones.

    A layer that is called several times has the operations of all these calls; ops that several
    layers share are counted once.
    """
    used = None if result is None else frozenset(post_order([result]))
    places = list(walk_layers(layer, layer.name or "", 0))
    owner: dict[Op, Layer] = {}
    for _, _, each in places:  # inner layers come after outer ones and claim their ops
        owner |= dict.fromkeys(own_ops(each, used), each)
    parts: dict[Layer, list[Op]] = {}
    for op, each in owner.items():
        parts.setdefault(each, []).append(op)
    found = [
        SummaryLine(
            depth,
            place,
            type(each).__name__,
            tuple([str(y.axes) for y, _ in calls_in(each, used)]),
            tuple(each.variables.items()),
            operations(parts.get(each, [])),
        )
        for place, depth, each in first_places(places)
    ]
    trained = layer.parameters()
    rest = [leaf for leaf in layer.all_variables() if not leaf.trainable]
    return Summary(
        tuple(found),
        total(leaf.axes.size for leaf in trained),
        total(count_bytes(leaf) for leaf in trained),
        total(leaf.axes.size for leaf in rest),
        total(count_bytes(leaf) for leaf in rest),
        total(line.operations for line in found),
    )


def walk_layers(layer: Layer, place: str, depth: int) -> Iterator[tuple[str, int, Layer]]:
    """Yield a layer and its inner layers, with paths and depths, outer ones first."""
    yield place, depth, layer
    for inner, each in layer.layers():
        yield from walk_layers(each, inner, depth + 1)


def first_places(places: Iterable[tuple[str, int, Layer]]) -> Iterator[tuple[str, int, Layer]]:
    """Yield each layer once, at its first path."""
    seen: set[Layer] = set()
    for place, depth, each in places:
        if each not in seen:
            seen.add(each)
            yield place, depth, each


def calls_in(layer: Layer, used: frozenset[Op] | None) -> list[tuple[Tensor, list[Tensor]]]:
    """Return the calls of a layer whose results are among these ops."""
    return [(y, given) for y, given in layer.calls if used is None or y in used]


def own_ops(layer: Layer, used: frozenset[Op] | None) -> list[Op]:
    """Return the ops of a layer's calls, including those of inner layers."""
    return [op for y, given in calls_in(layer, used) for op in ops_between([y], given)]


def total(counts: Iterable[Count]) -> Count:
    """Return the sum of counts."""
    found: Count = 0
    for count in counts:
        found = found + count
    return found


def count_bytes(leaf: Leaf) -> Count:
    """Return the bytes of a variable."""
    return leaf.axes.size * leaf.dtype.itemsize


def format_count(count: Count) -> str:
    """Return a count with commas, or its expression."""
    return f"{count:,}" if isinstance(count, int) else str(count)


def _html(row: tuple[str, ...]) -> str:
    """Return a row of the table as HTML; paths stay indented."""
    cells = []
    for column, cell in enumerate(row):
        side = "left" if column < TEXT_COLUMNS else "right"
        space = "; white-space: pre" if column == 0 else ""
        cells.append(f'<td style="text-align: {side}{space}">{escape(cell)}</td>')
    return f"<tr>{''.join(cells)}</tr>"
