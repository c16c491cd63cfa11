"""C library kernels that order elements: sort, argsort, top_k, argmax and argmin.

All compare unsigned keys (``geon_key_*``), in which both zeros are equal and NaN is the largest.
Sorting is by words that hold a key and, below it, the position it came from; a least-significant
digit radix sort takes a byte of the keys at a time. ``scratch`` has for each thread two words per
element of a line, in whole lines of cache. A word has the size of an element in sort, and 8 bytes
in the others, or 16 for an x of 64 bits.
"""

from __future__ import annotations

from ...op_graph.dtypes import named_dtype
from ...op_graph.lengths import Length
from ..c_functions import C_TYPES, SUFFIXES

# Insertion up to this many words: below, a radix sort spends its time on counters.
_WORDS = """\
static {word} *{name}_words({word} *words, {word} *other, int64_t n)
{{
    if (n <= {few}) {{
        for (int64_t i = 1; i < n; i++) {{
            {word} word = words[i];
            int64_t j = i;
            for (; j > 0 && words[j - 1] > word; j--)
                words[j] = words[j - 1];
            words[j] = word;
        }}
        return words;
    }}
    int64_t starts[{bytes}][256];
    __builtin_memset(starts, 0, sizeof starts);
    for (int64_t i = 0; i < n; i++) {{
        {key} key = ({key})(words[i]{down});
        for (int digit = 0; digit < {bytes}; digit++)
            starts[digit][key >> 8 * digit & 255]++;
    }}
    for (int digit = 0; digit < {bytes}; digit++) {{
        int64_t *start = starts[digit], total = 0;
        if (start[({key})(words[0]{down}) >> 8 * digit & 255] == n)
            continue; /* all have the same byte here */
        for (int byte = 0; byte < 256; byte++) {{
            int64_t count = start[byte];
            start[byte] = total;
            total += count;
        }}
        for (int64_t i = 0; i < n; i++)
            other[start[({key})(words[i]{down}) >> 8 * digit & 255]++] = words[i];
        {word} *sorted = other;
        other = words;
        words = sorted;
    }}
    return words;
}}
"""

