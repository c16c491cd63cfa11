"""Error messages of calls, extended by the ops concerned and the user's lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...errors import (
    ArgumentError,
    AxisError,
    DeviceError,
    GeonError,
    IndexRangeError,
    LinearAlgebraError,
    NonFiniteError,
    SizeError,
)
from ...op_graph.axes.lengths import evaluate, names_of
from ...op_graph.nodes import made_at, sites_of
from ...op_graph.op_graph import Leaf, Op, post_order
from ...op_graph.rows.indexing import before_int64, is_held, purpose_of
from ...op_graph.values.dtypes import kind
from ..binding.call_values import input_label
from ..compile import CompileStages
from ..lowering.facts.value_sizes import bytes_of
from ..lowering.planning.plan import Plan
from ..runtime.calls import explain_error
from ..runtime.loop_steps import shown_steps
from ..runtime.value_errors import UNCONVERGED, outside

# Kinds of ops that a kernel may compute without memory, beside those that have a home.
COMPUTED = ("elementwise", "reduction", "contraction")
MAX_SHOWN_KERNELS = 5  # max. kernels listed in a message if the failed one is unknown


def describe_kernel(op: Op) -> str:
    """Return a kernel's description in messages: its op, line, and forward or derivative pass."""
    remarks = [site[2] for site in sites_of(op)]
    derived = all(remark.startswith(("derivative", "tangent")) for remark in remarks)
    shown = str(op) if op.name is None else f"{op} ({op.primitive.name})"
    made = "made"
    if op.primitive.name == "checked" and op.attrs.batch is None:
        index = before_int64(op.args[0])
        shown, made = f"{index} (made at {made_at(index)})", purpose_of(op).used
    which = "derivative" if derived else "forward"
    if op.primitive.name == "checked" and op.attrs.batch is not None:
        return f"a matrix factorised at {made_at(op)}, in the {which} pass, {purpose_of(op).used}"
    if op.primitive.name == "checked" and kind(op.dtype) == "f":
        return (
            f"fixed_point made at {made_at(op)}, in the {which} pass, of {op.attrs.length} steps "
            f"at most, {UNCONVERGED}"
        )
    return f"{shown} {made} at {made_at(op)}, in the {which} pass"


def with_placeholders(error: ArgumentError, leaves: Sequence[Leaf]) -> ArgumentError:
    """Return an error about the arguments of a call, extended by the placeholders."""
    lines = [f"  {leaf} {leaf.dtype.name} made at {leaf.line_info}" for leaf in leaves]
    return ArgumentError("\n".join([str(error), *lines]))


def about_ops(error: GeonError, stages: CompileStages, fed: Sequence[Any] | None) -> Exception:
    """Return an error of a call, extended by the op that it concerns and the user's line.

    ``fed`` are the values of the placeholders, which may be the cause; None if not known any more.
    """
    if isinstance(error, NonFiniteError) and getattr(error, "kernel", None) is not None:
        kernel = error.kernel  # type: ignore[attr-defined]  # a kernel that checked its result
        op = stages.plan.kernel_at(kernel).op
        blamed = (
            "" if fed is None else not_finite([op, outermost_op(kernel, stages.plan)], stages, fed)
        )
        if blamed:
            where = f"{describe_kernel(op)}{shown_steps(error)}"
            return NonFiniteError(f"{blamed}: feed finite ones\n  {where}: {error}")
    if isinstance(error, IndexRangeError) and getattr(error, "kernel", None) is not None:
        error = with_purpose(error, stages.plan.kernel_at(error.kernel).op)  # type: ignore[attr-defined]
    if isinstance(error, LinearAlgebraError) and getattr(error, "kernel", None) is not None:
        return with_cure(error, stages.plan.kernel_at(error.kernel).op)  # type: ignore[attr-defined]
    if isinstance(error, AxisError) and error.open_name is not None:
        return with_open_axis(error, [*stages.request.results, *stages.request.pure.roots])
    if isinstance(error, SizeError) and error.lengths is not None:
        return with_largest(error, stages.plan)
    if isinstance(error, DeviceError) and error.lost:
        return with_kernels(error, stages.plan)
    return explain_error(error, lambda kernel: describe_kernel(stages.plan.kernel_at(kernel).op))


