"""The supported dtypes, their promotion, and the dtypes of Python numbers.

A dtype is a NumPy dtype in native byte order. Python numbers, lengths and values computed only from
these are *weak*. A weak operand takes the other operand's dtype if that is of the same kind or a
higher one (bool < integer < float < complex), and otherwise the default dtype of its own kind; a
weak complex number that meets a float takes the complex dtype of that precision.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from ...errors import DTypeError
from .arrays import EXTENSIONS as EXTENSIONS
from .arrays import rounded

DType = np.dtype[Any]

BOOL = np.dtype("bool")
INT64 = np.dtype("int64")
INT32 = np.dtype("int32")
UINT32 = np.dtype("uint32")
UINT64 = np.dtype("uint64")
FLOAT32 = np.dtype("float32")
FLOAT64 = np.dtype("float64")
COMPLEX64 = np.dtype("complex64")
COMPLEX128 = np.dtype("complex128")

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
HALVES = ("float16", "bfloat16")
FLOATS = (*HALVES, "float32", "float64")
COMPLEXES = ("complex64", "complex128")
# Dtypes of storage: they are moved and cast, and nothing is computed on them.
FLOAT8S = ("float8_e4m3fn", "float8_e5m2")
DTYPES = ("bool", *SIGNED, *UNSIGNED, *FLOATS)
ALL_DTYPES = (*DTYPES, *FLOAT8S, *COMPLEXES)

_PART: dict[DType, DType] = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
DEFAULTS = {"b": BOOL, "i": INT64, "f": FLOAT32, "c": COMPLEX64}
_RANK = {"b": 0, "i": 1, "f": 2, "c": 3}

# Names of dtypes in other libraries, with advice for error messages.
FAMILIAR = {
    "byte": "write 'uint8'",
    "char": "write 'int8'",
    "complex": "write 'complex64' or 'complex128'",
    "double": "write 'float64'",
    "half": "write 'float16'",
    "long": "write 'int64'",
    "longlong": "write 'int64'",
    "short": "write 'int16'",
    "single": "write 'float32'",
    "string": "give each text a number first",
    "str": "give each text a number first",
}


@cache
def named_dtype(name: str) -> DType:
    """Return the dtype of that name; raise ``DTypeError`` if there is none.

    bfloat16 and the float8 dtypes come from ml_dtypes.
    """
    if name in EXTENSIONS:
        import ml_dtypes

        extension: DType = np.dtype(getattr(ml_dtypes, name))
        return extension
    if name not in ALL_DTYPES:
        if name in FAMILIAR:
            known = ", ".join(ALL_DTYPES)
            raise DTypeError(f"geon has no dtype {name!r}; it has {known}; {FAMILIAR[name]}")
        usual = [known.name for known in DEFAULTS.values() if known.name[:3] == name[:3]]
        near = [known for known in ALL_DTYPES if known in name] or usual
        meant = f"; write {near[-1]!r}" if near else ""
        raise DTypeError(f"geon has no dtype {name!r}; it has {', '.join(ALL_DTYPES)}{meant}")
    return np.dtype(name)


def as_dtype(dtype: Any) -> DType:
    """Return the dtype for a name, a NumPy dtype or scalar type, or the class of Python numbers."""
    if dtype is float:
        return FLOAT32
    if dtype is complex:
        return COMPLEX64
    if isinstance(dtype, str):
        return named_dtype(dtype)
    try:
        return named_dtype(name_of(np.dtype(dtype)))
    except TypeError as error:
        raise DTypeError(f"{dtype!r} is no dtype; geon has {', '.join(ALL_DTYPES)}") from error


@cache
def name_of(dtype: DType) -> str:
    """Return ``dtype.name``; cached, because NumPy computes it anew each time."""
    return dtype.name


@cache
def kind(dtype: DType) -> str:
    """Return ``b`` (bool), ``i`` (integer of either sign), ``f`` (float) or ``c`` (complex)."""
    if dtype.name in FLOATS or dtype.name in FLOAT8S:
        return "f"
    if dtype.kind == "c":
        return "c"
    return "b" if dtype is BOOL else "i"


@cache
def is_continuous(dtype: DType) -> bool:
    """Return True for the dtypes of values that have derivatives: complex numbers, and floats
    other than float8.
    """
    return kind(dtype) in "fc" and not is_float8(dtype)


@cache
def is_float8(dtype: DType) -> bool:
    """Return True for the float8 dtypes, which are only stored, moved and cast."""
    return dtype.name in FLOAT8S


@cache
def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real part of a complex dtype; other dtypes are returned as given."""
    return _PART.get(dtype, dtype)


