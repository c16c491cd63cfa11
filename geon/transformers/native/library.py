"""C kernels that are not loop nests: sorting, prefix sums, scatter, random bits and checks.

Arrays are contiguous and seen as (outer, n, inner), work being along the middle one. A module that
holds these texts has the helpers of ``c_expressions.definitions`` and, at file scope,
``geon_pool_run``, which runs tasks on several threads, and ``geon_seat``, which numbers those of
one run. Results do not depend on the number of threads: each element is the work of one task.
"""

from __future__ import annotations

from collections.abc import Callable

from ..c_expressions import cast, combine, expression, identity
from ..c_functions import C_TYPES, SUFFIXES
from .sorting import argsort_text, extreme_text, sort_text, top_k_text

HALVES = ("float16", "bfloat16")
_GRAIN = 65536  # elements that are worth a task of their own: some 20 microseconds


def library_text(name: str, dtypes: tuple[str, ...]) -> tuple[str, str]:
    """The name and the definition of the C function of a library kernel for these dtypes.

    ``name`` is one of ``LIBRARY``; the functions there say which dtypes a kernel takes and the
    parameters of its C function. int64_t where no type is said; ``threads`` is int32_t.
    """
    return LIBRARY[name](*dtypes)


# Prefix sums and products -------------------------------------------------------------------------

# A sum starts from -0, so that the first element stays what it is even where that is -0.
_CUMULATIVE = """\
struct {name}_work {{
    const {type} *x;
    {result} *out;
    int64_t blocks, columns, n, inner, each;
    int exclusive, reverse;
}};

static void {name}_columns(const struct {name}_work *all, int64_t at, int64_t width)
{{
    {total} totals[64];
    for (int64_t j = 0; j < width; j++)
        totals[j] = {start};
    int64_t step = all->reverse ? -all->inner : all->inner;
    at += all->reverse ? (all->n - 1) * all->inner : 0;
    for (int64_t i = 0; i < all->n; i++, at += step)
        for (int64_t j = 0; j < width; j++) {{
            {result} before = i ? ({result})totals[j] : {identity};
            {total} value = ({result})all->x[at + j];
            totals[j] = {combined};
            all->out[at + j] = all->exclusive ? before : ({result})totals[j];
        }}
}}

static void {name}_task(void *argument, int64_t index)
{{
    const struct {name}_work *all = argument;
    int64_t start = index * all->each, end = start + all->each;
    for (int64_t block = start; block < end && block < all->blocks; block++) {{
        int64_t column = block % all->columns * 64;
        int64_t width = all->inner - column < 64 ? all->inner - column : 64;
        int64_t at = block / all->columns * all->n * all->inner + column;
        if (all->inner == 1)
            {name}_columns(all, at, 1);
        else
            {name}_columns(all, at, width);
    }}
}}

static void {name}(int32_t threads, const {type} *x, {result} *out, int64_t outer, int64_t n,
                   int64_t inner, int exclusive, int reverse)
{{
    int64_t columns = (inner + 63) / 64, each = 1 + {grain} / ((inner < 64 ? inner : 64) * n + 1);
    struct {name}_work all = {{
        x, out, outer * columns, columns, n, inner, each, exclusive, reverse}};
    if (all.blocks && n)
        geon_pool_run({name}_task, &all, (all.blocks + each - 1) / each, threads);
}}
"""


def cumulative_text(row: str, dtype: str, result: str | None = None) -> tuple[str, str]:
    """``void(threads, x, out, outer, n, inner, int exclusive, int reverse)``: running totals.

    They accumulate in the dtype of the result, that of ``x`` unless given, sums of float32 in
    float64; ``out`` may be ``x``.
    """
    result = result or dtype
    step = "sum" if row == "cumsum" else "prod"
    start = identity(step, result)
    if row == "cumsum" and result in ("float32", "float64"):
        start = "-0.0"
    name = f"geon_{row}_{SUFFIXES[dtype]}_{SUFFIXES[result]}"
    words = {"name": name, "type": C_TYPES[dtype], "result": C_TYPES[result], "start": start}
    words |= {"identity": identity(step, result), "grain": str(_GRAIN)}
    total = "float64" if (row, result) == ("cumsum", "float32") else result
    words["total"] = C_TYPES[total]
    words["combined"] = combine(step, total, "totals[j]", "value")
    return name, _CUMULATIVE.format(**words)


# Scatter ------------------------------------------------------------------------------------------

