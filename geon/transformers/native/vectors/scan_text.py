"""Emit a sequential scan as C: a block of rows in vector lanes runs through all iterations."""

from __future__ import annotations

from dataclasses import replace

from ...kernels.analysis.op_counts import operations
from ...kernels.ir.scalar_code import Apply, walk
from ...kernels.scans.sequential_scan import OrderedLoop
from ...kernels.scans.slp import Packed
from ...printing.nests.loop_lines import for_loop, indent, stepped_loop
from ...printing.nests.parameters import Parameter
from ...printing.nests.scan_statements import PrintedOrdered, print_ordered
from ...sizes.limits import AVX512_BYTES, LONG_LOOP_TURNS
from ..names.dialect import SIMD
from ..names.naming import NAME, KernelNames, NativeFunction, head
from ..names.out_of_line import out_of_line
from .scan_copies import ScanCopies, ScanForm, copied, filled
from .slp_text import print_packed, vector_type

# gcc moves single-use values to their use, so that independent scalar chains no longer overlap.
IN_ORDER = """#if defined(__GNUC__) && !defined(__clang__)
#define GEON_IN_ORDER __attribute__((optimize("no-tree-ter")))
#else
#define GEON_IN_ORDER
#endif"""
# The body of an iteration is long text with one loop. gcc allocates registers of it as well, in a
# third less time, if the loop is no region of its own.
LONG = """#if defined(__GNUC__) && !defined(__clang__)
#define GEON_LONG static __attribute__((noinline, optimize("ira-region=one")))
#else
#define GEON_LONG static __attribute__((noinline))
#endif"""
# Statements between two tests for an interrupt, some tenths of a millisecond.
STATEMENTS_PER_STOP_CHECK = 1 << 20
BLOCK = AVX512_BYTES // 4  # rows per vector block, where what they read is copied
# Rows in lanes at a time: their carries stay in the L1 cache or in registers.
ROWS_PER_BLOCK = LONG_LOOP_TURNS


def ordered_function(work: OrderedLoop, form: ScanForm, names: KernelNames) -> NativeFunction:
    """Return the C function of a sequential scan of this form."""
    shared: tuple[str, ...] = ()
    if work.rows == 1:
        printed, chain, shared = _one_row(work, names, form.packed)
        lines = [*chain, *_one(work, names, printed)]
    elif form.copies is None:
        lines = _many(work, names)
    else:
        lines, shared = _many_copied(work, names, form.copies, form.packed)
    text = "\n".join([*lines, ""])
    return NativeFunction(text, tuple(names.parameters), shared, calls=tuple(names.called))


def _one_row(
    work: OrderedLoop, names: KernelNames, packed: Packed | None
) -> tuple[PrintedOrdered, list[str], tuple[str, ...]]:
    """Return the statements of a loop of one row, the attributes of its function, and the texts
    that it needs once in a unit.
    """
    if packed is None:
        return print_ordered(work, names, lambda name: name), [], ()
    printed = print_packed(work, packed, names)
    shared = (vector_type(packed.dtype, packed.width)[1],)
    if packed.chain(work):
        return printed, ["GEON_IN_ORDER"], (*shared, IN_ORDER)
    return printed, [], shared


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
        *indent(for_loop("turn", "some", "end", body)),
        "}",
    ]


def between_looks(work: OrderedLoop) -> int | None:
    """Return the number of iterations between two tests for an interrupt; None if the loop is
    short.
    """
    some = max(
        1, STATEMENTS_PER_STOP_CHECK // (weight(work) * (1 if work.rows == 1 else ROWS_PER_BLOCK))
    )
    return None if isinstance(work.turns, int) and work.turns <= some else some


def watching(work: OrderedLoop) -> list[str]:
    """Return the declaration that ``turns`` needs; a call in the loop would spill carries to
    memory.
    """
    return [] if between_looks(work) is None else ["const int watched = geon_is_watched();"]


def _one(
    work: OrderedLoop, names: KernelNames, printed: PrintedOrdered, name: str = NAME
) -> list[str]:
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
    own_head = head(names.parameters).replace(NAME, name)
    return [f"static {own_head}", "{", *indent(body), "}"]


def _many(work: OrderedLoop, names: KernelNames) -> list[str]:
    """Return the functions of a block of contiguous rows, of a task, and of all rows."""
    printed = print_ordered(work, names, lambda name: f"{name}[lane]")
    body = _begun(work, printed) + _each(printed.first)
    body += turns(work, names, _each(printed.turn)) + _each(printed.last)
    return _of_rows(work, names, "GEON_INLINE", body, [])