@cache
def complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype that holds values of ``dtype``: complex128 for float64."""
    return COMPLEX128 if dtype in (FLOAT64, COMPLEX128) else COMPLEX64


@cache
def promote(left: DType, right: DType) -> DType:
    """Return the common dtype of two strong (not weak) operands: the one promotion table.

    Of two floats, the wider one; float16 with bfloat16 gives float32. Of an integer and a float,
    the float. Of a float and a complex dtype, the complex one of the wider precision. Of a signed
    and an unsigned integer, the next wider signed one. uint64 with a signed integer has none and
    raises ``DTypeError``, and so does float8 with any other dtype.
    """
    if left is right:
        return left
    if is_float8(left) or is_float8(right):
        raise DTypeError(
            f"{left.name} and {right.name} have no common dtype, because float8 is only stored; "
            "geon.cast one of them"
        )
    kinds = kind(left), kind(right)
    if "c" in kinds:
        return complex_dtype(promote(_part(left), _part(right)))
    if kinds[0] != kinds[1]:
        return left if _RANK[kinds[0]] > _RANK[kinds[1]] else right
    if kinds[0] == "f":
        if left.itemsize == right.itemsize:
            return FLOAT32
        return left if left.itemsize > right.itemsize else right
    if left.kind == right.kind:
        return left if left.itemsize > right.itemsize else right
    signed, unsigned = (left, right) if left.kind == "i" else (right, left)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize < 8:
        return np.dtype(f"int{16 * unsigned.itemsize}")
    raise DTypeError(
        f"{left.name} and {right.name} have no common integer dtype; geon.cast one of them"
    )


def _part(dtype: DType) -> DType:
    """Return the float dtype of one part of a value that becomes complex."""
    return real_dtype(dtype) if is_continuous(dtype) else FLOAT32


def weak_meets(weak: DType, strong: DType) -> DType:
    """Return the common dtype of a weak operand and a strong one.

    A weak operand has the default dtype of its kind.
    """
    if kind(weak) == "c" and kind(strong) == "f":
        return complex_dtype(strong)
    return strong if _RANK[kind(weak)] <= _RANK[kind(strong)] else weak


def common_dtype(described: Iterable[tuple[DType, bool]]) -> DType:
    """Return the common dtype of values given as (dtype, is weak) pairs; ``DTypeError`` if none."""
    described = list(described)
    common: DType | None = None
    for dtype, weak in described:
        if not weak:
            common = dtype if common is None else promote(common, dtype)
    strong = common is not None
    for dtype, weak in described:
        if weak:
            if common is None:
                common = dtype
            else:
                common = weak_meets(dtype, common) if strong else promote(common, dtype)
    assert common is not None
    return common


def exact_dtype(dtype: DType) -> DType:
    """Return the dtype in which weak values compute as Python does: float64 or complex128."""
    return {"f": FLOAT64, "c": COMPLEX128}.get(kind(dtype), dtype)


Number = bool | int | float | complex


def number_dtype(value: Number) -> DType:
    """Return the default dtype of a Python number's kind."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, complex):
        return COMPLEX64
    return INT64 if isinstance(value, int) else FLOAT32


OPERAND = "geon.cast the other operand to a wider dtype"
MAX_IN_ALL_FLOATS = 448  # the largest number of float8_e4m3fn; all other floats hold it, too


