"""Emit a loop nest as C: a task function on a part of the work, and a function that divides it."""

from __future__ import annotations

from dataclasses import replace

from ...kernels.ir.nest import Nest
from ...loops.work import MAX_TASK_WORK, MIN_TASK_WORK, MIN_WORK
from ...printing.nests.loop_lines import indent
from ...printing.nests.nest_statements import print_nest
from ...printing.nests.pass_text import PrintedNest
from ...sizes.blocks import MIN_BLOCKS
from ..library.library_kernels import fill_function
from ..library.random_words import words_function
from ..names.naming import NAME, KernelNames, NativeFunction
from ..trees.tree_choice import piece_options, tree_of
from ..trees.tree_text import declare, tree_text
from ..vectors.nontemporal_stores import Passing
from .row_loops import NestByRows
from .task_text import printed_passes

# Return the number of loop iterations of one task; the bounds of its work are those of trees.
GRAIN = f"""\
GEON_INLINE int64_t geon_grain(int64_t size, int64_t work)
{{
    const int64_t each = work > 0 ? work : 1, share = (size + {MIN_BLOCKS - 1}) / {MIN_BLOCKS};
    const int64_t least = 1 + {MIN_TASK_WORK} / each, most = 1 + {MAX_TASK_WORK} / each;
    const int64_t grain = share < least ? least : share < most ? share : most;
    return size * each < {MIN_WORK} && size > 0 ? size : grain;
}}
"""


def nest_function(
    work: Nest,
    names: KernelNames,
    vector_bytes: int,
    name: str = NAME,
    passing: Passing | None = None,
) -> NativeFunction:
    """Return the C function of a nest; ``passing`` describes its possible non-temporal stores."""
    text = function_text(work, names, vector_bytes, name, passing)
    parameters = tuple(names.parameters)
    return NativeFunction(
        text, parameters, names.headers, units=names.units, of_vectors=not names.plain
    )


def function_text(
    work: Nest, names: KernelNames, vector_bytes: int, name: str, passing: Passing | None
) -> str:
    """Return the C functions of a nest with its variants, copies and pieces."""
    if work.short is not None:
        return short_text(work, work.short, names, vector_bytes, name, passing)
    if work.pieces:
        return pieces_text(work, names, vector_bytes, name, passing)
    if work.fill is None:
        return form_text(work, names, vector_bytes, name, passing)
    out, old = names.operand(work.fill.operand), names.operand(work.fill.source)
    size = names.length(work.operands[work.fill.operand].axes.size)
    part = form_text(work, names, vector_bytes, f"{name}_part", passing)
    copy = ""
    if out != old:
        copy = f"    geon_fill(threads, {out}, {old}, ({size}) * (int64_t)sizeof *{out});\n"
        names.needs(fill_function())
    call = ", ".join(["threads", *(p.name for p in names.parameters)])
    head = f"static void {name}(int32_t threads, {names.declared()})"
    return f"{part}{head}\n{{\n{copy}    {name}_part({call});\n}}\n"


def form_text(
    work: Nest, names: KernelNames, vector_bytes: int, name: str, passing: Passing | None
) -> str:
    """Return the C functions of a nest without variants, copies and pieces."""
    tree = tree_of(work, vector_bytes, passing)
    if tree is not None:
        return tree_text(tree, names, name, passing)
    return nest_text(printed_nest(work, names, vector_bytes), names, name, vector_bytes, passing)


def printed_nest(work: Nest, names: KernelNames, vector_bytes: int) -> PrintedNest:
    """Return the statements of a nest, which the compiler vectorises."""
    names.plain = True
    printed = print_nest(work, names)
    if any(made.windows for made in printed_passes(printed)):
        names.needs(words_function())
    return printed


def pieces_text(
    work: Nest, names: KernelNames, vector_bytes: int, name: str, passing: Passing | None
) -> str:
    """Return the C functions of a nest that is split into pieces if lengths allow it."""

    every = (work, *work.pieces)
    options = {piece: piece_options(work, piece, passing) for piece in every}
    trees = {
        piece: tree_of(piece, vector_bytes, passes, jams=jams)
        for piece, (passes, jams) in options.items()
        if piece.short is None
    }

    def text(piece: Nest, called: str) -> str:
        if piece.short is not None:
            return short_text(piece, piece.short, names, vector_bytes, called, None)
        tree, (passes, _) = trees[piece], options[piece]
        if tree is not None:
            return tree_text(tree, names, called, passes)
        printed = printed_nest(piece, names, vector_bytes)
        return nest_text(printed, names, called, vector_bytes, passes)

    called = dict(names.called)
    for piece in every:  # adds all parameters, before the first text is used
        tree = trees.get(piece)
        if tree is not None:
            declare(tree, names, options[piece][0])
        else:
            text(piece, name)
    names.called = called
    if len(work.pieces) == 1 and not work.holds:
        return text(work.pieces[0], name)
    parts = [text(piece, f"{name}_{k}") for k, piece in enumerate(work.pieces)]
    holds = " && ".join([f"{names.length(size)} >= 0" for size in work.holds])
    call = ", ".join(["threads", *(p.name for p in names.parameters)])
    lines = [f"{name}_{k}({call});" for k in range(len(work.pieces))]
    if holds:
        parts.append(text(work, f"{name}_whole"))
        lines = [f"if ({holds}) {{", *indent([*lines, "return;"]), "}", f"{name}_whole({call});"]
    head = f"static void {name}(int32_t threads, {names.declared()})"
    return "".join(parts) + "\n".join([head, "{", *indent(lines), "}"]) + "\n"


def short_text(
    work: Nest,
    short: Nest,
    names: KernelNames,
    vector_bytes: int,
    name: str,
    passing: Passing | None,
) -> str:
    """Return the C functions of a nest with a variant for short rows, and the choice."""
    if not work.shortness:
        return function_text(short, names, vector_bytes, name, passing)
    noted = dict(names.called)
    for each in (work, *work.pieces, short):
        # Emit it once for its parameters alone.
        form_text(each, names, vector_bytes, name, None)
    names.called = noted
    longer = replace(work, short=None, shortness=())
    parts = [
        function_text(longer, names, vector_bytes, f"{name}_long", passing),
        function_text(short, names, vector_bytes, f"{name}_short", None),
    ]
    holds = " && ".join([f"{names.length(size)} >= 0" for size in work.shortness])
    call = ", ".join(["threads", *(p.name for p in names.parameters)])
    head = f"static void {name}(int32_t threads, {names.declared()})"
    lines = [f"if ({holds})", f"    {name}_short({call});", "else", f"    {name}_long({call});"]
    return "".join(parts) + "\n".join([head, "{", *indent(lines), "}"]) + "\n"


def nest_text(
    nest: PrintedNest,
    names: KernelNames,
    name: str,
    vector_bytes: int,
    passing: Passing | None = None,
) -> str:
    """Return the C functions of one form of a nest; ``name`` is the one to call."""
    return NestByRows(nest, names, name, vector_bytes, passing).by_rows()