_SORT_LINE = """\
static void {name}_line(const {type} *x, {type} *out, int64_t n, int64_t inner, {word} *keys)
{{
    for (int64_t i = 0; i < n; i++)
        keys[i] = geon_key_{suffix}(x[i * inner]);
    {word} *other = keys + n, *sorted = {name}_words(keys, other, n);
{store}}}
"""
_STORE_INTEGER = """\
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = ({type})(sorted[i]{flip});
"""
# Zeros of both signs have one key: their signs are put back in the order they had.
_STORE_FLOAT = """\
    {word} top = ({word})1 << {top}, *signs = sorted == keys ? other : keys;
    int64_t zeros = 0, negative = 0, before = 0;
    for (int64_t i = 0; i < n; i++)
        negative += geon_bits_{suffix}(x[i * inner]) == top;
    for (int64_t i = 0; negative && i < n; i++) {{
        before += sorted[i] < top;
        if (x[i * inner] == 0)
            signs[zeros++] = geon_bits_{suffix}(x[i * inner]);
    }}
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = geon_of_bits_{suffix}(sorted[i] & top ? sorted[i] ^ top : ~sorted[i]);
    for (int64_t i = 0; i < zeros; i++)
        out[(before + i) * inner] = geon_of_bits_{suffix}(signs[i]);
"""
_ARGSORT_LINE = """\
static void {name}_line(const {type} *x, int64_t *out, int64_t n, int64_t inner, {word} *words)
{{
    for (int64_t i = 0; i < n; i++)
        words[i] = ({word})geon_key_{suffix}(x[i * inner]) << {half} | ({word})i;
    {word} *sorted = {name}_words(words, words + n, n);
    for (int64_t i = 0; i < n; i++)
        out[i * inner] = (int64_t)({part})sorted[i];
}}
"""
# Few of many are held in order while the rest is compared with the last of them, 64 at a time.
_TOP_K_LINE = """\
GEON_INLINE {key} {name}_key({type} x)
{{
    {key} key = geon_key_{suffix}(x);
    return ({key})~key;
}}

static void {name}_line(const {type} *x, int64_t *out, int64_t n, int64_t inner, int64_t k,
                        {word} *words)
{{
    int64_t first = k <= 64 && k < n / 4 ? k : n;
    for (int64_t i = 0; i < first; i++)
        words[i] = ({word}){name}_key(x[i * inner]) << {half} | ({word})i;
    {word} *sorted = {name}_words(words, words + first, first);
    for (int64_t i = first; k > 0 && i < n;) {{
        int64_t end = i + 64 < n ? i + 64 : n;
        {key} limit = ({key})(sorted[k - 1] >> {half});
        int closer = 0;
        for (int64_t j = i; j < end; j++)
            closer |= {name}_key(x[j * inner]) < limit;
        for (; closer && i < end; i++) {{
            {word} word = ({word}){name}_key(x[i * inner]) << {half} | ({word})i;
            int64_t place = k - 1;
            if (word > sorted[place])
                continue;
            for (; place > 0 && sorted[place - 1] > word; place--)
                sorted[place] = sorted[place - 1];
            sorted[place] = word;
        }}
        i = end;
    }}
    for (int64_t i = 0; i < k; i++)
        out[i * inner] = (int64_t)({part})sorted[i];
}}
"""
# ``k`` is the length of a line of the result.
_LINES = """\
struct {name}_lines {{
    const {type} *x;
    {out} *out;
    char *scratch;
    int64_t lines, n, inner, k, each;
}};

static void {name}_task(void *argument, int64_t index)
{{
    struct {name}_lines *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    int64_t part = (2 * all->n * (int64_t)sizeof({word}) + 63) / 64 * 64;
    {word} *words = ({word} *)(all->scratch + geon_seat() * part);
    for (int64_t line = start; line < end && line < all->lines; line++) {{
        int64_t outer = line / all->inner, inner = line % all->inner;
        {name}_line(all->x + outer * all->n * all->inner + inner,
                    all->out + outer * all->k * all->inner + inner, all->n, all->inner, {k}words);
    }}
}}

static void {name}(int32_t threads, const {type} *x, {out} *out, char *scratch, int64_t outer,
                   int64_t n, int64_t inner{parameter})
{{
    int64_t each = 1 + {grain} / (n + 1);
    struct {name}_lines all = {{x, out, scratch, outer * inner, n, inner, {length}, each}};
    if (all.lines && n)
        geon_pool_run({name}_task, &all, (all.lines + each - 1) / each, threads);
}}
"""

_GRAIN = 16384  # elements that are worth a task of their own: some 100 microseconds


SORTS = frozenset(("sort", "argsort", "top_k"))


def lines_of_task(length: int | Length) -> int | Length:
    """How many lines of this length one task sorts."""
    return 1 + _GRAIN // (length + 1)


def word_bytes(row: str, dtype: str) -> int:
    """The bytes of a word in which ``row`` sorts elements of ``dtype``."""
    size = named_dtype(dtype).itemsize
    return size if row == "sort" else 16 if size == 8 else 8