def check_number(value: Number, dtype: DType, cure: str = OPERAND) -> None:
    """Raise ``DTypeError`` if ``dtype`` cannot hold the Python number; ``cure`` is the advice."""
    if isinstance(value, complex):
        if kind(dtype) != "c":
            raise DTypeError(
                f"the number {value!r} is complex and cannot be {dtype.name}; give its .real, or "
                "a complex dtype"
            )
        check_number(value.real, real_dtype(dtype), cure)
        check_number(value.imag, real_dtype(dtype), cure)
    elif kind(dtype) == "i":
        info = np.iinfo(dtype)
        if isinstance(value, float) and not isinstance(value, bool):
            raise DTypeError(
                f"the number {value!r} is no integer and cannot be {dtype.name}; geon.cast it"
            )
        if not info.min <= value <= info.max:
            if not np.iinfo(INT64).min <= value <= np.iinfo(UINT64).max:
                cure = "no integer dtype holds it: give a float, which rounds it to 53 bits"
            raise DTypeError(
                f"the number {reprlib.repr(value)} does not fit {dtype.name} ({info.min} to "
                f"{info.max}); {cure}"
            )
    elif kind(dtype) in "fc" and not abs(value) <= MAX_IN_ALL_FLOATS:
        dtype = real_dtype(dtype)
        try:
            with np.errstate(over="ignore"):
                narrowed = float(rounded(np.asarray(value, np.float64), dtype))
            overflows = not (math.isfinite(narrowed) or narrowed == value or math.isnan(value))
        except OverflowError:
            overflows = True
        if overflows:
            if dtype is FLOAT64:
                cure = "no dtype holds it: scale it"
            raise DTypeError(
                f"the number {reprlib.repr(value)} is too large for {dtype.name}; {cure}"
            )


def is_number(value: object) -> bool:
    """Return True if ``value`` is a Python number, which is weak.

    NumPy scalars are no such numbers: they keep their dtype.
    """
    return type(value) in (bool, int, float, complex)


SMALL_INTEGERS = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32")


@cache
def sum_dtype(dtype: DType) -> DType:
    """Return the dtype of a sum or product: int64 for bool and small integers, else the same."""
    return INT64 if dtype.name in SMALL_INTEGERS else dtype


@cache
def accumulator(dtype: DType) -> DType:
    """Return the dtype in which a sum of values of ``dtype`` accumulates before one final rounding.

    It is float32 for halves, int64 for bool and small integers, else ``dtype`` itself.
    """
    return FLOAT32 if name_of(dtype) in HALVES else sum_dtype(dtype)


# The dtype to which each operand is cast, the dtype of the result, and whether that is weak.
Resolution = tuple[tuple[DType, ...], DType, bool]


def resolve(rule: str, args: tuple[tuple[DType, bool], ...]) -> Resolution:
    """Return the dtype to which each operand is cast, the result's dtype, and whether that is weak.

    Rules: ``numeric`` (promote; bool counts as int64), ``any`` (promote, bool stays), ``float``
    (integers become float32), ``compare`` (promote; result bool), ``logical`` (all bool),
    ``integer`` (integers only), ``bits`` (integers or bool), ``predicate`` (result bool),
    ``select`` (bool, then promote), ``magnitude`` (numeric, and the float dtype of a complex
    operand), ``keep``.
    """
    weak = all(is_weak for _, is_weak in args)
    if rule == "select":
        chosen, dtype, weak = resolve("any", args[1:])
        return (BOOL, *chosen), dtype, weak
    if rule == "logical":
        return (BOOL,) * len(args), BOOL, False
    common = common_dtype(args)
    if rule in ("numeric", "magnitude") and common is BOOL:
        common = INT64
    elif rule == "float" and kind(common) not in "fc":
        common = FLOAT32
    elif rule in ("integer", "bits"):
        if kind(common) in "fc" or (rule == "integer" and common is BOOL):
            raise DTypeError(f"it takes integers, not {common.name}; geon.cast the operand")
    if rule in ("compare", "predicate"):
        return (exact_dtype(common) if weak else common,) * len(args), BOOL, False
    if rule == "magnitude":
        return (common,) * len(args), real_dtype(common), weak
    return (common,) * len(args), common, weak
