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
from geon.op_graph.evaluation.interpreter import BoundOp, evaluate, results_of
from geon.op_graph.op_graph import Op, RegionOp, post_order
from geon.transformers.kernels.ir.nest import Region
from geon.transformers.linking import Linking
from geon.transformers.lowering.facts.target import Arrangement, Layout, Target
from geon.transformers.lowering.planning.plan import Plan
from geon.transformers.lowering.rules import lowering_rules
from geon.transformers.runtime.loop_steps import at_step
from geon.transformers.runtime.value_errors import not_finite


def arrange(op: Op, left: Layout, right: Layout) -> Arrangement:
    """Contractions take operands as they lie, and give the axes of the op."""
    return Arrangement((None, None), op.axes.names)


@dataclass(frozen=True)
class Program:
    """What ``compile`` makes: the three functions that ``Transformer.link`` asks for."""

    functions: tuple[Callable[..., Any], ...]


class InterpreterTransformer(geon.Transformer):
    """Computes one op after the other, each into new memory."""

    target = Target(
        name="interpreter", rules=lowering_rules.RULES, arrange=arrange, in_place={}, hidden={}
    )

    def compile(self, plan: Plan, linking: Linking) -> Program:
        """Functions over the plan's kernels; values are found by op, not in an arena."""
        program = plan.schedule.program

        def sizes(lengths: dict[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
            return [], [], 0  # no arena

        def bind(arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
            large = {value: constants[k] for value, k in linking.constants.items()}
            stored = dict(zip(linking.variables, variables, strict=True))
            return stored, Steps(plan, lengths, large)

        def run(bound: Any, *inputs: Any) -> tuple[Any, ...]:
            stored, steps = bound
            values = steps.run({**dict(zip(linking.inputs, inputs, strict=True)), **stored})
            for kernel in plan.schedule.kernels:
                if kernel.op.primitive.name == "print":
                    print(f"{kernel.op.attrs.label} = {values[kernel.op]}")
            for leaf, op in program.updates:
                np.copyto(stored[leaf], values[op])
            return tuple(np.array(values[op]) for op in program.outputs)

        return Program((bind, run, sizes))


@dataclass(frozen=True)
class Steps:
    """The steps of a plan, of which its kernels are from the number ``first`` on.

    ``lengths`` are those of open axes, and ``large`` has the large constants by their values.
    """

    plan: Plan
    lengths: dict[str, int]
    large: dict[Any, Any]
    first: int = 0

    def run(self, given: dict[Any, Any]) -> dict[Any, Any]:
        """The value of each op; of a loop or branch, the list of its results."""
        schedule = self.plan.schedule
        known, bounds = dict(given), dict[Op, BoundOp]()
        position = {kernel.op: k for k, kernel in enumerate(schedule.kernels)}
        for op in post_order(schedule.program.roots):
            bounds[op] = BoundOp(op, self.lengths, tuple(bounds[arg] for arg in op.args))
            if op in given:
                continue
            known[op] = self.value(op, bounds[op], [known[arg] for arg in op.args])
            if schedule.check and op in position:
                self.check(position[op], known[op])
        return known

    def value(self, op: Op, bound: BoundOp, args: list[Any]) -> Any:
        """The value of one op for those of its arguments."""
        if isinstance(op, RegionOp):
            return results_of(op, args, self.lengths, self.bodies(op))
        if op.args and isinstance(op.args[0], RegionOp):
            return args[0][op.attrs.number]
        if op.primitive.name == "constant" and op.attrs.value in self.large:
            return self.large[op.attrs.value]
        return evaluate(op, bound, args)

    def check(self, position: int, value: Any) -> None:
        """Raise what ``check="nan"`` promises; ``kernel`` lets geon name the op and its line.

        The kernels of bodies are checked at each of their steps.
        """
        kernel = self.plan.schedule.kernels[position]
        if not kernel.raises or kernel.has_side_effect or isinstance(kernel.work, Region):
            return
        wrong = np.isnan(value) if kernel.infinite else ~np.isfinite(value)
        if wrong.any():
            error = not_finite(int(wrong.sum()), wrong.size, np.asarray(value)[wrong][0])
            error.kernel = self.first + self.plan.steps[position][0]  # type: ignore[attr-defined]
            raise error

    def bodies(self, loop: Op) -> Callable[..., list[Any]]:
        """A function that computes a body of a loop or branch, by the plan that it has."""
        kernel = next(k for k in self.plan.schedule.kernels if k.op.args and k.op.args[0] is loop)
        work, inside = kernel.work, self.plan.inside[kernel.op]
        assert isinstance(work, Region)

        def run(body: Any, given: list[Any]) -> list[Any]:
            k = loop.bodies.index(body)
            steps = Steps(inside.plans[k], self.lengths, self.large, self.first + inside.steps[k])
            try:
                found = steps.run(dict(zip(work.bodies[k].leaves, given, strict=True)))
            except geon.GeonError as error:
                for axis, _ in work.loops:  # none around a branch
                    at_step(error, axis, int(given[-1]))
                raise
            return [found[op] for op in inside.plans[k].schedule.program.outputs]

        return run


if __name__ == "__main__":
    x = geon.placeholder([geon.Axis("N")], name="x")
    f = InterpreterTransformer().computation(geon.softmax(x), x)
    print(f([1, 2, 3]))
