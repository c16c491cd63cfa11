"""Weak values: Python numbers, and what is made of nothing else, until they meet a dtype.

A weak op has the default dtype of its kind, which counts only where nothing gives it another. In
front of a dtype the op is built once more from its exact constants: ``x * geon.where(c, 0.1, 0.9)``
with a float64 ``x`` has the nearest float64 numbers to 0.1 and 0.9.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from threading import RLock
from typing import Any

from ...errors import DTypeError
from ..core.interning import Entry
from ..core.interning import lock as _lock
from ..core.primitive import PRIMITIVES
from ..core.source_info import Site
from ..nodes import carry_notes
from ..op_graph import NO_AXES, Op, Same, Tensor, among, make, post_order
from ..values.dtypes import DType, common_dtype, exact_dtype, kind, number_dtype
from .constants import converted, is_weak_constant, number
from .rebuild import with_args

# Ops that computed ops were built as for a dtype; an entry goes when the op it leads to dies.
_built: dict[tuple[Same, DType], Entry] = {}


def strengthen(x: Tensor, dtype: DType, weak: bool = False) -> Tensor:
    """``x`` in ``dtype``: a weak one exactly, others by a cast; with ``weak`` it stays weak.

    Raises ``DTypeError`` for a weak number that does not fit, and for weak fractions where
    ``dtype`` has none.
    """
    if x.dtype is dtype and x.weak is weak:
        return x
    if not x.weak:
        return _cast(x, dtype, False)
    if is_weak_constant(x):
        return converted(x, dtype, weak)
    return _cast(x, dtype, True) if weak else _in_dtype(x, dtype)


def _cast(x: Op, dtype: DType, weak: bool, site: Site | None = None) -> Tensor:
    made: Tensor = make(PRIMITIVES["cast"], (x,), (dtype.name, weak), weak=weak, site=site)
    return made


def _in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """A weak op built once more in ``dtype``, with all below it that must be; iterative."""
    if kind(x.dtype) == "f" and kind(dtype) == "i":
        raise DTypeError(
            f"{x} (made at {x.line_info}), of Python numbers with fractions, cannot be "
            f"{dtype.name}; geon.cast it"
        )
    known: dict[Op, Op] = {}
    stack: list[Op] = [x]
    while stack:
        op = stack[-1]
        made = _found(op, dtype)
        if made is None and op in known:
            stack.pop()
            continue
        if made is None:
            below = _carriers(op, dtype)
            missing = [op.args[i] for i in below if op.args[i] not in known]
            if missing:
                stack += missing
                continue
            made = _built_once_more(op, dtype, below, known)
        known[op] = made
        stack.pop()
    return known[x]  # type: ignore[return-value]  # tensors become tensors


def _carriers(op: Op, dtype: DType) -> Sequence[int]:
    """The positions of the arguments that are converted where ``op`` is: none where it is cast.

    What only moves or picks elements is the same in every dtype. What computes is so among floats;
    integers are computed as such, exactly, and then converted.
    """
    if not op.weak or is_weak_constant(op):
        return ()
    row = op.primitive
    if row.kind not in MOVING and not row.picks and kind(op.dtype) != kind(dtype):
        return ()
    if kind(op.dtype) != "f" and row.kind in COMPUTING and not row.picks:
        return ()
    return row.carrying(op.args)


MOVING = ("movement", "indexing", "effect", "call")
COMPUTING = ("elementwise", "reduction", "ordered", "contraction")


def _built_once_more(op: Op, dtype: DType, below: Sequence[int], known: dict[Op, Op]) -> Op:
    if not op.weak:
        return op if op.dtype is dtype else _cast(op, dtype, False)
    if is_weak_constant(op):
        return converted(op, dtype)
    made = _again(op, dtype, below, known)
    carry_notes(op, made)
    _keep(op, dtype, made)
    return made


def _again(op: Op, dtype: DType, below: Sequence[int], known: dict[Op, Op]) -> Op:
    if not below:
        return _cast(op, dtype, False, op._site)
    args = list(op.args)
    for i in below:
        args[i] = known[args[i]]
    if op.primitive.name == "cast":
        return args[0]
    if op.primitive.name == "print":
        # The effect stays one op, however many dtypes its value takes.
        made: Op = make(PRIMITIVES["sequential"], (op, args[0]), (True,), site=op._site)
        return made
    return with_args(op, tuple(args), dtype, weak=False)


def _found(op: Op, dtype: DType) -> Op | None:
    entry = _built.get((Same(op), dtype))
    return None if entry is None else entry()


def _keep(op: Op, dtype: DType, made: Op) -> None:
    entry = Entry(made, _forget)
    entry.key = (Same(op), dtype)
    with _lock:
        _built[entry.key] = entry


def _forget(
    entry: Entry, built: dict[tuple[Same, DType], Entry] = _built, lock: RLock = _lock
) -> None:
    with lock:  # the defaults are there when Python ends, and the module has no more names
        if built.get(entry.key) is entry:
            del built[entry.key]


def named_error(error: DTypeError, what: str, operands: Sequence[Any]) -> DTypeError:
    """The error with the op that was to be made and its operands."""
    shown = ", ".join(
        f"{a} {a.dtype.name} (made at {a.line_info})" if isinstance(a, Tensor) else _shown(a)
        for a in operands
    )
    return DTypeError(f"{what} of {shown}: {error}")


def _shown(value: Any) -> str:
    """A value that is no tensor, on one line: arrays by their type and shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    shown = reprlib.repr(value)
    return shown if "\n" not in shown else type(value).__name__


