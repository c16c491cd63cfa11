"""Lowerings of matrix factorisations: their layout, and checks of their results.

A kernel takes a matrix whose two axes are innermost, and writes NaN where it fails. A check behind
it raises ``LinearAlgebraError`` with the place of the first matrix that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....op_graph.axes.axes import Axes
from ....op_graph.building.constants import number
from ....op_graph.building.rebuild import rebuild, with_args
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.region_body import Body
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import Same
from ....op_graph.functions.resizing import diagonal
from ....op_graph.linalg.lu import (
    LU_SOLVE,
    SolveAttributes,
    determinant,
    diagonal_of,
    log_absolute_determinant,
)
from ....op_graph.linalg.matrices import MatrixAttributes, innermost
from ....op_graph.linalg.spectral import EIGH, EIGVALSH, shared_vectors
from ....op_graph.nodes import carry_lines
from ....op_graph.op_graph import ComputationOp, Op, Tensor, intern, make, make_region, post_order
from ....op_graph.regions.parameters import result_of, tensors
from ....op_graph.regions.scan_op import ScanAttributes
from ....op_graph.rewriting.driver import Rules
from ....op_graph.rows.concatenation import pad
from ....op_graph.rows.elementwise import add, cast, equal, isnan, multiply, subtract, where
from ....op_graph.rows.indexing import CHECKED, PURPOSES, Purpose
from ....op_graph.rows.leaves import iota, length_value
from ....op_graph.rows.movement import broadcast
from ....op_graph.rows.reductions import any as any_of
from ....op_graph.rows.reductions import max as largest_of
from ....op_graph.values.dtypes import INT64
from .small_matrices import SMALL, by_elements, is_small

lower = Rules("lowering of matrices")
looped = Rules("lowering of matrices for loops")
last = Rules("last, of matrices")
each_small = Rules("small matrices")

SINGULAR = "singular matrix"
UNCONVERGED = "matrix without convergence"
INDEFINITE = "matrix that is not positive definite"
PURPOSES[SINGULAR] = Purpose(
    "is singular, as a pivot is 0",
    "check the data, add a small multiple of the identity, or take geon.linalg.pinv or lstsq",
)
PURPOSES[UNCONVERGED] = Purpose(
    "has NaN or infinity in it, or LAPACK's iteration does not converge",
    "check the data",
)
PURPOSES[INDEFINITE] = Purpose(
    "is not positive definite, or has NaN in it",
    "check that it is symmetric and that no row is a combination of others, or add a small "
    "multiple of the identity",
)


def checked(value: Any, failed: Tensor, purpose: str, op: Op) -> Tensor:
    """Return ``value`` with a check that no matrix ``failed``, a bool over the batch axes."""
    sizes = tuple([(axis.name, axis.expression) for axis in failed.axes])
    attrs = (1, False, sizes, purpose)
    made: Tensor = intern(
        ComputationOp, CHECKED, (value, failed), attrs, value.axes, value.dtype, site=op._site
    )
    carry_lines(op, made)
    return made


def is_innermost(x: Op, *last: str) -> bool:
    """Return True if the axes ``last`` of ``x`` are innermost, in this order."""
    return x.axes.names[-len(last) :] == last


@lower.on("cholesky", "lu", "eigh", "eigvalsh", "qr", "svd")
def factorisation(op: Op) -> Op | None:
    """Move the axes of the matrix inwards, and check the result.

    Orthogonal factorisations have the columns before the rows.
    """
    a: MatrixAttributes = op.attrs
    x: Any = op.args[0]
    triangular = op.primitive.name in ("cholesky", "lu")
    last = (a.rows, a.columns) if triangular else (a.columns, a.rows)
    if not is_innermost(x, *last):
        return broadcast(make(op.primitive, (innermost(x, *last),), a), op.axes)
    if a.certain or op.primitive.name in ("lu", "qr"):
        return None
    made = make(op.primitive, op.args, a._replace(certain=True))
    n = x.axes[a.rows].expression
    if not triangular:
        values = made if op.primitive is EIGVALSH else made[{made.axes[a.rows]: n}]
        return checked(made, any_of(isnan.apply(values), a.columns), UNCONVERGED, op)
    if isinstance(n, int) and n > 0:
        failed = isnan.apply(made[{op.axes[a.rows]: n - 1, op.axes[a.columns]: n - 1}])
    else:
        failed = any_of(isnan.apply(diagonal(made, [a.columns, a.rows])), a.columns)
    return checked(made, failed, INDEFINITE, op)


def with_shared_vectors(roots: list[Op], own: OwnTable) -> list[Op]:
    """Return the roots with eigenvalues from the factorisations that compute their vectors too."""
    order = post_order(roots)
    packed = {(Same(op.args[0]), op.attrs) for op in order if op.primitive is EIGH}
    if not packed:
        return roots

    def replaced(op: Op, args: tuple[Op, ...]) -> Op | None:
        if op.primitive is EIGVALSH and (Same(op.args[0]), op.attrs) in packed:
            return shared_vectors(make(EIGH, args, op.attrs))
        return None

    with building(own):
        return rebuild(roots, replaced)


@lower.on("solve")
def solve(op: Op) -> Op:
    """Solve by the packed factors alone; if a pivot is 0, raise or write NaN."""
    a: SolveAttributes = op.attrs
    _, f, b = op.args
    made = make(LU_SOLVE, (f, b), a._replace(certain=False))
    if made.axes is not op.axes:
        made = broadcast(made, op.axes)
    failed = any_of(equal.apply(diagonal_of(f, a.rows, a.columns), 0), a.columns)
    if a.certain:
        return broadcast(where.apply(failed, number(float("nan"), op.dtype), made), op.axes)
    return checked(made, failed, SINGULAR, op)


def arranged_system(op: Op, matrix: Sequence[str], old: str, new: str, either: bool) -> Op | None:
    """Return a solution with its operands arranged as (batch, matrix), (batch, rows, further).

    None if they are. With ``either`` the axes of the matrix may be in either order.
    """
    x: Any
    x, b = op.args
    batch = [name for name in x.axes.names if name not in matrix]
    further = [name for name in b.axes.names if name not in batch and name != old]
    wanted = Axes([b.axes[name] for name in (*batch, old, *further)])
    fits = is_innermost(x, *matrix) or (either and is_innermost(x, *matrix[::-1]))
    if fits and wanted is b.axes:
        return None
    given: Any = b
    args = (x if fits else innermost(x, *matrix), broadcast(given, wanted))
    made = make(op.primitive, args, op.attrs)
    return broadcast(made, Axes([made.axes[name] for name in op.axes.names]))


@lower.on("triangular_solve")
def triangular_solve(op: Op) -> Op | None:
    """Move the axes of the matrix inwards, and order those of the right-hand side."""
    a = op.attrs
    return arranged_system(op, (a.rows, a.columns), a.rows, a.columns, True)


@lower.on("lu_solve")
def lu_solve(op: Op) -> Op | None:
    """Move the axes of the factors inwards, and order those of the right-hand side."""
    a: SolveAttributes = op.attrs
    old, new = (a.columns, a.rows) if a.transposed else (a.rows, a.columns)
    return arranged_system(op, (a.rows, a.columns), old, new, False)


@lower.on("pinv")
def pinv(op: Op) -> Op:
    """Return the value, from which the derivative does not follow."""
    return op.args[1]


@lower.on("log_determinant")
def log_determinant(op: Op) -> Op:
    """Rewrite by the diagonal of the packed factors."""
    a: MatrixAttributes = op.attrs
    factors: Any = op.args[1]
    return broadcast(log_absolute_determinant(factors, a.rows, a.columns), op.axes)


@lower.on("determinant")
def determinant_of_factors(op: Op) -> Op:
    """Rewrite by the diagonal of the packed factors and the exchanges."""
    a: MatrixAttributes = op.attrs
    factors: Any = op.args[1]
    return broadcast(determinant(factors, a.rows, a.columns), op.axes)


# Targets that print loops -------------------------------------------------------------------------


@last.on("checked")
def first_failure(op: Op) -> Op | None:
    """Check a number: 0, or 1 + the row-major position of the first matrix that failed."""
    if op.attrs.batch is None or op.args[1].dtype is INT64:
        return None
    value: Any
    failed: Any
    value, failed = op.args
    place: Any = number(0, INT64)
    for axis in failed.axes:
        place = add.apply(multiply.apply(place, length_value(axis.expression)), iota(axis))
    count = cast(length_value(failed.axes.size), INT64)
    after = where.apply(failed, subtract.apply(count, place), number(0, INT64))
    if len(failed.axes):
        size = failed.axes.size
        if not isinstance(size, int) or size == 0:
            after = pad(after, dict.fromkeys(failed.axes, (0, 1)), value=0)
        after = largest_of(after)
    none = equal.apply(after, number(0, INT64))
    first = subtract.apply(add.apply(count, number(1, INT64)), after)
    index = where.apply(none, number(0, INT64), first)
    made: Tensor = intern(ComputationOp, CHECKED, (value, index), op.attrs, op.axes, op.dtype)
    return made


@looped.on("region_result")
def small_matrices_of_a_scan(op: Op) -> Op | None:
    """Compute small matrices of a scan by elements, and check them behind it.

    The scan can then be one kernel. Each check becomes a stacked result, so that the place of the
    matrix that failed includes the step.
    """
    region = op.args[0]
    if region.primitive.name != "scan":
        return None
    a: ScanAttributes = region.attrs
    order = post_order(a.body.results)
    matrices = [each for each in order if each.primitive.kind == "matrix"]
    if not matrices or not all(map(is_small, matrices)):
        return None
    checks = [each for each in order if each.primitive is CHECKED and each.attrs.batch is not None]
    failures = [each.args[1] for each in checks]
    results = rebuild([*a.body.results, *failures], _by_elements)
    body = Body(a.body.parameters, tuple(tensors(results)))
    made = make_region(
        region.primitive, region.args, a._replace(body=body), guards=region.guards,
        site=region._site,
    )  # fmt: skip
    found: Tensor = result_of(made, op.attrs.number)
    for k, each in enumerate(checks, len(a.body.results)):
        found = checked(found, result_of(made, k), each.attrs.purpose, each)
    return found


def _by_elements(op: Op, args: tuple[Op, ...]) -> Op | None:
    if op.primitive is CHECKED and op.attrs.batch is not None:
        return args[0]
    return by_elements(with_args(op, args)) if op.primitive.kind == "matrix" else None


@each_small.on(*SMALL)
def small_matrix(op: Op) -> Op | None:
    """Compute a small matrix by elements."""
    return by_elements(op) if is_small(op) else None


RULES = lower.done()  # of every target
LOOPED = looped.done()  # of targets that print loops
LAST = last.done()  # after these
EACH_SMALL = each_small.done()  # of targets whose library has no small matrices
