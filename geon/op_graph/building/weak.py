"""Weak values: Python numbers, and ops on only such numbers, whose dtype is not fixed yet.

A weak op has the default dtype of its kind, which counts only where no operand gives it another.
When it meets a dtype, the op is rebuilt in that dtype from its exact constants: ``x * geon.where(c,
0.1, 0.9)`` with a float64 ``x`` has the float64 numbers nearest to 0.1 and 0.9.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from threading import RLock
from typing import Any

from ...errors import DTypeError
from ..core.interning import InternedReference
from ..core.interning import lock as _lock
from ..core.primitive import PRIMITIVES
from ..core.source_info import Site
from ..nodes import carry_notes
from ..op_graph import NO_AXES, Op, Same, Tensor, among, make, make_op, post_order
from ..values.dtypes import (
    DType,
    common_dtype,
    exact_dtype,
    is_continuous,
    is_number,
    kind,
    name_of,
    number_dtype,
    real_dtype,
)
from .constants import as_tensor, convert_weak, is_weak_constant, number
from .rebuild import with_args

# Weak ops rebuilt in a dtype; an entry is removed when the rebuilt op dies.
_built: dict[tuple[Same, DType], InternedReference] = {}


def strengthen(x: Tensor, dtype: DType, weak: bool = False) -> Tensor:
    """Return ``x`` in ``dtype``: rebuilt exactly if it is weak, otherwise cast.

    With ``weak`` the result stays weak. Raises ``DTypeError`` for a weak number that does not fit,
    and for weak fractions in an integer dtype.
    """
    if x.dtype is dtype and x.weak is weak:
        return x
    if not x.weak:
        return _cast(x, dtype, False)
    if is_weak_constant(x):
        return convert_weak(x, dtype, weak)
    return _cast(x, dtype, True) if weak else _in_dtype(x, dtype)


def _cast(x: Op, dtype: DType, weak: bool, site: Site | None = None) -> Tensor:
    return make(PRIMITIVES["cast"], (x,), (name_of(dtype), weak), weak=weak, site=site)


def _in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Rebuild a weak op in ``dtype``, and the ops below it as needed; iterative."""
    if kind(x.dtype) == "c" and kind(dtype) != "c":
        raise DTypeError(
            f"{x} (made at {x.line_info}), of complex Python numbers, cannot be {dtype.name}; take "
            "its geon.real or geon.imag"
        )
    if kind(x.dtype) == "f" and kind(dtype) == "i":
        raise DTypeError(
            f"{x} (made at {x.line_info}), of Python numbers with fractions, cannot be "
            f"{dtype.name}; geon.cast it"
        )
    known: dict[Op, Op] = {}
    stack: list[Op] = [x]
    while stack:
        op = stack[-1]
        result = _kept_rebuild(op, dtype)
        if result is None and op in known:
            stack.pop()
            continue
        if result is None:
            below = _converted_operands(op, dtype)
            missing = [op.args[i] for i in below if op.args[i] not in known]
            if missing:
                stack += missing
                continue
            result = _built_once_more(op, dtype, below, known)
        known[op] = result
        stack.pop()
    return known[x]  # type: ignore[return-value]  # tensors become tensors


def _converted_operands(op: Op, dtype: DType) -> Sequence[int]:
    """Return the positions of the arguments to convert with ``op``; none if ``op`` itself is cast.

    Ops that only move or select elements are rebuilt for any dtype. Ops that compute are rebuilt
    from floats; integers are computed exactly as integers, and then converted.
    """
    if not op.weak or is_weak_constant(op):
        return ()
    row = op.primitive
    if row.kind not in MOVING and not row.is_selection and kind(op.dtype) != kind(dtype):
        return ()
    if not is_continuous(op.dtype) and row.kind in COMPUTING and not row.is_selection:
        return ()
    carried = row.dtype_positions(op.args)
    if row.name != "cast" and any(
        (kind(op.args[i].dtype) == "c") != (kind(op.dtype) == "c") for i in carried
    ):
        return ()  # a part or a magnitude of complex numbers, or complex numbers of parts
    return carried


MOVING = ("movement", "indexing", "effect", "call")
COMPUTING = ("elementwise", "reduction", "ordered", "contraction", "matrix")


def _built_once_more(op: Op, dtype: DType, below: Sequence[int], known: dict[Op, Op]) -> Op:
    if not op.weak:
        return op if op.dtype is dtype else _cast(op, dtype, False)
    if is_weak_constant(op):
        return convert_weak(op, dtype)
    result = _again(op, dtype, below, known)
    carry_notes(op, result)
    _keep(op, dtype, result)
    return result