def _many_copied(
    work: OrderedLoop, names: KernelNames, made: ScanCopies, packed: Packed | None
) -> tuple[list[str], tuple[str, ...]]:
    """Return the functions of some rows whose elements are copied, of a task of them, and of all,
    and the texts that they need once in a unit.

    The lanes of vectors that no row fills have what the last row has, so that there is one loop
    over vectors and none over what they leave. One row by itself has a function of its own.
    """
    roots = [*(store.value for store in work.stores), *(carry.value for carry in work.carries)]
    printed = print_ordered(
        work, names, lambda name: f"{name}[lane]", made.texts, out_of_line(roots)
    )
    last = "begin + (lane < lanes ? lane : lanes - 1)"
    fill = filled(made.turn)
    each = for_loop("lane", "at", f"at + {BLOCK}", _at_row(last, printed.turn))
    turn = [
        *copied(work, names, made.turn, ROWS_PER_BLOCK),
        *(["if (turn == 0) {", *indent(fill), "}"] if fill else []),
        *stepped_loop("at", BLOCK, [SIMD, *each], "0", "filled"),
        *copied(work, names, made.after, ROWS_PER_BLOCK, stores=True),
    ]
    body = [
        *_begun(work, printed),
        f"const int64_t filled = (lanes + {BLOCK - 1}) / {BLOCK} * {BLOCK};",
        *made.declared(ROWS_PER_BLOCK),
        *copied(work, names, made.before, ROWS_PER_BLOCK),
        *filled(made.before),
        *for_loop("lane", "0", "filled", _at_row(last, printed.first)),
        *turns(work, names, turn),
        *(
            for_loop("lane", "0", "lanes", _at_row("begin + lane", printed.last))
            if printed.last
            else []
        ),
    ]
    if isinstance(work.rows, int):
        return _of_rows(work, names, "GEON_LONG", body, []), (LONG,)
    alone = replace(work, rows=1)
    row, chain, shared = _one_row(alone, names, packed)
    one = [*chain, *_one(alone, names, row, f"{NAME}_one")]
    given = _list(["threads", *(p.name for p in names.parameters)])
    main = [f"if ({names.length(work.rows)} == 1) {{", f"    {NAME}_one({given});", "    return;",
            "}"]  # fmt: skip
    return [*one, *_of_rows(work, names, "GEON_LONG", body, main)], (*shared, LONG)


def _at_row(number: str, lines: list[str]) -> list[str]:
    """Return statements for the row of this number, which they may use."""
    return [f"const int64_t row __attribute__((unused)) = {number};", *lines]


def _begun(work: OrderedLoop, printed: PrintedOrdered) -> list[str]:
    """The statements before the carries of rows begin."""
    carries = [f"{ctype} {name}[{ROWS_PER_BLOCK}];" for ctype, name in printed.carries]
    return [*watching(work), *printed.top, *carries]


def _of_rows(
    work: OrderedLoop, names: KernelNames, inlined: str, body: list[str], first: list[str]
) -> list[str]:
    """The functions of some rows, of a task of them, and of all, which begins with ``first``."""
    size = names.length(work.rows)
    calls_grain = [*dict.fromkeys([*names.called, "geon_grain"])]
    names.calls(calls_grain)
    parameters = names.parameters
    some = [*(p.declared() for p in parameters), "const int64_t begin", "const int64_t lanes"]
    given = [*(f"a->{p.name}" for p in parameters), "at"]
    grain = Parameter("grain", "int64_t", None, False)
    fields = [f"{p.declared(restrict='')};" for p in [*parameters, grain]]
    passed = [f".{p.name} = {p.name}" for p in [*parameters, grain]]
    rows = f"{NAME}_rows({_list(given)}"
    task = [
        f"const struct {NAME}_some *a = argument;",
        *(f"const int64_t {p.name} = a->{p.name};" for p in names.of_lengths),
        f"const int64_t size = {size}, from = task * a->grain;",
        "const int64_t end = from + a->grain < size ? from + a->grain : size;",
        "int64_t at = from;",
        f"for (; at + {ROWS_PER_BLOCK} <= end; at += {ROWS_PER_BLOCK})",
        f"    {rows}, {ROWS_PER_BLOCK});",
        f"if (at < end) {rows}, end - at);",
    ]
    main = [
        *first,
        f"const int64_t size = {size}, work = {names.length(work.turns)} * {weight(work)};",
        "int64_t grain = geon_grain(size, work);",
        f"grain = (grain + {ROWS_PER_BLOCK - 1}) / {ROWS_PER_BLOCK} * {ROWS_PER_BLOCK};",
        "const int64_t parts = (size + grain - 1) / grain;",
        f"struct {NAME}_some a = {{{_list(passed)}}};",
        f"geon_pool_run({NAME}_task, &a, parts, threads);",
    ]
    return [
        f"struct {NAME}_some {{",
        *indent(fields),
        "};",
        f"{inlined} void {NAME}_rows({_list(some)})",
        "{",
        *indent(body),
        "}",
        f"static void {NAME}_task(void *argument, int64_t task)",
        "{",
        *indent(task),
        "}",
        f"static {head(parameters)}",
        "{",
        *indent(main),
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
    applied = [node for node in walk(*values) if isinstance(node, Apply)]
    return 1 + len(values) + sum(map(operations, applied))
