"""``summary``: a table of a layer and those inside of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....op_graph.lengths import Length

if TYPE_CHECKING:
    from ..layers import Layer

HEAD = ("layer", "variable", "elements", "bytes")


def summary(layer: Layer) -> str:
    """A line for each layer and each of its variables, then the sums; expressions where open."""
    rows = [HEAD, *lines(layer, layer.name or "", 0)]
    counts: list[tuple[str, int | Length, int | Length]] = []
    for what, leaves in (
        ("trained", layer.parameters()),
        ("not trained", [v for v in layer.all_variables() if not v.trainable]),
    ):
        size: int | Length = 0
        taken: int | Length = 0
        for leaf in leaves:
            size, taken = size + leaf.axes.size, taken + leaf.axes.size * leaf.dtype.itemsize
        counts.append((what, size, taken))
    rows += [(what, "", shown(size), shown(taken)) for what, size, taken in counts]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return "\n".join(
        f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip()
        for a, b, c, d in rows
    )


def lines(layer: Layer, place: str, depth: int) -> Iterator[tuple[str, str, str, str]]:
    """The rows of a layer and those inside of it."""
    title = f"{'  ' * depth}{place + ': ' if place else ''}{type(layer).__name__}"
    own = [
        (f"{v}{leaf.axes}", shown(leaf.axes.size), shown(leaf.axes.size * leaf.dtype.itemsize))
        for v, leaf in layer.variables.items()
    ]
    for number, row in enumerate(own or [("", "", "")]):
        yield (title if number == 0 else "", *row)
    for inner, each in layer.layers():
        yield from lines(each, inner, depth + 1)


def shown(count: int | Length) -> str:
    """A count with commas, or its expression."""
    return f"{count:,}" if isinstance(count, int) else str(count)
