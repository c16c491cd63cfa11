"""Kernels that are no loop nests: arg-reductions, prefix sums, checks, and those of other files.

Values are contiguous and seen as (outer, n, inner), with the work along the middle axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Op
from ....op_graph.rows.reductions import positions
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.attribute_types import SCATTER_MODES
from ....op_graph.values.dtypes import FLOATS, name_of
from ...kernels.ir.nest import Call
from ...kernels.nests.inlining import inspected_values
from ...printing.scalars import c_expressions
from ...printing.scalars.c_types import C_TYPES
from ...printing.scalars.nan_test import finite
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames, Part
from .cooperative_threads import Team, Value
from .factorisations import WRITERS, matrix_parts
from .fourier import fourier_parts
from .scattering import held_type, scatter_forms
from .sorting import SORTS, around, key_of, sort_forms


def name_in_library(op: Op) -> str:
    """Return the key of an op in ``LIBRARY``."""
    name = op.primitive.name
    return f"{name}_{op.attrs.mode}" if name == "scatter" else name


# Checks -------------------------------------------------------------------------------------------


def _checked(op: Op, names: CudaKernelNames, number: int) -> list[Part]:
    """Check that the smallest and the largest index lie in range."""
    found = inspected_values(op)
    length = names.length(op.attrs.length)
    lowest = f"-({length})" if op.attrs.from_end else "0"
    low, high = names.memory(found[0]), names.memory(found[-1])
    body = [
        f"const int64_t low = (int64_t)*{low}, high = (int64_t)*{high};",
        f"if (low >= {lowest} && high < {length}) return;",
        "failed[1] = low;",
        "failed[2] = high;",
        *names.noted_turn(),
        f"failed[0] = {number + 1};",
    ]
    return [names.function(body, Grid(1), 1, False, names.turns)]


def finite_parts(op: Op, names: CudaKernelNames, number: int, infinite: bool) -> list[Part]:
    """Check that a result of kernel ``number`` is finite, or just no NaN if ``infinite``."""
    dtype, count = name_of(op.dtype), names.length(op.axes.size)
    x = names.pointer(op)
    names.calls(c_expressions.cast_calls(dtype, "float64"))
    look = [
        f"const {C_TYPES[dtype]} x = {x}[at];",
        f"if ({finite(dtype, infinite)}) return;",
        "atomicAdd((unsigned long long *)failed + 1, 1ull);",
        "atomicMax((unsigned long long *)failed + 2, (unsigned long long)(INT64_MAX - at));",
    ]
    tell = [
        "if (failed[1] == 0) return;",
        f"const {C_TYPES[dtype]} x = {x}[INT64_MAX - failed[2]];",
        f"const double value = {c_expressions.cast(dtype, 'float64', 'x')};",
        "memcpy(failed + 3, &value, sizeof value);",
        f"failed[4] = {count};",
        *names.noted_turn(),
        f"failed[0] = {number + 1};",
    ]
    told = names.function(tell, Grid(1), 1, False, names.turns)
    return [names.by_elements(op.axes.size, look), told]


# Prefix sums --------------------------------------------------------------------------------------


class PrefixForm(NamedTuple):
    """Running combinations of ``lines`` lines: a block scans each, or a thread, in order."""

    by_blocks: bool
    lines: Size

    @property
    def summary(self) -> str:
        """Return who scans a line, in words."""
        return f"a {'block' if self.by_blocks else 'thread'} scans each line"


def prefix_forms(op: Op) -> tuple[PrefixForm]:
    """Return the form of a running combination: by threads if order affects rounding."""
    outer, _, inner = around(op, op.axes.names.index(op.attrs.axis))
    reorders = RUNNING[op.primitive.name].reorders or name_of(op.dtype) not in FLOATS
    return (PrefixForm(reorders, outer * inner),)


def prefix_function(form: PrefixForm, names: CudaKernelNames) -> CudaFunction:
    """Return the function of running combinations."""
    assert isinstance(names.kernel.work, Call)
    op = names.kernel.work.op
    x, name, result = op.args[0], op.primitive.name, name_of(op.dtype)
    _, n, inner = around(op, op.axes.names.index(op.attrs.axis))
    exclusive, reverse = op.attrs.exclusive, op.attrs.reverse
    running = RUNNING[name]
    first = c_expressions.literal(running.identity(op.dtype), result)
    total_name = "float64" if (name, result) == ("cumsum", "float32") else result
    total = "double" if (name, result) == ("cumsum", "float32") else C_TYPES[result]
    start = "-0.0" if name == "cumsum" and result in ("float32", "float64") else first

    def joined(a: str, b: str) -> str:
        """Return the C text of two totals combined; both are names."""
        dtypes = (total_name, total_name)
        text = c_expressions.expression(running.step.name, dtypes, total_name, (a, b), wraps=False)
        return f"({total})({text})"

    x_name, out = names.memory(x), names.memory(op)
    n_text, inner_text = names.length(n), names.length(inner)
    place = f"(before * n + {'n - 1 - at' if reverse else 'at'}) * inner + column"
    flag = " != 0" if name_of(x.dtype) == "bool" else ""
    element = f"({total})({C_TYPES[result]})({x_name}[{place}]{flag})"
    shown = "before_all" if exclusive else "all"
    line = [
        f"const int64_t n = {n_text}, inner = {inner_text};",
        "const int64_t before = line / inner, column = line % inner;",
    ]
    if not form.by_blocks:
        body = [
            f"const int64_t line = (int64_t)blockIdx.x * {THREADS_PER_BLOCK} + threadIdx.x;",
            f"if (line >= {names.length(form.lines)}) return;",
            *line,
            f"{total} before_all = {start};",
            "for (int64_t at = 0; at < n; at++) {",
            f"    const {total} own = {element};",
            f"    const {total} all = {joined('before_all', 'own')};",
            f"    {out}[{place}] = ({C_TYPES[result]}){shown};",
            "    before_all = all;",
            "}",
        ]
        grid = Grid(form.lines, THREADS_PER_BLOCK)
        return names.function(body, grid, THREADS_PER_BLOCK, False)
    body = [
        "const int64_t line = blockIdx.x;",
        *line,
        f"__shared__ {total} totals[{THREADS_PER_BLOCK}];",
        "const int rank = threadIdx.x;",
        f"{total} before_tile = {start};",
        f"for (int64_t tile = 0; tile < n; tile += {THREADS_PER_BLOCK}) {{",
        "    const int64_t at = tile + rank;",
        f"    {total} mine = {start};",
        f"    if (at < n) mine = {element};",
        "    totals[rank] = mine;",
        "    __syncthreads();",
        f"    for (int apart = 1; apart < {THREADS_PER_BLOCK}; apart *= 2) {{",
        f"        if (rank >= apart) mine = {joined('totals[rank - apart]', 'mine')};",
        "        __syncthreads();",
        "        totals[rank] = mine;",
        "        __syncthreads();",
        "    }",
        f"    const {total} all = {joined('before_tile', 'mine')};",
        f"    const {total} before_all = rank == 0 ? before_tile : "
        f"{joined('before_tile', 'totals[rank - 1]')};",
        f"    if (at < n) {out}[{place}] = ({C_TYPES[result]}){shown};",
        f"    before_tile = {joined('before_tile', f'totals[{THREADS_PER_BLOCK - 1}]')};",
        "    __syncthreads();",
        "}",
    ]
    return names.function(body, Grid(form.lines), THREADS_PER_BLOCK, True)


# Order --------------------------------------------------------------------------------------------


def _extreme(op: Op, names: CudaKernelNames, number: int) -> list[Part]:
    """Index of each line's first extreme element, one block per line."""
    x, least = op.args[0], op.primitive.name == "argmin"
    outer, n, inner = around(x, positions(op)[0])
    x_name, out = names.memory(x), names.memory(op)
    key_type, key = key_of(x, names, "x")
    flip = f"x != x ? {key} : ({key_type})~{key}" if least else key
    team = Team(THREADS_PER_BLOCK, THREADS_PER_BLOCK)
    best = Value(
        (("best", key_type), ("found", "int64_t")),
        lambda ending: [
            f"if (best{ending} > best || (best{ending} == best && found{ending} < found)) {{",
            f"    best = best{ending};",
            f"    found = found{ending};",
            "}",
        ],
    )
    body = [
        *team.start(),
        f"const int64_t n = {names.length(n)}, inner = {names.length(inner)};",
        "const int64_t start = (int64_t)blockIdx.x / inner * n * inner + blockIdx.x % inner;",
        f"{key_type} best = 0;",
        "int64_t found = INT64_MAX;",
        f"for (int64_t at = rank; at < n; at += {THREADS_PER_BLOCK}) {{",
        f"    const {held_type(name_of(x.dtype))} x = {x_name}[start + at * inner];",
        f"    const {key_type} best_other = {flip};",
        "    const int64_t found_other = at;",
        *(f"    {line}" for line in best.combine("_other")),
        "}",
        *team.joined([best]),
        f"if (rank == 0) {out}[blockIdx.x] = found;",
    ]
    return [names.function(body, Grid(outer * inner), THREADS_PER_BLOCK, True)]


# Kernels of which there is one form.
LIBRARY: dict[str, Callable[[Op, CudaKernelNames, int], list[Part]]] = {
    "checked": _checked,
    "argmax": _extreme,
    "argmin": _extreme,
    "fourier_parts": fourier_parts,
    **dict.fromkeys(WRITERS, matrix_parts),
}
# Forms of kernels of which there are several.
FORMS: dict[str, Callable[[Op], tuple[Any, ...]]] = {
    **dict.fromkeys(SORTS, sort_forms),
    **dict.fromkeys(RUNNING, prefix_forms),
    **{f"scatter_{mode}": scatter_forms for mode in SCATTER_MODES},
}


def call_forms(op: Op) -> tuple[Any, ...]:
    """Return the parts of the form of an op of ``FORMS``; none of others."""
    forms = FORMS.get(name_in_library(op))
    return () if forms is None else forms(op)
