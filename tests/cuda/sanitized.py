"""A process that runs kernels of every kind under the address and undefined-behaviour sanitizers.

Started by ``test_sanitized`` with the sanitizer's library before all others.
"""

import sys

import numpy as np

import geon
from geon.transformers.pycuda.kernels import cooperative_threads
from geon.transformers.pycuda.launches.device import CudaSource, Signature
from geon.transformers.pycuda.launches.dialect import cuda_text
from geon.transformers.pycuda.runtime import host
from tests.cuda import (
    test_attention,
    test_beside,
    test_fours,
    test_long_rows,
    test_sorting,
    test_whole_loops,
)
from tests.cuda.test_lengths import GRAPHS, data, v, x
from tests.cuda.test_products import LENGTHS, made, numbers, operands
from tests.loops.programs import Program

OUTSIDE = 'extern "C" __global__ void tried(float *x) { x[threadIdx.x + 64] = 1; }\n'


def everything():
    with geon.make_transformer("cuda-on-host", checks="memory") as transformer:
        for name, graph in GRAPHS.items():
            inputs = [x, v] if name in ("elements", "vector") else [x]
            f = transformer.computation(graph, *inputs, plan=False)
            for n, c in (
                (1, 1),
                (3, 33),
                (65, 31),
                (2, cooperative_threads.MAX_WARP_ROW_ELEMENTS + 3),
            ):
                f(*data(n, c)[: len(inputs)])
        for dtype in ("float32", "float16"):
            pair = operands(dtype, "NC", "CM")
            f = transformer.computation(made(*pair), *pair)
            for lengths in LENGTHS[4:10]:
                f(*[numbers(each, lengths, 0) for each in pair])
            inputs = test_attention.operands(dtype, 24, 40)
            f = transformer.computation(test_attention.attended(*inputs, True), *inputs)
            for lengths in test_attention.LENGTHS[:4]:
                f(*test_attention.numbers(inputs, lengths))
        z = geon.placeholder([test_sorting.A, test_sorting.N, test_sorting.B], name="z")
        f = transformer.computation(geon.argsort(z, test_sorting.N), z)
        for shape in test_sorting.LENGTHS[3:14:3]:
            f(test_sorting.numbers("float32", shape))
        table = geon.placeholder([geon.Axis("V", 9), geon.Axis("C")], name="table")
        at = geon.placeholder([geon.Axis("T")], "int64", name="at")
        rows = geon.gather(table, at, table.axes[0])
        f = transformer.computation([rows, geon.deriv(geon.sum(rows * rows), table)], table, at)
        f(np.ones((9, 5), np.float32), np.arange(-9, 9))
        row = geon.placeholder([geon.Axis("N"), geon.Axis("C", test_fours.WARP + 4)], name="row")
        f = transformer.computation(test_fours.graphs(row, row.axes[1]), row)
        f(np.ones((3, test_fours.WARP + 4), np.float32))
        f = transformer.computation([*test_long_rows.graphs(x).values()][-1], x)
        f(np.ones((2, test_long_rows.ELEMENTS_PER_BLOCK + 3), np.float32))
        for graph in test_whole_loops.results().values():
            f = transformer.computation(graph, *test_whole_loops.INPUTS)
            f(*test_whole_loops.feeds(2, 3, 3))
        for seed in range(12):
            program = Program(seed)
            feeds = program.feeds()
            transformer.computation(program.results, *feeds)(*feeds.values())
        _, slopes, update = test_beside.optimizer()
        f = transformer.computation(update, *slopes)
        f(*[np.ones(each.axes.lengths, np.float32) for each in slopes])


def outside():
    device = host.device("memory")
    signature = Signature("tried", ("float *",), False)
    kernels = device.load(CudaSource(cuda_text("prelude.cuh") + OUTSIDE), [signature])
    device.launch(kernels["tried"], 1, 64, [device.allocate(4 * 64)])


if __name__ == "__main__":
    {"everything": everything, "outside": outside}[sys.argv[1]]()
    print("done")
