"""C library kernels that order elements: sort, argsort, top_k, argmax and argmin.

They compare unsigned keys (``geon_key_*``), in which both zeros are equal and NaN is the largest.
They sort words. A word has the key in its upper bits and the element's index below. It has the size
of an element in sort and 8 bytes in the others. 64-bit keys leave no room for an index. They are
sorted by a key prefix first and then by the rest (``c/sort/prefix.h``).

The algorithm depends on the line length. Lines of a few elements use compare-exchange of
neighbouring values, a vector of lines at once (``c/sort/few.h``). Lines of up to
``MAX_WIDE_SORT_LENGTH``
elements (twice as many with AVX2) use sorting networks on several lines at once
(``c/sort/network.h``). Longer lines use a vectorised quicksort (``c/sort/quicksort.h``) if the
processor has AVX2 and words have 4 or 8 bytes. If there are few lines, all threads share each line
(``c/sort/parallel.h``). Other words use a radix sort on the bytes of their keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....op_graph.values.dtypes import named_dtype
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ...sizes.blocks import CACHE_LINE_BYTES, MAX_NARROW_SORT_LENGTH
from ..names.c_files import FileFunction, file_function, instance
from ..sizes.kernel_scratch import (
    MAX_TILE_BYTES,
    MIN_PARALLEL_ELEMENTS,
    MIN_TASK_ELEMENTS,
    word_bytes,
)

SORTS = frozenset(("sort", "argsort", "top_k"))
HELPERS = ("KEY_OF", "BITS_OF", "OF_BITS")  # macros that are helper functions
# Maximum elements of a line that a sorting network sorts with wide vectors.
MAX_WIDE_SORT_LENGTH = 4 * MAX_NARROW_SORT_LENGTH
# Minimum elements of a line that all threads sort together.
MIN_SHARED_SORT_LENGTH = MIN_PARALLEL_ELEMENTS


def row_down(row: str, dtype: str) -> int:
    """Return the number of index bits below the key in the number that represents an element.

    Three of 32 index bits are unused in 64-bit numbers, so that vectors may compare them as doubles
    (``c/sort/vector.h``).
    """
    number = number_bytes(row, dtype)
    return 0 if row == "sort" else 29 if number == 8 else 4 * number


def _keys(dtype: str) -> dict[str, object]:
    """Return the macros that define the keys of ``dtype``."""
    size = named_dtype(dtype).itemsize
    macros: dict[str, object] = {"KEY": f"uint{8 * size}_t", "KEY_BYTES": size}
    macros |= {"KEY_OF": f"geon_key_{SUFFIXES[dtype]}", "GRAIN": MIN_TASK_ELEMENTS}
    macros |= {
        "TILE": MAX_TILE_BYTES,
        "CACHE_LINE": CACHE_LINE_BYTES,
        "SHORTEST_SHARED": MIN_SHARED_SORT_LENGTH,
    }
    return macros | {"FLOATING": int(dtype.startswith("float"))}


def _called(macros: Mapping[str, object]) -> tuple[str, ...]:
    """Return the helper functions that ``macros`` name."""
    return tuple([str(macros[name]) for name in HELPERS if name in macros])


def number_bytes(row: str, dtype: str) -> int:
    """Return the bytes of the number that represents an element in a sorting network.

    It is the key for sort, else the key above an index of the same width. Indices of 64-bit keys
    are in separate numbers.
    """
    key = named_dtype(dtype).itemsize
    return key if row == "sort" else min(2 * key, 8)


def _words(row: str, dtype: str) -> dict[str, object]:
    """Return the macros that define words and numbers."""
    number, size = number_bytes(row, dtype), word_bytes(row, dtype)
    macros: dict[str, object]
    if row == "sort":
        macros = {"WORD": f"uint{8 * size}_t", "DOWN": 0, "PAIRED": 0}
    else:
        paired = named_dtype(dtype).itemsize == 8
        macros = {"WORD": "uint64_t", "DOWN": 0 if paired else 32, "PAIRED": int(paired)}
    macros |= {"NUMBER": f"uint{8 * number}_t", "NUMBER_BYTES": number}
    down = row_down(row, dtype)
    most = (
        min(MAX_WIDE_SORT_LENGTH, 1 << down) if down else MAX_WIDE_SORT_LENGTH
    )  # ``down`` bits hold the index
    macros |= {"ROW_DOWN": down, "MOST_ROWS": most, "NARROW_ROWS": MAX_NARROW_SORT_LENGTH}
    return macros | {"WORD_BYTES": size}


def _turn(name: str, size: int) -> str:
    """Return a C function that transposes tiles of elements of ``size`` bytes."""
    macros: dict[str, object] = {"TYPE": f"uint{8 * size}_t", "BYTES": size}
    if size >= 4:
        macros["BLOCK"] = 32 // size
    return instance("move/transpose.h", name, macros)


def _sorting(row: str, dtype: str, result: str) -> FileFunction:
    """Return the sorting function of ``row``, after its transposes of elements and results."""
    name, macros = f"geon_{row}_{SUFFIXES[dtype]}", _keys(dtype) | _words(row, dtype)
    partial = row in ("top_k", "bottom_k")
    macros |= {"PARTIAL": int(partial), "LARGEST": int(row == "top_k")}
    if row == "sort":
        macros["IS_SIGNED"] = int(dtype.startswith("int"))
    if row == "sort" and macros["FLOATING"]:
        suffix = SUFFIXES[dtype]
        macros |= {"BITS_OF": f"geon_bits_{suffix}", "OF_BITS": f"geon_of_bits_{suffix}"}
    types = {"TYPE": C_TYPES[dtype], "RESULT": C_TYPES[result]}
    file, header = ("sort" if row == "sort" else "argsort"), ("top_k" if partial else "sort")
    made = file_function(f"sort/{file}", name, types, macros, f"sort/{header}", _called(macros))
    turns = _turn(f"{name}_turn", named_dtype(dtype).itemsize)
    turns += _turn(f"{name}_turn_back", named_dtype(result).itemsize)
    return made._replace(definition=turns + made.definition)


def sort_text(dtype: str) -> FileFunction:
    """Return ``void(threads, x, out, scratch, outer, n, inner)``: sort each line, NaN last.

    The order is ascending and stable. ``out`` may be ``x``. A NaN may lose its payload.
    """
    return _sorting("sort", dtype, dtype)


def argsort_text(dtype: str) -> FileFunction:
    """Return ``void(threads, x, int64_t *out, scratch, outer, n, inner)``: stable argsort of each
    line.

    Lines have fewer than 2**32 elements unless x is 64 bits wide.
    """
    return _sorting("argsort", dtype, "int64")


def top_k_text(dtype: str, largest: bool = True) -> FileFunction:
    """Return ``void(threads, x, int64_t *out, scratch, outer, n, inner, k)``: indices of the k
    largest elements, or of the k smallest ones.

    ``out`` is (outer, k, inner), in descending order, NaN first, or in ascending order, NaN last;
    equal elements are in their order; k is at most n. Lines are bounded as in ``argsort_text``.
    """
    return _sorting("top_k" if largest else "bottom_k", dtype, "int64")


def extreme_text(row: str, dtype: str) -> FileFunction:
    """Return ``void(threads, x, int64_t *out, outer, n, inner)``: argmax or argmin of each line.

    The index is that of the first NaN if there is one, else of the first extreme. ``out`` is
    (outer, inner).
    """
    name, macros = f"geon_{row}_{SUFFIXES[dtype]}", _keys(dtype) | {"LEAST": int(row == "argmin")}
    types = {"TYPE": C_TYPES[dtype]}
    return file_function("argmax", name, types, macros, calls=_called(macros))
