"""Emit a loop nest as C: the functions of its trees, and one that calls them."""

from __future__ import annotations

from ...kernels.ir.nest import Fill, Nest
from ...lowering.planning.kernel_forms import FormChoice
from ...printing.nests.loop_lines import indent
from ...sizes.blocks import MIN_BLOCKS
from ...sizes.limits import MAX_TASK_WORK, MIN_TASK_WORK, MIN_WORK
from ..library.library_kernels import fill_function
from ..names.naming import NAME, KernelNames, NativeFunction
from .kernel_forms import Forms, NestTree
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


def nest_function(work: Nest, forms: Forms, names: KernelNames, name: str = NAME) -> NativeFunction:
    """Return the C function of a nest that runs ``forms``."""
    declare_forms(work, forms, names)
    first = forms[0]
    if len(forms) == 1 and isinstance(first, NestTree):
        text = tree_text(first.tree, names, name, first.passing)
    else:
        texts: list[str] = []
        lines = calls(work, forms, names, name, texts)
        head = f"static void {name}(int32_t threads, {names.declared()})"
        text = "".join(texts) + "\n".join([head, "{", *indent(lines), "}"]) + "\n"
    parameters = tuple(names.parameters)
    return NativeFunction(
        text, parameters, names.headers, units=names.units, of_vectors=not names.plain
    )


def declare_forms(work: Nest, forms: Forms, names: KernelNames) -> None:
    """Declare the parameters of all functions of a nest, which each of them has."""
    for form in forms:
        if isinstance(form, FormChoice):
            for size in form.holds:
                names.length(size)
            declare_forms(work, (*form.others, *form.forms), names)
        elif isinstance(form, Fill):
            names.operand(form.operand), names.operand(form.source)
            names.length(work.operands[form.operand].axes.size)
        else:
            declare(form.tree, names, form.passing)


def calls(work: Nest, forms: Forms, names: KernelNames, name: str, texts: list[str]) -> list[str]:
    """Return the statements that run forms; add the functions of their trees to ``texts``."""
    lines: list[str] = []
    for form in forms:
        if isinstance(form, FormChoice):
            holds = " && ".join([f"{names.length(size)} >= 0" for size in form.holds])
            then, otherwise = [
                indent(calls(work, each, names, name, texts)) for each in (form.forms, form.others)
            ]
            lines += [f"if ({holds}) {{", *then, "} else {", *otherwise, "}"]
        elif isinstance(form, Fill):
            out, old = names.operand(form.operand), names.operand(form.source)
            if out != old:
                size = names.length(work.operands[form.operand].axes.size)
                lines.append(
                    f"geon_fill(threads, {out}, {old}, ({size}) * (int64_t)sizeof *{out});"
                )
                names.needs(fill_function())
        else:
            part = f"{name}_{len(texts)}"
            texts.append(tree_text(form.tree, names, part, form.passing))
            lines.append(f"{part}({', '.join(['threads', *(p.name for p in names.parameters)])});")
    return lines
