"""Chooses the passes that are printed in strips, for instructions that compilers do not emit.

Compilers vectorise operators, but do not use instructions without an operator. A strip is a run of
neighbouring elements; a vector function with such instructions processes all of them at once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.values.dtypes import kind, name_of
from ...kernels.analysis.loop_depth import ELEMENT_DEPTH, Depths
from ...kernels.ir.nest import Keep, Pass, Reduction, Store
from ...kernels.ir.scalar_code import Apply, IndexNumber, Kept, Load, Scalar, Select, indices, walk
from ..scalars import c_expressions
from ..scalars.dialect import Strips
from .scalar_statements import strip_function

STRIP_ELEMENTS = 16  # elements of a strip: a vector of float32, or two of float64, with AVX-512
MIN_STRIP_ROW_ELEMENTS = 64  # minimum elements of a row, lest the horizontal sums dominate
# gcc 12 does not vectorise these in a loop over an exponential's strip of several vectors.
CHOICES = frozenset({"minimum", "maximum", "sign"})
MAX_STRIP_NODES = 128  # maximum nodes of a pass; above, the values of a strip spill from registers


def takes_strips(step: Pass, depths: Depths, strips: Strips, ahead: Container[Scalar] = ()) -> bool:
    """Return True if a pass is also printed for strips: it calls a vector function, on floats.

    It may reduce only sums of floats. Indices may depend only on loop variables and row values,
    except those of loads that are buffered (``ahead``).
    """
    if not step.loops or not all(map(_is_float_sum, step.reductions)):
        return False
    extent = step.loops[-1].extent
    if isinstance(extent, int) and extent < MIN_STRIP_ROW_ELEMENTS:
        return False
    inner = [value for value in walk(*step.computed) if depths.value(value) == ELEMENT_DEPTH]
    puts: list[Store | Keep] = [*step.stores, *step.keeps]
    places = [each.offset for each in puts]
    names = {value.row.name for value in inner if isinstance(value, Apply)}
    if strips.put and "exp" in names and (names & CHOICES or not all(map(_is_float, inner))):
        return False
    return (
        len(inner) <= MAX_STRIP_NODES
        and all(_is_plain(value, depths, strips, ahead) for value in inner)
        and _are_plain(places, depths)
        and any(strip_function(value, strips) is not None for value in inner)
    )


def _is_float_sum(reduction: Reduction) -> bool:
    """Return True if a reduction is a sum with a vector function."""
    dtype = name_of(reduction.states[0])
    adds = c_expressions.strip_function("add", dtype, dtype)
    return reduction.folds == "add" and adds is not None


def _is_float(value: Scalar) -> bool:
    """Return True if a value is a float that is not a select."""
    return kind(value.dtype) == "f" and not isinstance(value, Select)


def _is_plain(value: Scalar, depths: Depths, strips: Strips, ahead: Container[Scalar]) -> bool:
    """Return True if compilers or vector functions vectorise a value."""
    if isinstance(value, Apply):
        serial = c_expressions.is_serial(value.row.name, [name_of(arg.dtype) for arg in value.args])
        return not serial or strip_function(value, strips) is not None
    if isinstance(value, Load) and value in ahead:
        return True
    kinds = (IndexNumber, Kept, Load, Select)
    return isinstance(value, kinds) and _are_plain(indices(value), depths)


def _are_plain(places: Iterable[AffineIndex], depths: Depths) -> bool:
    """Return True if indices depend only on loop variables and row values."""
    return all(
        isinstance(atom, str) or depths.atom(atom) < ELEMENT_DEPTH
        for index in places
        for atom in index.terms
    )
