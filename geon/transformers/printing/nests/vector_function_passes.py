"""Which passes are taken in strips, so that an instruction set's own instructions come into loops.

Compilers make vectors of operators, but not of a processor's instruction that no operator stands
for. A strip is some neighbouring elements, for all of which such an instruction is called at once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ....op_graph.axes.affine import Affine
from ....op_graph.values.dtypes import kind, name_of
from ...kernels.analysis.loop_depth import ELEMENT, Depths
from ...kernels.ir.nest import Keep, Pass, Reduction, Store
from ...kernels.ir.scalar_code import Apply, IndexNumber, Kept, Load, Scalar, Select, indices, walk
from ..scalars import c_expressions
from ..scalars.dialect import Strips
from .scalar_statements import strip_function

STRIP = 16  # elements that are taken at once: a vector of float32, or two of float64
SHORT = 64  # elements in a row below which strips are not worth their sums over lanes
# gcc 12 makes no vectors of these in a loop over an exponential's strip of several vectors.
CHOICES = frozenset({"minimum", "maximum", "sign"})
MOST = 128  # nodes of a pass above which the values of a strip are no longer kept in registers


def takes_strips(step: Pass, depths: Depths, strips: Strips, ahead: Container[Scalar] = ()) -> bool:
    """Whether a pass is printed for strips too: it calls a function of strips, and is plain floats.

    Sums of floats are all that it may reduce; indices are those of loops alone, but for loads that
    were read ``ahead``.
    """
    if not step.loops or not all(map(_is_float_sum, step.reductions)):
        return False
    extent = step.loops[-1].extent
    if isinstance(extent, int) and extent < SHORT:
        return False
    inner = [value for value in walk(*step.computed) if depths.value(value) == ELEMENT]
    puts: list[Store | Keep] = [*step.stores, *step.keeps]
    places = [each.offset for each in puts]
    names = {value.row.name for value in inner if isinstance(value, Apply)}
    if strips.put and "exp" in names and (names & CHOICES or not all(map(_is_float, inner))):
        return False
    return (
        len(inner) <= MOST
        and all(_is_plain(value, depths, strips, ahead) for value in inner)
        and _are_plain(places, depths)
        and any(strip_function(value, strips) is not None for value in inner)
    )


def _is_float_sum(reduction: Reduction) -> bool:
    """Whether strips have a function that adds up what a reduction folds."""
    dtype = name_of(reduction.states[0])
    adds = c_expressions.strip_function("add", dtype, dtype)
    return reduction.folds == "add" and adds is not None


def _is_float(value: Scalar) -> bool:
    """Whether a value is one of floats that is not chosen by its place."""
    return kind(value.dtype) == "f" and not isinstance(value, Select)


def _is_plain(value: Scalar, depths: Depths, strips: Strips, ahead: Container[Scalar]) -> bool:
    """Whether a value is one that compilers make vectors of, or strips."""
    if isinstance(value, Apply):
        serial = c_expressions.is_serial(value.row.name, [name_of(arg.dtype) for arg in value.args])
        return not serial or strip_function(value, strips) is not None
    if isinstance(value, Load) and value in ahead:
        return True
    kinds = (IndexNumber, Kept, Load, Select)
    return isinstance(value, kinds) and _are_plain(indices(value), depths)


def _are_plain(places: Iterable[Affine], depths: Depths) -> bool:
    """Whether indices have no atoms but loops' variables, and what a row knows."""
    return all(
        isinstance(atom, str) or depths.atom(atom) < ELEMENT
        for index in places
        for atom in index.terms
    )