def _words(dtype: str) -> dict[str, str]:
    bits = 8 if dtype == "bool" else int(dtype.lstrip("uintfloa"))
    words = {"type": C_TYPES[dtype], "suffix": SUFFIXES[dtype], "key": f"uint{bits}_t"}
    words |= {"bytes": str(bits // 8), "top": str(bits - 1), "few": str(24 + bits)}
    return words | {"half": "64" if bits == 64 else "32", "grain": str(_GRAIN)}


def sort_text(dtype: str) -> tuple[str, str]:
    """``void(threads, x, out, scratch, outer, n, inner)``: each line ascending, NaN last.

    Equal elements keep their order. ``out`` may be ``x``. A NaN loses its payload.
    """
    words = _words(dtype)
    words |= {"name": f"geon_sort_{words['suffix']}", "word": words["key"], "down": ""}
    words |= {"out": words["type"], "k": "", "parameter": "", "length": "n"}
    signed = dtype.startswith("int")
    words["flip"] = f" ^ ({words['word']})1 << {words['top']}" if signed else ""
    store = _STORE_FLOAT if dtype.startswith("float") else _STORE_INTEGER
    words["store"] = store.format(**words)
    return words["name"], "\n".join(t.format(**words) for t in (_WORDS, _SORT_LINE, _LINES))


def argsort_text(dtype: str) -> tuple[str, str]:
    """``void(threads, x, int64_t *out, scratch, outer, n, inner)``: what sorts each line.

    Equal elements keep their order. Lines have fewer than 2**32 elements unless x is 64 bits wide.
    """
    words = _words(dtype) | {"name": f"geon_argsort_{SUFFIXES[dtype]}"} | _positions(dtype)
    words |= {"k": "", "parameter": "", "length": "n"}
    return words["name"], "\n".join(t.format(**words) for t in (_WORDS, _ARGSORT_LINE, _LINES))


def top_k_text(dtype: str) -> tuple[str, str]:
    """``void(threads, x, int64_t *out, scratch, outer, n, inner, k)``: where the k largest are.

    ``out`` is (outer, k, inner), the largest first, NaN above all, equal elements in order; k is
    at most n. Lines are bounded as in ``argsort_text``.
    """
    words = _words(dtype) | {"name": f"geon_top_k_{SUFFIXES[dtype]}"} | _positions(dtype)
    words |= {"k": "all->k, ", "parameter": ", int64_t k", "length": "k"}
    return words["name"], "\n".join(t.format(**words) for t in (_WORDS, _TOP_K_LINE, _LINES))


def _positions(dtype: str) -> dict[str, str]:
    """Words of a key above a position."""
    if _words(dtype)["half"] == "64":
        found = {"word": "unsigned __int128", "part": "uint64_t"}
    else:
        found = {"word": "uint64_t", "part": "uint32_t"}
    return found | {"down": f" >> {_words(dtype)['half']}", "out": "int64_t"}


# Positions of extremes ----------------------------------------------------------------------------

# Blocks find their largest key in vectors; only one above what was found is searched.
_EXTREME = """\
GEON_INLINE {key} {name}_key({type} x)
{{
    {key} key = geon_key_{suffix}(x);
    return {chosen};
}}

static int64_t {name}_line(const {type} *x, int64_t n, int64_t inner)
{{
    {key} best = 0;
    int64_t found = 0;
    for (int64_t start = 0; start < n; start += 512) {{
        int32_t count = n - start < 512 ? (int32_t)(n - start) : 512, first = 512;
        {key} largest = 0;
        for (int32_t i = 0; i < count; i++) {{
            {key} key = {name}_key(x[(start + i) * inner]);
            largest = key > largest ? key : largest;
        }}
        if (largest <= best)
            continue;
        best = largest;
        for (int32_t i = 0; i < count; i++) {{
            int32_t here = {name}_key(x[(start + i) * inner]) == best ? i : 512;
            first = here < first ? here : first;
        }}
        found = start + first;
    }}
    return found;
}}

struct {name}_lines {{
    const {type} *x;
    int64_t *out, lines, n, inner, each;
}};

static void {name}_task(void *argument, int64_t index)
{{
    const struct {name}_lines *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    for (int64_t line = start; line < end && line < all->lines; line++) {{
        if (all->inner == 1)
            all->out[line] = {name}_line(all->x + line * all->n, all->n, 1);
        else
            all->out[line] = {name}_line(all->x + line / all->inner * all->n * all->inner
                                         + line % all->inner, all->n, all->inner);
    }}
}}

static void {name}(int32_t threads, const {type} *x, int64_t *out, int64_t outer, int64_t n,
                   int64_t inner)
{{
    int64_t each = 1 + {grain} / (n + 1);
    struct {name}_lines all = {{x, out, outer * inner, n, inner, each}};
    if (all.lines)
        geon_pool_run({name}_task, &all, (all.lines + each - 1) / each, threads);
}}
"""


def extreme_text(row: str, dtype: str) -> tuple[str, str]:
    """``void(threads, x, int64_t *out, outer, n, inner)``: the position of each line's extreme.

    The first of those equal; the first NaN where there is one. ``out`` is (outer, inner).
    """
    words = _words(dtype) | {"name": f"geon_{row}_{SUFFIXES[dtype]}", "grain": str(4 * _GRAIN)}
    smallest = f"({words['key']})~key"
    if dtype.startswith("float"):
        smallest = f"x != x ? key : {smallest}"
    words["chosen"] = "key" if row == "argmax" else smallest
    return words["name"], _EXTREME.format(**words)
