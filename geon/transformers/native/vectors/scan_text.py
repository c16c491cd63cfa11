"""Emit a sequential scan as C: a block of rows in vector lanes runs through all iterations."""

from __future__ import annotations

from ...kernels.analysis.work_estimate import EXPENSIVE
from ...kernels.ir.scalar_code import Apply, walk
from ...kernels.scans.sequential_scan import OrderedLoop
from ...kernels.scans.slp_cost import packed
from ...printing.nests.parameters import Parameter
from ...printing.nests.scan_statements import PrintedOrdered, print_ordered
from ..names.loop_lines import SIMD, for_loop, indented
from ..names.naming import NAME, Function, KernelNames, head
from .slp_text import print_packed, vector_type

# gcc moves single-use values to their use, so that independent scalar chains no longer overlap.
IN_ORDER = """#if defined(__GNUC__) && !defined(__clang__)
#define GEON_IN_ORDER __attribute__((optimize("no-tree-ter")))
#else
#define GEON_IN_ORDER
#endif"""
LOOK = 1 << 20  # statements between two tests for an interrupt, some tenths of a millisecond
ROWS = 64  # rows in lanes at a time: their carries stay in the L1 cache or in registers


def ordered_function(work: OrderedLoop, names: KernelNames, vector_bytes: int) -> Function:
    """Return the C function of a sequential scan."""
    shared: tuple[str, ...] = ()
    side_by_side = packed(work, vector_bytes)
    if side_by_side is not None:
        lines = _one(work, names, print_packed(work, side_by_side, names))
        shared = (vector_type(side_by_side.dtype, side_by_side.width)[1],)
        if side_by_side.chain(work):
            lines, shared = ["GEON_IN_ORDER", *lines], (*shared, IN_ORDER)
    elif work.rows == 1:
        lines = _one(work, names, print_ordered(work, names, lambda name: name))
    else:
        printed = print_ordered(work, names, lambda name: f"{name}[lane]")
        lines = _many(work, names, printed)
    text = "\n".join([*lines, ""])
    return Function(text, tuple(names.parameters), shared, calls=tuple(names.called))


def turns(work: OrderedLoop, names: KernelNames, body: list[str]) -> list[str]:
    """Return the loop over all iterations, in order; an interrupt ends it, as its values are then
    unused.
    """
    count = names.length(work.turns)
    part = f"{count} - 1 - turn" if work.reverse else "turn"
    body = [f"const int64_t part = {part};", "(void)part;", *body]
    some = between_looks(work)
    if some is None:
        return for_loop("turn", "0", count, body)
    return [
        f"for (int64_t some = 0; some < {count}; some += {some}) {{",
        "    if (watched && geon_interrupted()) break;",
        f"    const int64_t end = some + {some} < {count} ? some + {some} : {count};",
        *indented(for_loop("turn", "some", "end", body)),
        "}",
    ]


def between_looks(work: OrderedLoop) -> int | None:
    """Return the number of iterations between two tests for an interrupt; None if the loop is
    short.
    """
    some = max(1, LOOK // (weight(work) * (1 if work.rows == 1 else ROWS)))
    return None if isinstance(work.turns, int) and work.turns <= some else some


def watching(work: OrderedLoop) -> list[str]:
    """Return the declaration that ``turns`` needs; a call in the loop would spill carries to
    memory.
    """
    return [] if between_looks(work) is None else ["const int watched = geon_is_watched();"]


def _one(work: OrderedLoop, names: KernelNames, printed: PrintedOrdered) -> list[str]:
    """Return the function of a scan of one row, which runs in the calling thread."""
    declared = [f"{ctype} {name};" for ctype, name in printed.carries]
    body = [
        *watching(work),
        *printed.top,
        "const int64_t row = 0;",
        "(void)row; (void)threads;",
        *declared,
    ]
    body += [*printed.first, *turns(work, names, printed.turn), *printed.last]
    return [f"static {head(names.parameters)}", "{", *indented(body), "}"]


def _many(work: OrderedLoop, names: KernelNames, printed: PrintedOrdered) -> list[str]:
    """Return the functions of a block of rows, of a task, and of all rows."""
    size = names.length(work.rows)
    body = [
        *watching(work),
        *printed.top,
        *(f"{ctype} {name}[{ROWS}];" for ctype, name in printed.carries),
    ]
    body += _each(printed.first)
    body += turns(work, names, _each(printed.turn)) + _each(printed.last)
    calls_grain = [*dict.fromkeys([*names.called, "geon_grain"])]
    names.calls(calls_grain)
    parameters = names.parameters
    some = [*(p.declared() for p in parameters), "const int64_t begin", "const int64_t lanes"]
    given = [*(f"a->{p.name}" for p in parameters), "at"]
    grain = Parameter("grain", "int64_t", None, False)
    fields = [f"{p.declared(restrict=False)};" for p in [*parameters, grain]]
    passed = [f".{p.name} = {p.name}" for p in [*parameters, grain]]
    rows = f"{NAME}_rows({_list(given)}"
    task = [
        f"const struct {NAME}_some *a = argument;",
        *(f"const int64_t {p.name} = a->{p.name};" for p in names.of_lengths),
        f"const int64_t size = {size}, from = task * a->grain;",
        "const int64_t end = from + a->grain < size ? from + a->grain : size;",
        "int64_t at = from;",
        f"for (; at + {ROWS} <= end; at += {ROWS})",
        f"    {rows}, {ROWS});",
        f"if (at < end) {rows}, end - at);",
    ]
    main = [
        f"const int64_t size = {size}, work = {names.length(work.turns)} * {weight(work)};",
        "int64_t grain = geon_grain(size, work);",
        f"grain = (grain + {ROWS - 1}) / {ROWS} * {ROWS};",
        "const int64_t parts = (size + grain - 1) / grain;",
        f"struct {NAME}_some a = {{{_list(passed)}}};",
        f"geon_pool_run({NAME}_task, &a, parts, threads);",
    ]
    return [
        f"struct {NAME}_some {{",
        *indented(fields),
        "};",
        f"GEON_INLINE void {NAME}_rows({_list(some)})",
        "{",
        *indented(body),
        "}",
        f"static void {NAME}_task(void *argument, int64_t task)",
        "{",
        *indented(task),
        "}",
        f"static {head(parameters)}",
        "{",
        *indented(main),
        "}",
    ]


def _list(parts: list[str]) -> str:
    return ", ".join(parts)


def _each(lines: list[str]) -> list[str]:
    """Return a loop over lanes around the statements of one row."""
    if not lines:
        return []
    return [SIMD, *for_loop("lane", "0", "lanes", ["const int64_t row = begin + lane;",
                                                   "(void)row;", *lines])]  # fmt: skip


def weight(work: OrderedLoop) -> int:
    """Return the estimated number of statements of an iteration of one row."""
    values = [carry.value for carry in work.carries] + [store.value for store in work.stores]
    rows = [node.row.cost == "expensive" for node in walk(*values) if isinstance(node, Apply)]
    return 1 + len(values) + sum(EXPENSIVE if costly else 1 for costly in rows)
