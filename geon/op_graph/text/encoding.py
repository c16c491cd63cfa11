"""JSON encoding of attributes, axes, lengths and arrays in dumps.

None, bools, integers and strings are written as they are. Every other value is a list that starts
with its type, such as ``["float", "0x1.8p+0"]``. Readers accept exactly what the writers write and
raise ``DumpError`` for everything else.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...errors import DumpError
from ..axes.axes import Axes, Axis
from ..axes.lengths import FloorDiv, Length, _atom_key, _from_terms, floor_divide
from ..core.primitive import PRIMITIVES, Primitive
from ..values.attribute_types import Frozen
from ..values.dtypes import ALL_DTYPES, DType, named_dtype

Array = np.ndarray[Any, Any]

FORMAT = 1  # version of the dump format

# Maximum exponent in a length that is read, because powers are multiplied out; real graphs have
# far smaller ones.
LARGEST_POWER = 1000


def refuse(what: str, value: Any) -> NoReturn:
    """Raise ``DumpError``: ``what`` was expected instead of ``value``."""
    shown = repr(value)
    raise DumpError(f"expected {what}, found {shown if len(shown) <= 80 else shown[:77] + '...'}")


def integer(value: Any, least: int | None = None) -> int:
    """Return ``value``, which must be an integer of at least ``least``."""
    if type(value) is not int or (least is not None and value < least):
        refuse("an integer" + ("" if least is None else f" of at least {least}"), value)
    return value


def string(value: Any) -> str:
    """Return ``value``, which must be a string."""
    if type(value) is not str:
        refuse("a string", value)
    return value


def read_list(value: Any, length: int | None = None) -> list[Any]:
    """Return ``value``, which must be a list, of ``length`` elements if that is given."""
    if type(value) is not list or (length is not None and len(value) != length):
        refuse("a list" + ("" if length is None else f" of {length}"), value)
    return value


# Lengths and axes -------------------------------------------------------------------------------


def write_length(length: int | Length) -> Any:
    """Return an integer, an open name, or ``["+", [coefficient, [name, power], ...], ...]``."""
    if isinstance(length, int):
        return length
    if len(length.terms) == 1:
        monomial, coefficient = length.terms[0]
        if coefficient == 1 and len(monomial) == 1:
            atom, power = monomial[0]
            if power == 1 and isinstance(atom, str):
                return atom
    written: list[Any] = ["+"]
    for monomial, coefficient in length.terms:
        factors = [[_write_atom(atom), power] for atom, power in monomial]
        written.append([coefficient, *factors])
    return written


def _write_atom(atom: str | FloorDiv) -> Any:
    if isinstance(atom, str):
        return atom
    return ["//", write_length(atom.numerator), write_length(atom.denominator)]


def read_length(value: Any) -> int | Length:
    """Return the length that ``write_length`` wrote, which must be in normal form."""
    if type(value) is int:
        return value
    if type(value) is str:
        return Length.of(_open_name(value))
    if not read_list(value) or value[0] != "+":
        refuse("a length", value)
    terms = []
    for term in value[1:]:
        coefficient, *factors = read_list(term) or [None]
        monomial = tuple([_read_factor(factor) for factor in factors])
        terms.append((monomial, integer(coefficient)))
    length = _from_terms(terms)
    in_order = all(_ascending([_atom_key(atom) for atom, _ in m]) for m, _ in terms)
    if not isinstance(length, Length) or length.terms != tuple(terms) or not in_order:
        refuse("a length in normal form", value)
    if write_length(length) != value:
        refuse("a length in its shortest form", value)
    return length


def _ascending(keys: list[str]) -> bool:
    return all(left < right for left, right in zip(keys, keys[1:], strict=False))


def _read_factor(value: Any) -> tuple[str | FloorDiv, int]:
    written, power = read_list(value, 2)
    if integer(power, 1) > LARGEST_POWER:
        refuse(f"a power of at most {LARGEST_POWER}", power)
    if type(written) is str:
        return _open_name(written), power
    sign, *halves = read_list(written, 3)
    if sign != "//":
        refuse("an open name or a floor division", written)
    atom = FloorDiv(*[read_length(half) for half in halves])
    if atom.denominator == 0 or floor_divide(*atom) != Length((((((atom, 1)),), 1),)):
        refuse("a floor division in normal form", written)
    return atom, power


def _open_name(value: str) -> str:
    return value or refuse("an open name", value)


def write_axis(axis: Axis) -> Any:
    """Return ``[name, length]``."""
    return [axis.name, write_length(axis.expression)]


def read_axis(value: Any) -> Axis:
    """Return the axis that ``write_axis`` wrote."""
    name, length = read_list(value, 2)
    return Axis(string(name), read_length(length))


def write_axes(axes: Axes) -> Any:
    """Return ``[[name, length], ...]``."""
    return [write_axis(axis) for axis in axes]


def read_axes(value: Any) -> Axes:
    """Return the axes that ``write_axes`` wrote."""
    return Axes(*[read_axis(axis) for axis in read_list(value)])


# Bytes and arrays -------------------------------------------------------------------------------


def read_dtype(value: Any) -> DType:
    """Return the dtype of that name."""
    if string(value) not in ALL_DTYPES:
        refuse("a dtype", value)
    return named_dtype(value)


def write_bytes(value: bytes | memoryview) -> str:
    """Return base64 in one line."""
    return binascii.b2a_base64(value, newline=False).decode("ascii")


def read_bytes(value: Any) -> bytes:
    """Return the bytes of strict base64."""
    try:
        return binascii.a2b_base64(string(value), strict_mode=True)
    except ValueError:
        refuse("base64", value)


def write_array(array: Array) -> Any:
    """Return ``["array", dtype, shape, base64]``, elements row-major and little-endian."""
    if array.dtype.name not in ALL_DTYPES:
        raise DumpError(f"an array of dtype {array.dtype} cannot be dumped")
    plain = np.ascontiguousarray(array, named_dtype(array.dtype.name))
    return ["array", array.dtype.name, list(array.shape), write_bytes(plain.tobytes())]


def read_array(value: Any) -> Array:
    """Return the array that ``write_array`` wrote: a new one, writable."""
    tag, name, shape, content = read_list(value, 4)
    if tag != "array":
        refuse("an array", value)
    dtype = read_dtype(name)
    data = read_bytes(content)
    size = 1
    for length in read_list(shape):
        size *= integer(length, 0)
    if len(data) != size * dtype.itemsize or len(shape) > 64:
        refuse(f"{name} elements of shape {shape}", content)
    if name == "bool" and data.strip(b"\0\1"):
        refuse("bytes 0 and 1 for bool", content)
    return np.frombuffer(data, dtype).reshape(shape).copy()


# Attributes -------------------------------------------------------------------------------------


def write_value(value: Any) -> Any:
    """Return an attribute in JSON form, by its exact type; ``DumpError`` for an unknown type."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind in WRITERS:
        return WRITERS[kind](value)
    if isinstance(value, np.dtype):
        return ["dtype", value.name]
    if isinstance(value, Primitive):
        return ["primitive", value.name]
    raise DumpError(f"a value of type {kind.__name__} cannot be dumped")