_SCATTER = """\
struct {name}_work {{
    const {type} *x, *value;
    const {index} *positions;
    {type} *out;
    int64_t columns, width, n, inner, m;
}};

static void {name}_task(void *argument, int64_t index)
{{
    const struct {name}_work *all = argument;
    int64_t outer = index / all->columns, column = index % all->columns * all->width;
    int64_t width = all->inner - column < all->width ? all->inner - column : all->width;
    {type} *out = all->out + outer * all->n * all->inner + column;
    const {type} *x = all->x + outer * all->n * all->inner + column;
    const {type} *value = all->value + outer * all->m * all->inner + column;
    for (int64_t i = 0; x != out && i < all->n; i++)
        __builtin_memcpy(out + i * all->inner, x + i * all->inner, (size_t)width * sizeof *x);
    for (int64_t i = 0; i < all->m; i++, value += all->inner) {{
        int64_t position = (int64_t)all->positions[i];
        {type} *place = out + (position < 0 ? position + all->n : position) * all->inner;
        for (int64_t j = 0; j < width; j++)
            place[j] = {stored};
    }}
}}

static void {name}(int32_t threads, const {type} *x, const {index} *positions,
                   const {type} *value, {type} *out, int64_t outer, int64_t n, int64_t inner,
                   int64_t m)
{{
    int64_t width = (1 + {grain} / (n + m + 1) + 63) / 64 * 64;
    struct {name}_work all = {{
        x, value, positions, out, (inner + width - 1) / width, width, n, inner, m}};
    if (outer > 0 && inner > 0)
        geon_pool_run({name}_task, &all, outer * all.columns, threads);
}}
"""


def scatter_text(mode: str, dtype: str, index: str) -> tuple[str, str]:
    """``void(threads, x, positions, value, out, outer, n, inner, m)``: x with values put in.

    ``positions`` has m integers of dtype ``index`` that lie inside the axis, negative ones counted
    from its end; ``value`` is (outer, m, inner). They are set or added in order, so that of two at
    one place the later stays. ``out`` may be ``x``.
    """
    name = f"geon_scatter_{mode}_{SUFFIXES[dtype]}_{SUFFIXES[index]}"
    words = {"name": name, "type": C_TYPES[dtype], "index": C_TYPES[index], "grain": str(_GRAIN)}
    words["stored"] = "value[j]" if mode == "set" else _sum(dtype, "place[j]", "value[j]")
    return name, _SCATTER.format(**words)


def _sum(dtype: str, x: str, y: str) -> str:
    if dtype == "bool":
        return combine("any", dtype, x, y)
    if dtype in HALVES:
        wide = (cast(dtype, "float32", x), cast(dtype, "float32", y))
        return cast("float32", dtype, expression("add", ("float32",) * 2, "float32", wide))
    return expression("add", (dtype, dtype), dtype, (x, y))


# Random bits --------------------------------------------------------------------------------------

# 16 counters at once fill vectors; the four words of a counter are neighbours in the result. A
# uint64 is two words, the low one first, as little-endian machines hold it.
_RANDOM_BITS = """\
struct {name}_work {{
    {type} *out;
    int64_t words;
    uint32_t key[2], draw, call;
}};

static void {name}_sixteen(const struct {name}_work *all, uint32_t counter, uint32_t *words)
{{
    for (uint32_t lane = 0; lane < 16; lane++) {{
        uint32_t a = counter + lane, b = 0, c = all->draw, d = all->call;
        uint32_t k0 = all->key[0], k1 = all->key[1];
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {{
            uint64_t left = (uint64_t)a * 0xD2511F53u, right = (uint64_t)c * 0xCD9E8D57u;
            a = (uint32_t)(right >> 32) ^ b ^ k0;
            b = (uint32_t)right;
            c = (uint32_t)(left >> 32) ^ d ^ k1;
            d = (uint32_t)left;
        }}
        words[4 * lane] = a;
        words[4 * lane + 1] = b;
        words[4 * lane + 2] = c;
        words[4 * lane + 3] = d;
    }}
}}

static void {name}_task(void *argument, int64_t index)
{{
    const struct {name}_work *all = argument;
    int64_t start = index * {grain}, end = start + {grain};
    uint32_t words[64];
    end = end < all->words ? end : all->words;
    for (int64_t i = start; i < end; i += 64) {{
        int64_t count = end - i < 64 ? end - i : 64;
        {name}_sixteen(all, (uint32_t)(i / 4), words);
        __builtin_memcpy((char *)all->out + i * 4, words, (size_t)count * 4);
    }}
}}

static void {name}(int32_t threads, {type} *out, int64_t count, uint64_t seed, uint64_t draw,
                   const uint64_t *calls)
{{
    struct {name}_work all = {{
        out, count * (int64_t)(sizeof *out / 4), {{(uint32_t)seed, (uint32_t)(seed >> 32)}},
        (uint32_t)draw, (uint32_t)*calls}};
    geon_pool_run({name}_task, &all, (all.words + {grain} - 1) / {grain}, threads);
}}
"""


