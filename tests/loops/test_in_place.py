"""Scheduled trees whose result is in the memory of an operand, where the plan may put it there.

``inplace_legality`` decides that by a model of nests. Trees must keep what the model says: elements
that are loaded before they are overwritten there are so in each tree.
"""

import numpy as np

from geon.op_graph.axes.lengths import evaluate
from geon.transformers.kernels.ir.nest import Store
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.rules import cpu, gpu
from geon.transformers.loops.rules.gpu_threads import Threads
from geon.transformers.loops.show import show
from geon.transformers.loops.tree import VectorWidth
from geon.transformers.lowering.planning.inplace_legality import reads_first
from tests.kernels.transformer import KernelsTransformer
from tests.tiers import scaled

from .interpreter import run_tree
from .programs import Program
from .trees import memory_of, nests_of


def on_cpu(compiled):
    def scheduled(nest):
        itemsize = max(op.dtype.itemsize for op in nest.operands)
        return cpu.schedule(nest, VectorWidth(4 * itemsize, itemsize, compiled=compiled))

    return scheduled


def on_gpu(nest):
    if any(step.reductions for step in nest.passes):
        return gpu.schedule(nest, Threads(4, beside=nest.across is not None))
    return gpu.schedule(nest, Threads())


SCHEDULES = {"none": from_nest, "cpu": on_cpu(False), "compiled": on_cpu(True), "gpu": on_gpu}


def in_place_pairs(nest, lengths):
    """Yield the operands that a result may overwrite, each with the result."""
    steps = (*nest.steps, *nest.ending)
    results = {step.operand for step in steps if isinstance(step, Store)}
    results |= {store.operand for step in nest.passes for store in step.stores}
    for k in sorted(results):
        for j, op in enumerate(nest.operands):
            alike = op.dtype is nest.operands[k].dtype and j not in results
            if alike and evaluate(op.axes.size, lengths) == evaluate(
                nest.operands[k].axes.size, lengths
            ):
                if reads_first(nest, op, nest.operands[k], lengths):
                    yield j, k


def test_results_may_overwrite_operands_as_the_plan_assumes():
    counts = dict.fromkeys(SCHEDULES, 0)
    programs = scaled(120)
    for seed in range(programs):
        check(seed, counts)
    assert min(counts.values()) >= programs // 4, counts


def check(seed, counts):
    """Compute the nests of a program in place, and count them by schedule."""
    program, random = Program(seed), np.random.default_rng(seed)
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(program.results, *program.leaves)):
            pairs = list(in_place_pairs(nest, program.lengths))
            for name, make in SCHEDULES.items() if pairs else ():
                tree, memory = make(nest), memory_of(nest, program.lengths, random)
                if nest.fill is not None:
                    memory[nest.fill.operand][:] = memory[nest.fill.source]
                for j, k in pairs:
                    memory[k] = np.array(memory[j])  # what a piece does not store stays
                    wanted = [np.array(each) for each in memory]
                    run_tree(tree, wanted, program.lengths, random)
                    found = [np.array(each) for each in memory]
                    found[k] = found[j]
                    run_tree(tree, found, program.lengths, random)
                    message = f"{seed}: operand {k} in the memory of {j}, {name}\n{show(tree)}"
                    np.testing.assert_allclose(found[k], wanted[k], 1e-4, 1e-4, err_msg=message)
                    counts[name] += 1
