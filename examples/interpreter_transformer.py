"""A transformer in few lines: it runs the kernels of a plan with NumPy's meaning of each row.

It is slow and shows what a transformer is made of. A package of your own would name it in the
entry-point group ``geon.transformers``; here it is made directly:

    python examples/interpreter_transformer.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import geon
from geon.op_graph.interpret import interpret
from geon.op_graph.op_graph import Op, post_order
from geon.transformers.linking import Linking
from geon.transformers.lowering import rules
from geon.transformers.lowering.memory import Plan
from geon.transformers.lowering.target import Arrangement, Layout, Target


def arrange(op: Op, left: Layout, right: Layout) -> Arrangement:
    """Contractions take operands as they lie, and give the axes of the op."""
    return Arrangement((None, None), op.axes.names)


@dataclass(frozen=True)
class Program:
    """What ``compile`` makes: the three functions that ``Transformer.link`` asks for."""

    functions: tuple[Callable[..., Any], ...]


class InterpreterTransformer(geon.Transformer):
    """Computes one op after the other, each into new memory."""

    target = Target(name="interpreter", rules=rules.RULES, arrange=arrange, in_place={}, hidden={})

    def compile(self, plan: Plan, linking: Linking) -> Program:
        """Functions over the plan's kernels; values are found by op, not in an arena."""
        kernels, program = plan.schedule.kernels, plan.schedule.program
        large = {
            op: linking.constants[op.attrs[0]]
            for op in post_order(program.roots)
            if op.primitive.name == "constant" and op.attrs[0] in linking.constants
        }

        def sizes(lengths: dict[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
            return [], [], 0  # no arena

        def bind(arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
            stored = dict(zip(linking.variables, variables, strict=True))
            return stored, {op: constants[k] for op, k in large.items()}, lengths

        def run(bound: Any, *inputs: Any) -> tuple[Any, ...]:
            stored, known, lengths = bound
            given = {**dict(zip(linking.inputs, inputs, strict=True)), **stored, **known}
            values = interpret(program.roots, given, lengths)
            for number, kernel in enumerate(kernels):
                if plan.schedule.check and kernel.raises and not kernel.acts:
                    check_finite(values[kernel.op], number)
                if kernel.op.primitive.name == "print":
                    print(f"{kernel.op.attrs[0]} = {values[kernel.op]}")
            for leaf, op in program.updates:
                np.copyto(stored[leaf], values[op])
            return tuple(np.array(values[op]) for op in program.outputs)

        return Program((bind, run, sizes))


def check_finite(value: Any, number: int) -> None:
    """Raise what ``check="nan"`` promises; ``kernel`` lets geon name the op and its line."""
    if not np.isfinite(value).all():
        error = geon.NonFiniteError(f"{int((~np.isfinite(value)).sum())} values are not finite")
        error.kernel = number  # type: ignore[attr-defined]
        raise error


if __name__ == "__main__":
    x = geon.placeholder([geon.Axis("N")], name="x")
    f = InterpreterTransformer().computation(geon.softmax(x), x)
    print(f([1, 2, 3]))