def _again(op: Op, dtype: DType, below: Sequence[int], known: dict[Op, Op]) -> Op:
    if not below:
        if kind(op.dtype) == "f" and kind(dtype) == "c":
            op = _in_dtype(op, real_dtype(dtype))  # type: ignore[arg-type]  # a tensor
        return _cast(op, dtype, False, op._site)
    args = list(op.args)
    for i in below:
        args[i] = known[args[i]]
    if op.primitive.name == "cast":
        return args[0]
    if op.primitive.name == "print":
        # The print stays one op, even if its value is used in several dtypes.
        return make_op(PRIMITIVES["sequential"], (op, args[0]), (True,), site=op._site)
    return with_args(op, tuple(args), dtype, weak=False)


def _kept_rebuild(op: Op, dtype: DType) -> Op | None:
    entry = _built.get((Same(op), dtype))
    return None if entry is None else entry()


def _keep(op: Op, dtype: DType, made: Op) -> None:
    entry = InternedReference(made, _forget)
    entry.key = (Same(op), dtype)
    with _lock:
        _built[entry.key] = entry


def _forget(
    entry: InternedReference,
    built: dict[tuple[Same, DType], InternedReference] = _built,
    lock: RLock = _lock,
) -> None:
    with lock:  # default arguments still exist at interpreter exit, module globals do not
        if built.get(entry.key) is entry:
            del built[entry.key]


def named_error(error: DTypeError, what: str, operands: Sequence[Any]) -> DTypeError:
    """Return the error with the name of the op that was to be built and its operands."""
    shown = ", ".join(
        f"{a} {a.dtype.name} (made at {a.line_info})" if isinstance(a, Tensor) else _shown(a)
        for a in operands
    )
    return DTypeError(f"{what} of {shown}: {error}")


def _shown(value: Any) -> str:
    """Return a value that is no tensor on one line: arrays by their type and shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    shown = reprlib.repr(value)
    return shown if "\n" not in shown else type(value).__name__


def meet_together(what: str, values: Sequence[Any]) -> list[Tensor]:
    """Return tensors and numbers as tensors in their common dtype, weak if all are.

    Raises ``DTypeError``, which names the op ``what``, if there is none or a number does not fit.
    """
    described = [
        (v.dtype, v.weak) if isinstance(v, Tensor) else (number_dtype(v), True) for v in values
    ]
    weak = all(is_weak for _, is_weak in described)
    try:
        dtype = common_dtype(described)
        return [_met(v, dtype, weak) for v in values]
    except DTypeError as error:
        raise named_error(error, what, values) from None


def _met(value: Any, dtype: DType, weak: bool) -> Tensor:
    if isinstance(value, Tensor):
        return strengthen(value, dtype, weak)
    return number(value, dtype, weak)


def put_into(what: str, x: Tensor, value: Any) -> tuple[Tensor, Tensor]:
    """Return ``x`` and ``value``, an element to store in it, with a weak one in the other's dtype.

    Two strong dtypes are left as they are. Raises the errors of ``meet_together``.
    """
    if not (isinstance(value, Tensor) or is_number(value)):
        value = as_tensor(value, near=x)
    if x.weak:
        x, value = meet_together(what, [x, value])
    elif not isinstance(value, Tensor) or value.weak:
        try:
            value = _met(value, x.dtype, False)
        except DTypeError as error:
            raise named_error(error, what, [x, value]) from None
    return x, value


def without_effect(x: Op, results: Sequence[Op]) -> str | None:
    """Return why a change to a weak ``x`` cannot affect ``results``; None if they depend on it.

    Ops that met ``x`` depend on its rebuilt copy, or on a number that all users share.
    """
    if not x.weak or (x.axes is NO_AXES and not x.args) or among(x, post_order(results)):
        return None
    return (
        f"{x} (made at {x.line_info}) is of Python numbers alone, so what it meets has its value "
        f"in a dtype of its own, and {results[0]} (made at {results[0].line_info}) does not depend "
        'on it; give it a dtype before it is used, for example with geon.cast(x, "float32")'
    )


def in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """Return ``x`` in ``dtype``, weak if it was weak."""
    return x if x.dtype is dtype else strengthen(x, dtype, x.weak)


def like(x: Tensor, other: Tensor) -> Tensor:
    """Return a strong ``x`` in the dtype of ``other``, weak if ``other`` is weak."""
    return _cast(x, other.dtype, other.weak)


def weak_input(leaf: Tensor) -> Tensor:
    """Return ``leaf``, a float64 scalar, as a weak number, which takes its operands' dtype."""
    return _cast(leaf, number_dtype(0.0), True)


def exact(x: Tensor) -> Tensor:
    """Return ``x``, weak floats as float64; for ops whose result has another dtype."""
    return strengthen(x, exact_dtype(x.dtype)) if x.weak else x