def _write_frozen(value: Frozen) -> Any:
    return ["frozen", *write_array(value.array)[1:]]


PLAIN = frozenset([type(None), bool, int, str])
WRITERS: dict[type, Callable[[Any], Any]] = {
    float: lambda value: ["float", value.hex()],
    bytes: lambda value: ["bytes", write_bytes(value)],
    tuple: lambda value: ["tuple", *map(write_value, value)],
    Length: lambda value: ["length", write_length(value)],
    Axis: lambda value: ["axis", *write_axis(value)],
    Axes: lambda value: ["axes", *write_axes(value)],
    Frozen: _write_frozen,
}


def read_value(value: Any) -> Any:
    """Return the attribute that ``write_value`` wrote."""
    if value is None or type(value) in (bool, int, str):
        return value
    tag, *parts = read_list(value) or [None]
    if type(tag) is not str or tag not in READERS:
        refuse("the type of a value", tag)
    return READERS[tag](parts)


def _read_float(parts: list[Any]) -> float:
    (text,) = read_list(parts, 1)
    number = float.fromhex(string(text))
    return number if number.hex() == text else refuse("a float in hexadecimal", text)


def _read_length(parts: list[Any]) -> Length:
    (written,) = read_list(parts, 1)
    length = read_length(written)
    return length if isinstance(length, Length) else refuse("an open length", written)


def _read_frozen(parts: list[Any]) -> Frozen:
    array = read_array(["array", *parts])
    array.setflags(write=False)
    return Frozen(array)


def _read_primitive(parts: list[Any]) -> Primitive:
    (name,) = read_list(parts, 1)
    return read_primitive(name)


def read_primitive(name: Any) -> Primitive:
    """Return the primitive of that name."""
    return PRIMITIVES.get(string(name)) or refuse("a primitive", name)


READERS: dict[str, Callable[[list[Any]], Any]] = {
    "float": _read_float,
    "bytes": lambda parts: read_bytes(read_list(parts, 1)[0]),
    "tuple": lambda parts: tuple([read_value(part) for part in parts]),
    "length": _read_length,
    "axis": read_axis,
    "axes": read_axes,
    "frozen": _read_frozen,
    "dtype": lambda parts: read_dtype(read_list(parts, 1)[0]),
    "primitive": _read_primitive,
}
