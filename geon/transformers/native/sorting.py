"""C library kernels that order elements: sort, argsort, top_k, argmax and argmin.

All compare unsigned keys (``geon_key_*``), in which both zeros are equal and NaN is the largest.
Sorting is by words that hold a key and, below it, the position it came from; a least-significant
digit radix sort takes a byte of the keys at a time. ``scratch`` has for each thread two words per
element of a line, in whole lines of cache. A word has the size of an element in sort, and 8 bytes
in the others, or 16 for an x of 64 bits. The C is in the files of these names, and ``c/extreme.c``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...op_graph.dtypes import named_dtype
from ...op_graph.lengths import Length
from ..printing.c_types import C_TYPES, SUFFIXES
from .c_files import FileFunction, file_function

SORTS = frozenset(("sort", "argsort", "top_k"))
HELPERS = ("KEY_OF", "BITS_OF", "OF_BITS")  # macros that are helper functions
_GRAIN = 16384  # elements that are worth a task of their own: some 100 microseconds


def lines_of_task(length: int | Length) -> int | Length:
    """How many lines of this length one task sorts."""
    return 1 + _GRAIN // (length + 1)


def word_bytes(row: str, dtype: str) -> int:
    """The bytes of a word in which ``row`` sorts elements of ``dtype``."""
    size = named_dtype(dtype).itemsize
    return size if row == "sort" else 16 if size == 8 else 8


def _keys(dtype: str) -> dict[str, object]:
    """The macros of elements' keys."""
    size = named_dtype(dtype).itemsize
    macros: dict[str, object] = {"KEY": f"uint{8 * size}_t", "KEY_BYTES": size}
    macros |= {"KEY_OF": f"geon_key_{SUFFIXES[dtype]}", "GRAIN": _GRAIN}
    return macros | {"FLOATING": int(dtype.startswith("float"))}


def _called(macros: Mapping[str, object]) -> tuple[str, ...]:
    """The helper functions among the macros."""
    return tuple([str(macros[name]) for name in HELPERS if name in macros])


def _positions(dtype: str) -> dict[str, object]:
    """The macros of words that hold a key above a position."""
    wide = named_dtype(dtype).itemsize == 8
    word, position = ("unsigned __int128", "uint64_t") if wide else ("uint64_t", "uint32_t")
    down = 64 if wide else 32
    return {"WORD": word, "POSITION": position, "DOWN": down}


def sort_text(dtype: str) -> FileFunction:
    """``void(threads, x, out, scratch, outer, n, inner)``: each line ascending, NaN last.

    Equal elements keep their order. ``out`` may be ``x``. A NaN loses its payload.
    """
    macros, suffix = _keys(dtype), SUFFIXES[dtype]
    macros |= {"WORD": macros["KEY"], "DOWN": 0, "SIGNED": int(dtype.startswith("int"))}
    if macros["FLOATING"]:
        macros |= {"BITS_OF": f"geon_bits_{suffix}", "OF_BITS": f"geon_of_bits_{suffix}"}
    calls = _called(macros)
    types = {"TYPE": C_TYPES[dtype], "RESULT": C_TYPES[dtype]}
    return file_function("sort", f"geon_sort_{suffix}", types, macros, calls=calls)


def argsort_text(dtype: str) -> FileFunction:
    """``void(threads, x, int64_t *out, scratch, outer, n, inner)``: what sorts each line.

    Equal elements keep their order. Lines have fewer than 2**32 elements unless x is 64 bits wide.
    """
    name, macros = f"geon_argsort_{SUFFIXES[dtype]}", _keys(dtype) | _positions(dtype)
    types = {"TYPE": C_TYPES[dtype], "RESULT": "int64_t"}
    return file_function("argsort", name, types, macros, "sort", _called(macros))


def top_k_text(dtype: str) -> FileFunction:
    """``void(threads, x, int64_t *out, scratch, outer, n, inner, k)``: where the k largest are.

    ``out`` is (outer, k, inner), the largest first, NaN above all, equal elements in order; k is
    at most n. Lines are bounded as in ``argsort_text``.
    """
    name, macros = f"geon_top_k_{SUFFIXES[dtype]}", _keys(dtype) | _positions(dtype)
    types = {"TYPE": C_TYPES[dtype], "RESULT": "int64_t"}
    return file_function("top_k", name, types, macros, calls=_called(macros))


def extreme_text(row: str, dtype: str) -> FileFunction:
    """``void(threads, x, int64_t *out, outer, n, inner)``: the position of each line's extreme.

    The first of those equal; the first NaN where there is one. ``out`` is (outer, inner).
    """
    name, macros = f"geon_{row}_{SUFFIXES[dtype]}", _keys(dtype) | {"LEAST": int(row == "argmin")}
    types = {"TYPE": C_TYPES[dtype]}
    return file_function("extreme", name, types, macros, calls=_called(macros))
