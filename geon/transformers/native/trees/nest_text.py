"""Emit a loop nest as C: the functions of the trees of its pieces and variants."""

from __future__ import annotations

from dataclasses import replace

from ...kernels.ir.nest import Nest
from ...loops.tree import Tree
from ...printing.nests.loop_lines import indent
from ...sizes.blocks import MIN_BLOCKS
from ...sizes.limits import MAX_TASK_WORK, MIN_TASK_WORK, MIN_WORK
from ..library.library_kernels import fill_function
from ..names.naming import NAME, KernelNames, NativeFunction
from ..vectors.nontemporal_stores import Passing
from .tree_choice import piece_options, tree_of
from .tree_text import declare, tree_text

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
    return tree_text(tree_of(work, vector_bytes, passing), names, name, passing)


def pieces_text(
    work: Nest, names: KernelNames, vector_bytes: int, name: str, passing: Passing | None
) -> str:
    """Return the C functions of a nest that is split into pieces if lengths allow it."""
    trees: dict[Nest, Tree] = {}
    every = (work, *work.pieces)
    options = {piece: piece_options(work, piece, passing) for piece in every}
    for piece in every:  # adds all parameters, before the first text is used
        passes, jams = options[piece]
        if piece.short is None:
            trees[piece] = tree_of(piece, vector_bytes, passes, jams=jams)
            declare(trees[piece], names, passes)
        else:
            declare_forms(piece, piece.short, names, vector_bytes)

    def text(piece: Nest, called: str) -> str:
        if piece.short is not None:
            return short_text(piece, piece.short, names, vector_bytes, called, None)
        return tree_text(trees[piece], names, called, options[piece][0])

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


def declare_forms(work: Nest, short: Nest, names: KernelNames, vector_bytes: int) -> None:
    """Declare the parameters of a nest with a variant for short rows."""
    for each in (work, *work.pieces, short):
        declare(tree_of(each, vector_bytes, None), names, None)
    for size in work.shortness:
        names.length(size)


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
    declare_forms(work, short, names, vector_bytes)
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
