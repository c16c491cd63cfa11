"""C library kernels that order elements: sort, argsort, top_k, argmax and argmin.

They compare unsigned keys (``geon_key_*``), in which both zeros are equal and NaN is the largest.
Sorting is by words that hold a key and, below it, the position it came from. A word has the size of
an element in sort and 8 bytes in the others: keys of 64 bits are put in order by what a position
leaves room for, then by the rest (``c/sort_prefix.h``).

Lines of a few elements change the places of neighbours, whose values they compare, a vector of
lines at once (``c/sort_few.h``). Those of up to ``MOST_ROWS`` elements, of AVX2 twice as many, are
sorted side by side by networks (``c/sort_network.h``).
Longer ones are parted at pivots, a vector at a time (``c/sort_quick.h``), where the processor has
AVX2 and words have 4 or 8 bytes, and by all threads together (``c/sort_shared.h``) where there are
few. Other words are sorted by the bytes of their keys, and bytes are counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.values.dtypes import named_dtype
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ..names.c_files import FileFunction, file_function, instance
from ..sizes.sorts import CACHE_LINE, GRAIN, NARROW_ROWS, TILE, word_bytes

SORTS = frozenset(("sort", "argsort", "top_k"))
HELPERS = ("KEY_OF", "BITS_OF", "OF_BITS")  # macros that are helper functions
MOST_ROWS = 1024  # elements of the longest lines that are sorted side by side by wide vectors
SHORTEST_SHARED = 1 << 16  # elements of the shortest line that all threads sort together


def row_down(row: str, dtype: str) -> int:
    """The bits of a position below the key in the number of an element of a short line.

    Of 64 bits three are left, so that vectors may compare doubles (``c/sort_vector.h``).
    """
    number = number_bytes(row, dtype)
    return 0 if row == "sort" else 29 if number == 8 else 4 * number


def _keys(dtype: str) -> dict[str, object]:
    """The macros of elements' keys."""
    size = named_dtype(dtype).itemsize
    macros: dict[str, object] = {"KEY": f"uint{8 * size}_t", "KEY_BYTES": size}
    macros |= {"KEY_OF": f"geon_key_{SUFFIXES[dtype]}", "GRAIN": GRAIN}
    macros |= {
        "TILE": TILE,
        "CACHE_LINE": CACHE_LINE,
        "SHORTEST_SHARED": SHORTEST_SHARED,
        "BOOLEAN": int(dtype == "bool"),
    }
    return macros | {"FLOATING": int(dtype.startswith("float"))}


def _called(macros: Mapping[str, object]) -> tuple[str, ...]:
    """The helper functions among the macros."""
    return tuple([str(macros[name]) for name in HELPERS if name in macros])


def number_bytes(row: str, dtype: str) -> int:
    """The bytes of the number that stands for an element of a short line: its key, or the key above
    a position as wide; of keys of 64 bits positions are further numbers."""
    key = named_dtype(dtype).itemsize
    return key if row == "sort" else min(2 * key, 8)


def _words(row: str, dtype: str) -> dict[str, object]:
    """The macros of words and of numbers."""
    number, size = number_bytes(row, dtype), word_bytes(row, dtype)
    macros: dict[str, object]
    if row == "sort":
        macros = {"WORD": f"uint{8 * size}_t", "DOWN": 0, "PAIRED": 0}
    else:
        paired = named_dtype(dtype).itemsize == 8
        macros = {"WORD": "uint64_t", "DOWN": 0 if paired else 32, "PAIRED": int(paired)}
    macros |= {"NUMBER": f"uint{8 * number}_t", "NUMBER_BYTES": number}
    down = row_down(row, dtype)
    most = min(MOST_ROWS, 1 << down) if down else MOST_ROWS  # which positions have room for
    macros |= {"ROW_DOWN": down, "MOST_ROWS": most, "NARROW_ROWS": NARROW_ROWS}
    return macros | {"WORD_BYTES": size}


def _turn(name: str, size: int) -> str:
    """A function that turns tiles of elements of so many bytes."""
    macros: dict[str, object] = {"TYPE": f"uint{8 * size}_t", "BYTES": size}
    if size >= 4:
        macros["BLOCK"] = 32 // size
    return instance("transpose.h", name, macros)


def _sorting(row: str, dtype: str, result: str, header: str) -> FileFunction:
    """The function of a row, behind those that turn its elements and its results."""
    name, macros = f"geon_{row}_{SUFFIXES[dtype]}", _keys(dtype) | _words(row, dtype)
    if row == "sort":
        macros["IS_SIGNED"] = int(dtype.startswith("int"))
    if row == "sort" and macros["FLOATING"]:
        suffix = SUFFIXES[dtype]
        macros |= {"BITS_OF": f"geon_bits_{suffix}", "OF_BITS": f"geon_of_bits_{suffix}"}
    types = {"TYPE": C_TYPES[dtype], "RESULT": C_TYPES[result]}
    made = file_function(row, name, types, macros, header, _called(macros))
    turns = _turn(f"{name}_turn", named_dtype(dtype).itemsize)
    turns += _turn(f"{name}_turn_back", named_dtype(result).itemsize)
    return made._replace(definition=turns + made.definition)


def sort_text(dtype: str) -> FileFunction:
    """``void(threads, x, out, scratch, outer, n, inner)``: each line ascending, NaN last.

    Equal elements keep their order. ``out`` may be ``x``. A NaN may lose its payload.
    """
    return _sorting("sort", dtype, dtype, "sort")


def argsort_text(dtype: str) -> FileFunction:
    """``void(threads, x, int64_t *out, scratch, outer, n, inner)``: what sorts each line.

    Equal elements keep their order. Lines have fewer than 2**32 elements unless x is 64 bits wide.
    """
    return _sorting("argsort", dtype, "int64", "sort")


def top_k_text(dtype: str) -> FileFunction:
    """``void(threads, x, int64_t *out, scratch, outer, n, inner, k)``: where the k largest are.

    ``out`` is (outer, k, inner), the largest first, NaN above all, equal elements in order; k is
    at most n. Lines are bounded as in ``argsort_text``.
    """
    return _sorting("top_k", dtype, "int64", "top_k")


def extreme_text(row: str, dtype: str) -> FileFunction:
    """``void(threads, x, int64_t *out, outer, n, inner)``: the position of each line's extreme.

    The first of those equal; the first NaN where there is one. ``out`` is (outer, inner).
    """
    name, macros = f"geon_{row}_{SUFFIXES[dtype]}", _keys(dtype) | {"LEAST": int(row == "argmin")}
    types = {"TYPE": C_TYPES[dtype]}
    return file_function("extreme", name, types, macros, calls=_called(macros))