def with_purpose(error: IndexRangeError, op: Op) -> IndexRangeError:
    """Return an index error with the cure that fits the purpose of the check ``op``."""
    positions = getattr(error, "positions", None)
    if positions is None or op.primitive.name != "checked":
        return error
    low, high, first, length = positions
    made = outside(low, high, first, length, purpose_of(op).cure, is_held(op.args[0]))
    vars(made).update(vars(error))
    return made


def with_cure(error: LinearAlgebraError, op: Op) -> LinearAlgebraError:
    """Return the error of a failed factorisation with its op, its step and the cure."""
    shown = f"{describe_kernel(op)}{shown_steps(error)}"
    return LinearAlgebraError(f"{shown}: it is {error}; {purpose_of(op).cure}")


def outermost_op(step: int, plan: Plan) -> Op:
    """Return the op of the kernel, outside of all loops, that contains a step."""
    spans = zip(plan.schedule.kernels, plan.steps, strict=True)
    return next(kernel.op for kernel, (first, last) in spans if first <= step <= last)


def not_finite(ops: Iterable[Op], stages: CompileStages, fed: Sequence[Any]) -> str:
    """Return text about non-finite data of a placeholder below ``ops``; empty without any."""
    below = set(post_order(ops))
    leaves = stages.request.placeholders
    inputs = stages.linking.inputs[: len(leaves)]
    for leaf, inner, value in zip(leaves, inputs, fed[: len(leaves)], strict=True):
        if inner not in below or kind(leaf.dtype) not in "fc":
            continue
        wide = np.float64 if kind(leaf.dtype) == "f" else np.complex128
        with suppress(TypeError, ValueError):
            finite = np.isfinite(np.asarray(value, wide))
            if not finite.all():
                first = np.asarray(value)[~finite][0]
                return (
                    f"{input_label(leaf)} was fed {finite.size - int(finite.sum())} of "
                    f"{finite.size} values that are not finite, the first is {first}"
                )
    return ""


def with_open_axis(error: AxisError, roots: Iterable[Op]) -> AxisError:
    """Return an error about an unknown open length, extended by the first op that has it."""
    for op in post_order(roots):
        lengths = [*op.axes.lengths, *(op.attrs if op.primitive.name == "length" else ())]
        if any(error.open_name in names_of(length) for length in lengths):
            return AxisError(f"{error}\n  {op} made at {made_at(op)}")
    return error


def with_largest(error: SizeError, plan: Plan) -> SizeError:
    """Return an error about the memory of a computation, extended by its largest value."""
    lengths = error.lengths or {}
    ops = post_order(plan.schedule.program.roots)
    passing = [op for op in ops if op.primitive.kind in COMPUTED]
    sizes = {op: evaluate(bytes_of(op), lengths) for op in (*plan.homes, *passing)}
    if not sizes:
        return error
    op = max(sizes, key=lambda op: sizes[op])
    return type(error)(
        f"{error}\n  its largest value is {op} of {sizes[op]:,} bytes, made at {made_at(op)}"
    )


def describe_concurrent(step: int, plan: Plan) -> str:
    """Return text about kernels that ran concurrently with a failed step; they may be the cause."""
    times, kernels = plan.schedule.times, plan.schedule.kernels
    failed = next(k for k, (first, last) in enumerate(plan.steps) if first <= step <= last)
    others = [k for k, time in enumerate(times) if time == times[failed] and k != failed]
    lines = [f"\n    {describe_kernel(kernels[k].op)}" for k in others]
    return "\n  beside it ran" + "".join(lines) if lines else ""


def with_kernels(error: DeviceError, plan: Plan) -> DeviceError:
    """Return a device's error, extended by the kernel that failed, or the candidates."""
    kernels = plan.schedule.kernels
    if error.kernel is not None:
        failed = describe_kernel(plan.kernel_at(error.kernel).op)
        made = type(error)(f"{failed}: {error}{describe_concurrent(error.kernel, plan)}")
    else:
        lines = [f"    {describe_kernel(kernel.op)}" for kernel in kernels[:MAX_SHOWN_KERNELS]]
        if len(kernels) > MAX_SHOWN_KERNELS:
            lines.append(f"    and {len(kernels) - MAX_SHOWN_KERNELS} more")
        listed = "\n".join(lines)
        made = type(error)(
            f"{error}\n  one of the kernels of this computation failed, which compute\n{listed}\n"
            "  with GEON_DEBUG=launches in the environment, the error says which"
        )
    made.lost, made.kernel = error.lost, error.kernel
    return made