def random_bits_text(dtype: str) -> tuple[str, str]:
    """``void(threads, out, count, uint64_t seed, uint64_t draw, const uint64_t *calls)``.

    Fills ``out`` with count elements of uint32 or uint64 as ``op_graph.philox`` says, at most
    2**34 words of 32 bits.
    """
    name = f"geon_random_bits_{SUFFIXES[dtype]}"
    return name, _RANDOM_BITS.format(name=name, type=C_TYPES[dtype], grain=_GRAIN)


# Checks -------------------------------------------------------------------------------------------

_CHECK_POSITIONS = """\
static int {name}(const {type} *positions, int64_t count, int64_t length, int64_t *found)
{{
    {type} low = count ? positions[0] : 0, high = low;
    for (int64_t i = 0; i < count; i++) {{
        low = positions[i] < low ? positions[i] : low;
        high = positions[i] > high ? positions[i] : high;
    }}
    found[0] = {low};
    found[1] = {high};
    return count && (found[0] < -length || found[1] >= length);
}}
"""
_CHECK_FINITE = """\
static int {name}(const {type} *x, int64_t count, int64_t *wrong, double *first)
{{
    *wrong = 0;
    for (int64_t start = 0; start < count; start += 4096) {{
        int64_t end = start + 4096 < count ? start + 4096 : count;
        {counter} here = 0;
        for (int64_t i = start; i < end; i++)
            here += {test} ? 0 : 1;
        if (here && !*wrong) {{
            int64_t i = start;
            while ({test})
                i++;
            *first = {value};
        }}
        *wrong += here;
    }}
    return *wrong != 0;
}}
"""


def check_positions_text(dtype: str) -> tuple[str, str]:
    """``int(positions, count, length, int64_t *found)``: whether one lies outside the axis.

    ``found`` gets the smallest and the largest; of a uint64, at most 2**63 - 1. They must lie in
    -length to length - 1.
    """
    name = f"geon_check_positions_{SUFFIXES[dtype]}"
    words = {"name": name, "type": C_TYPES[dtype], "low": "low", "high": "high"}
    if dtype == "uint64":
        held = "(int64_t)({0} > INT64_MAX ? INT64_MAX : {0})"
        words |= {"low": held.format("low"), "high": held.format("high")}
    return name, _CHECK_POSITIONS.format(**words)


def check_finite_text(dtype: str) -> tuple[str, str]:
    """``int(x, count, int64_t *wrong, double *first)``: whether a value is not finite.

    ``wrong`` gets how many are not, ``first`` the first of them where there is one.
    """
    name = f"geon_check_finite_{SUFFIXES[dtype]}"
    words = {"name": name, "type": C_TYPES[dtype], "value": cast(dtype, "float64", "x[i]")}
    if dtype in HALVES:
        exponent = "0x7c00" if dtype == "float16" else "0x7f80"
        words |= {"test": f"(x[i] & {exponent}) != {exponent}", "counter": "int16_t"}
    else:
        test = expression("isfinite", (dtype,), "bool", ("x[i]",))
        words |= {"test": test, "counter": "int32_t" if dtype == "float32" else "int64_t"}
    return name, _CHECK_FINITE.format(**words)


LIBRARY: dict[str, Callable[..., tuple[str, str]]] = {
    "sort": sort_text,
    "argsort": argsort_text,
    "top_k": top_k_text,
    "argmax": lambda dtype: extreme_text("argmax", dtype),
    "argmin": lambda dtype: extreme_text("argmin", dtype),
    "cumsum": lambda *dtypes: cumulative_text("cumsum", *dtypes),
    "cumprod": lambda *dtypes: cumulative_text("cumprod", *dtypes),
    "scatter_set": lambda *dtypes: scatter_text("set", *dtypes),
    "scatter_add": lambda *dtypes: scatter_text("add", *dtypes),
    "random_bits": random_bits_text,
    "check_positions": check_positions_text,
    "check_finite": check_finite_text,
}
