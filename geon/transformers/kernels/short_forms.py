"""What a nest is where its rows are short, which a call sees where lengths are open."""

from __future__ import annotations

from dataclasses import replace

from ...op_graph.affine import Size
from ...op_graph.lengths import product
from .elements import Operands
from .flat_rows import flat_parts
from .nests import BESIDE, SHORT, NestMaker
from .regions import Facts, Region
from .scalar import RandomBits, indices, walk
from .types import Fused, Nest, Pass
from .uses import divides_rows


def with_short_rows(
    nest: Nest, fused: Fused, operands: Operands, region: Region | None = None
) -> Nest:
    """A nest that reduces rows of open length, with what takes them side by side where they are
    short; over a ``region``, or over all. All of its passes go over as much, and store nothing.
    """
    region = region or Region()
    size = reduced_size(nest)
    if isinstance(size, int) or nest.across is not None or not nest.rows or nest.arrays:
        return nest
    if region.boxes or not (nest.steps and isinstance(nest.steps[0], Pass)):
        return nest
    for step in nest.passes:
        drawn = any(isinstance(node, RandomBits) for node in walk(*step.reduced))
        alike = product(loop.extent for loop in step.loops) == size
        if step.stores or not step.reductions or drawn or not alike:
            return nest
    facts = Facts(known=list(operands.known))
    short = NestMaker(fused, operands, region, facts, across=True, short=True).make()
    if short.across is None or divides_rows(short):
        return nest
    sizes = (size - 2, SHORT - size, short.across.extent - BESIDE)
    shortness = tuple([size for size in sizes if not isinstance(size, int)])
    return replace(nest, short=short, shortness=shortness)


def with_flat_rows(nest: Nest, fused: Fused, operands: Operands) -> Nest:
    """A nest that only stores, with what goes over many rows as one where they are short.

    Rows of known length have it alone, where the nest would be one loop that divides, or one of
    few turns for each row.
    """
    if goes_straight(nest):
        return nest
    facts = Facts(known=list(operands.known))
    short = NestMaker(fused, operands, Region(), facts, across=True).flat_rows()
    parts = None if short is None else flat_parts(short)
    if short is None or short.across is None or parts is None:
        return nest
    row, rows = short.passes[0].loops[0].extent, short.across.extent
    sizes = parts.tests(row, rows)
    if parts.most == 0 or any(isinstance(size, int) and size < 0 for size in sizes):
        return nest
    if isinstance(row, int):
        open_groups = parts.grouped and not isinstance(rows, int)
        slower = parts.scattered and parts.is_light
        chosen = is_plain(nest) and not open_groups and not slower
        return replace(nest, short=short) if chosen else nest
    shortness = tuple([size for size in sizes if not isinstance(size, int)])
    return replace(nest, short=short, shortness=shortness)


def goes_straight(nest: Nest) -> bool:
    """Whether a nest is one loop over all, in which nothing is found by a division."""
    if nest.rows or not is_plain(nest):
        return False
    stores = nest.passes[0].stores
    found = [store.offset for store in stores]
    for node in walk(*[store.value for store in stores]):
        found += indices(node)
    return all(isinstance(atom, str) for index in found for atom in index.terms)


def is_plain(nest: Nest) -> bool:
    """Whether a nest is one pass with one loop, and neither in pieces nor by rows side by side."""
    alone = not nest.pieces and nest.across is None and len(nest.steps) == 1
    return alone and len(nest.passes) == 1 and len(nest.passes[0].loops) == 1


def reduced_size(nest: Nest) -> Size:
    """The elements of a row that the first pass of a nest reduces."""
    return product(loop.extent for step in nest.passes[:1] for loop in step.loops)