def meet_together(what: str, values: Sequence[Any]) -> list[Tensor]:
    """Tensors and numbers as tensors in the dtype they meet in, weak where all are.

    Raises ``DTypeError``, which names ``what`` is made of them, where there is none or a number
    does not fit it.
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
    """``x`` and a tensor or number that is to stand among its elements: a weak one in its dtype.

    A weak ``x`` takes the dtype of the value. Two dtypes stay as they are. Raises as
    ``meet_together``.
    """
    if x.weak:
        x, value = meet_together(what, [x, value])
    elif not isinstance(value, Tensor) or value.weak:
        try:
            value = _met(value, x.dtype, False)
        except DTypeError as error:
            raise named_error(error, what, [x, value]) from None
    return x, value


def without_effect(x: Op, results: Sequence[Op]) -> str | None:
    """Why nothing that is done to a weak ``x`` changes ``results``; None where they depend on it.

    What met ``x`` depends on what was built of it, or on a number that all share.
    """
    if not x.weak or (x.axes is NO_AXES and not x.args) or among(x, post_order(results)):
        return None
    return (
        f"{x} (made at {x.line_info}) is of Python numbers alone, so what it meets has its value "
        f"in a dtype of its own, and {results[0]} (made at {results[0].line_info}) does not depend "
        'on it; give it a dtype before it is used, for example with geon.cast(x, "float32")'
    )


def in_dtype(x: Tensor, dtype: DType) -> Tensor:
    """``x`` in ``dtype``, as weak as it was."""
    return strengthen(x, dtype, x.weak)


def like(x: Tensor, other: Tensor) -> Tensor:
    """``x``, which is strong, in the dtype of ``other``, and as weak as that."""
    return _cast(x, other.dtype, other.weak)


def weak_input(leaf: Tensor) -> Tensor:
    """The value of ``leaf``, a float64 scalar, as a weak number: it takes the dtype it meets."""
    return _cast(leaf, number_dtype(0.0), True)


def exact(x: Tensor) -> Tensor:
    """``x``, weak floats in float64: for what reads values and does not pass their dtype on."""
    return strengthen(x, exact_dtype(x.dtype)) if x.weak else x
