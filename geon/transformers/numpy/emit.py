"""Emit a plan as a Python module that calls NumPy.

The module has three functions. ``sizes`` returns the arena's buffers for given lengths, ``bind``
makes every array that can be made before a call (views of the arena and the variables), ``run``
computes. Of the user's names it contains those of axes that loops iterate over, and no line
numbers; ``annotate`` adds all of them as comments.
"""

from __future__ import annotations

from ...op_graph.axes.lengths import Length
from ...op_graph.nodes import shown_name
from ...op_graph.op_graph import Leaf, Op
from ...op_graph.values.attribute_types import Frozen
from ...op_graph.values.dtypes import EXTENSIONS
from ..kernels.ir.nest import Region
from ..lowering.facts.value_sizes import bytes_of
from ..lowering.planning.plan import Plan
from .arrays import ArrayOperands, dtype_text, length_text
from .kernels import statements
from .loops import region_statements
from .split_functions import Line, comment, computing, unpacked

MAX_ADDED_TERMS = 20


def emit(
    plan: Plan, leaves: dict[Leaf, str], constants: dict[Frozen, int], annotate: bool = False
) -> str:
    """Return the module of a plan; ``leaves`` name inputs ``x<n>`` and variables ``v<n>``."""
    work = ArrayOperands(plan, leaves, constants)
    for name in leaves.values():
        work.scopes[name] = "bind" if name.startswith("v") else "run"
    _write(work)
    inputs = [name for name in leaves.values() if name.startswith("x")]
    variables = [name for name in leaves.values() if name.startswith("v")]
    lines: list[Line] = [("import numpy as np", None), (_RUNTIME, None)]
    written = [*work.bind, *work.run, *work.carve_lines()]
    texts = [*work.globals, *(text for text, _ in written)]
    lines += [
        (f"from ml_dtypes import {name}", None)
        for name in EXTENSIONS
        if any(name in text for text in texts)
    ]
    named = [(f"{name} = {text}", None) for text, name in work.globals.items()]
    lines += [("", None), *named, *([("", None)] if named else []), *_sizes(plan), ("", None)]
    work.scopes["L"] = "bind"  # views of an input or a result need lengths in each call
    lines += [(text, op) for text, op in work.functions]
    results = [f"r{k}" for k in range(len(plan.schedule.program.outputs))]
    bound, functions = computing(work.run, work.scopes, inputs, results)
    lines += [("def bind(arena, offsets, variables, constants, L):", None)]
    lines += unpacked(variables, "variables")
    lines += unpacked([f"k{number}" for number in constants.values()], "constants")
    lines += work.carve_lines()
    lines += [(f"    {text}", op) for text, op in work.bind]
    lines += [(f"    return {bound}", None), ("", None), *functions]
    return "\n".join(_comment(text, op) if annotate else text for text, op in lines) + "\n"


def _write(work: ArrayOperands) -> None:
    """Write all kernels, and the statements that make the arrays of results."""
    outputs = work.plan.schedule.program.outputs
    for k, op in enumerate(outputs):
        lengths = op.axes.lengths
        shape = work.shape(lengths)
        if any(isinstance(n, Length) for n in lengths):
            shape = work.make("s", shape, "bind")
        work.scopes[f"r{k}"] = "run"
        work.run.append((f"r{k} = np.empty({shape}, {dtype_text(op.dtype)})", op))
    _write_kernels(work)


def _write_kernels(work: ArrayOperands) -> None:
    """Write all kernels."""
    schedule = work.plan.schedule
    for kernel, (step, _) in zip(schedule.kernels, work.plan.steps, strict=True):
        work.position = position = work.first_step + step
        if isinstance(kernel.work, Region):
            for text in region_statements(work, kernel, _write_kernels):
                work.run.append((text, kernel.op))
            continue
        for text in statements(work, kernel):
            work.run.append((text, kernel.op))
        if schedule.check and kernel.raises and not kernel.has_side_effect:
            checked = work.array(kernel.op)
            check = "numbers" if kernel.infinite else "finite"
            work.run.append((f"rt.check_{check}({checked}, {position})", kernel.op))


_RUNTIME = "from geon.transformers.numpy import runtime as rt"


def _sizes(plan: Plan) -> list[Line]:
    """Return the function that computes buffers' sizes, lifetimes, and bytes of results."""
    sizes = ", ".join(length_text(buffer.size) for buffer in plan.buffers)
    lifetimes = ", ".join(f"({first}, {last})" for first, last in plan.lifetimes)
    outside = [length_text(bytes_of(op)) for op in plan.schedule.program.outputs]
    hidden = [length_text(size) for _, size in plan.hidden]
    if hidden:
        outside.append(f"max({', '.join(hidden)})" if len(hidden) > 1 else hidden[0])
    few = len(outside) <= MAX_ADDED_TERMS  # Python refuses an expression of thousands of additions
    rest = " + ".join(outside) or "0" if few else f"sum([{', '.join(outside)}])"
    return [
        ("def sizes(L):", None),
        (f"    buffers = [{sizes}]", None),
        (f"    lifetimes = [{lifetimes}]", None),
        (f"    return buffers, lifetimes, {rest}", None),
    ]


def _comment(text: str, op: Op | None) -> str:
    if op is None:
        return text
    named = f"{shown_name(op)}: " if op.name else ""
    note = f"{named}{op.primitive.name} {op.axes}  {op.file_info}"
    first, *rest = text.split("\n")
    return "\n".join([f"{first}  # {comment(note)}", *rest])
