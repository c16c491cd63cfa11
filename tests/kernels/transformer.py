"""A transformer that runs native code's kernels as their data say, on NumPy arrays."""

import dataclasses
from dataclasses import dataclass

import numpy as np

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.core.traversal import is_bound
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import Leaf, post_order
from geon.transformers.kernels.ir.nest import Call, Region
from geon.transformers.native.target import TARGET

from .running import run


@dataclass(frozen=True)
class Program:
    functions: tuple


class KernelsTransformer(geon.Transformer):
    """Each kernel into new memory; ops that call a library by what their rows mean."""

    target = dataclasses.replace(
        TARGET, name="kernels as data", packed=None, forms=None, scratch=None
    )

    def compile(self, plan, linking):
        schedule = plan.schedule
        program = schedule.program
        large = {
            op: linking.constants[op.attrs.value]
            for op in post_order(program.roots)
            if op.primitive.name == "constant" and op.attrs.value in linking.constants
        }

        def bind(arena, offsets, variables, constants, lengths):
            stored = dict(zip(linking.variables, variables, strict=True))
            return stored, {op: constants[k] for op, k in large.items()}, lengths

        def call(bound, *inputs):
            stored, known, lengths = bound
            given = {**dict(zip(linking.inputs, inputs, strict=True)), **stored, **known}
            return _Call(schedule, lengths, given).results(program, stored)

        return Program((bind, call, lambda lengths: ([], [], 0)))


class _Call:
    def __init__(self, schedule, lengths, given):
        self.schedule, self.lengths = schedule, lengths
        self.given = {op: np.array(value) for op, value in given.items()}
        self.flat = {}

    def results(self, program, stored):
        for kernel in self.schedule.kernels:
            if isinstance(kernel.work, Call | Region):
                self.call(kernel)
            else:
                for op in kernel.results:
                    self.flat[op] = np.zeros(self.size(op), op.dtype)
                run(kernel.work, [self.memory(op) for op in kernel.work.operands], self.lengths)
        for leaf, op in program.updates:
            np.copyto(stored[leaf], self.value(op))
        return tuple(np.array(self.value(op)) for op in program.outputs)

    def size(self, op):
        return evaluate(op.axes.size, self.lengths)

    def memory(self, op):
        """The elements of a value in the order that they have in memory."""
        if op not in self.flat:
            self.flat[op] = np.ascontiguousarray(self.known(op)).reshape(-1)
        return self.flat[op]

    def known(self, op):
        if op in self.given:
            return self.given[op]
        assert isinstance(op, Leaf) or is_bound(op)
        return interpret([op], self.given, self.lengths)[op]

    def value(self, op):
        """A value over its axes in their order."""
        if op not in self.flat:
            return self.known(op)
        order = op.axes.names if is_bound(op) else self.schedule.layouts[op].order
        shape = [evaluate(op.axes[n].expression, self.lengths) for n in order]
        return self.flat[op].reshape(shape).transpose([order.index(n) for n in op.axes.names])

    def call(self, kernel):
        """An op by what its row means, and those below it that are no kernels."""
        computed = {op: self.value(op) for op in self.flat}
        found = kernel.results or (kernel.op,)
        values = interpret(found, {**self.given, **computed}, self.lengths)
        for op in kernel.results:
            where = [op.axes.index(n) for n in self.schedule.layouts[op].order]
            value = np.asarray(values[op]).transpose(where)
            self.flat[op] = np.ascontiguousarray(value).reshape(-1)
