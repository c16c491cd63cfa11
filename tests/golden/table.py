"""The table ``program -> kernels``: what a person reads first when kernels change."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from geon.op_graph.core.traversal import is_bound
from geon.op_graph.op_graph import Leaf, Op
from geon.transformers.kernels.nests.inlining import element_arguments
from geon.transformers.lowering.fusion.kernel import Kernel

HEAD = """\
# Kernels of the golden programs

Native code for two threads and vectors of 64 bytes, written by `python -m tests.golden --update`.
A program's kernels run in this order.
*Makes* are the values that a kernel puts into memory, with `:=` those that are the new values of
variables; *of* are the values in memory that it reads; *by* the ops that it computes between them,
arguments first. An op in two kernels is computed twice. *Nest by N* has passes that share the rows
of N, *by no axis* ends in a scalar, *nest* alone is one pass.
"""
KINDS = ("nest", "contraction", "call")
UNSEEN = frozenset({"broadcast", "reorder", "rename", "flatten", "unflatten"})  # only other indices


def table(computations: Mapping[str, Any]) -> str:
    """A line of counts for each program, then its kernels one by one."""
    counts = [f"| program | kernels | {' | '.join(KINDS)} | peak bytes |"]
    counts.append("|---" * (len(KINDS) + 3) + "|")
    parts = []
    for name, f in computations.items():
        kernels = f.plan.schedule.kernels
        kinds = Counter(kernel.kind for kernel in kernels)
        each = " | ".join(str(kinds[kind]) for kind in KINDS)
        counts.append(f"| {name} | {len(kernels)} | {each} | {f.peak_bytes()} |")
        parts += ["", f"## {name}", "", "| | kind | makes | of | by |", "|---|---|---|---|---|"]
        parts += (row(number, kernel) for number, kernel in enumerate(kernels))
    return "\n".join([HEAD, *counts, *parts, ""])


def row(number: int, kernel: Kernel) -> str:
    """One kernel."""
    makes = ", ".join(
        f"{kernel.writes[op]} := {op.primitive.name}" if op in kernel.writes else shown(op)
        for op in kernel.results or (kernel.op,)
    )
    of = ", ".join(shown(op) for op in kernel.reads)
    return f"| {number} | {kind(kernel)} | {makes} | {of} | {', '.join(computed(kernel))} |"


def kind(kernel: Kernel) -> str:
    """What form a kernel has, and the axes that its passes share as rows."""
    rows = kernel.fused.rows
    if rows is None:
        return str(kernel.kind)
    return f"{kernel.kind} by {', '.join(sorted(rows)) or 'no axis'}"


def computed(kernel: Kernel) -> Iterator[str]:
    """The ops that a kernel computes, arguments first, equal ones counted."""
    found: dict[Op, None] = {}
    made, read = {*kernel.results, kernel.op}, set(kernel.reads)
    stack = [(op, False) for op in reversed(kernel.results or (kernel.op,))]
    while stack:
        op, ready = stack.pop()
        if op in found or op not in made and (op in read or is_bound(op)):
            continue
        if ready:
            found[op] = None
        else:
            stack.append((op, True))
            stack += ((arg, False) for arg in reversed(element_arguments(op)))
    texts = Counter(worded(op) for op in found if op.primitive.name not in UNSEEN)
    return (text if count == 1 else f"{count} {text}" for text, count in texts.items())


def worded(op: Op) -> str:
    """An op with the axes that it reduces."""
    gone = [n for n in dict.fromkeys(n for a in op.args for n in a.axes.names) if n not in op.axes]
    reduces = op.primitive.name == "dot" or op.primitive.kind == "reduction"
    return f"{op.primitive.name} over {', '.join(gone)}" if reduces and gone else op.primitive.name


def shown(op: Op) -> str:
    """A value in memory as a user names it."""
    return str(op) if isinstance(op, Leaf) or op.name else f"{op.primitive.name}{op.axes}"
