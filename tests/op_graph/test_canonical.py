"""The canonical text: equal for graphs that compute the same, in every process, else different."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import geon
from geon.op_graph.building.rebuild import with_args
from geon.op_graph.op_graph import post_order, same_ops
from geon.op_graph.text.dumps import dumps, loads
from geon.op_graph.text.fingerprint import canonical
from tests.op_graph.graphs import GRAPHS, C, H, N


def network(name="x", **options):
    x = geon.placeholder([N, C], name=name)
    w = geon.Variable([C], name=name + "w", **options)
    return geon.mean(geon.tanh(geon.dot(x, w) + 1.0))


def test_names_tags_and_flags_are_no_part_of_the_canonical_text():
    one = network()
    other = network("y", trainable=False, persistent=False, initial_value=3, tags=["a"])
    assert canonical([one])[0] == canonical([other])[0]
    for op in (one, other):
        _, found, arrays = canonical([op])
        known = set(found)
        assert same_ops(found, [leaf for leaf in post_order([op]) if leaf in known])
        assert len(found) == 2
        assert arrays == []


def test_what_matters_is_part_of_the_canonical_text():
    x, y = geon.placeholder([N, C]), geon.placeholder([N, C])
    f, g = geon.placeholder([N, H]), geon.Variable([N, C])
    graphs = [
        [x + y], [x + x], [y + x, x], [x - y], [x + f], [x + g], [g + x], [x + 1.0], [x + 2.0],
        [x * 0.0], [x * -0.0], [x, None], [None, x], [x], [None], [x, x], [x, y], [y, y, x],
        [x[1:]], [x[:-1]], [geon.sum(x, N)], [geon.sum(x, C)], [geon.cumsum(x, C)],
        [geon.cumsum(x, C, exclusive=True)], [geon.cumsum(x, C, reverse=True)],
        [geon.placeholder([N, C], "float64")], [geon.placeholder([C, N])],
        [geon.placeholder([geon.Axis("N", "M"), C])], [geon.placeholder([N, geon.Axis("C", 5)])],
        [geon.cast(x, "int8")], [geon.cast(x, "int16")], [geon.reorder(x, [C, N])],
        [geon.constant(np.ones(99), geon.Axis("W"))], [geon.constant(np.ones(98), geon.Axis("W"))],
        [geon.constant(np.ones(99, "f4"), geon.Axis("W"))],
        [geon.constant(1)], [geon.constant(1.0)], [geon.constant(True)],
        [geon.Random(1).bits(C)], [geon.Random(2).bits(C)], [geon.polygamma(1, x)],
        [x + geon.placeholder([geon.Axis("N", 7), C])],
    ]  # fmt: skip
    texts = [canonical(graph)[0] for graph in graphs]
    assert len({*texts}) == len(texts), [
        (i, j) for i in range(len(texts)) for j in range(i) if texts[i] == texts[j]
    ]


def test_the_order_of_axes_that_a_rewrite_kept_is_part_of_the_canonical_text():
    x, y = geon.placeholder([N, C]), geon.placeholder([N])
    kept = with_args(geon.broadcast(y, [N, C]) * x, (y, x))
    turned = with_args(geon.broadcast(y, [C, N]) * geon.reorder(x, [C, N]), (y, x))
    assert kept is not turned
    assert canonical([kept])[0] != canonical([turned])[0]
    for op in (kept, turned):
        (read,) = loads(dumps(op))
        assert read.axes is op.axes and dumps(read) == dumps(op)


def test_large_constants_are_told_apart_by_number_and_their_arrays_returned():
    axis = geon.Axis("W", 100)
    a, b, c = (np.full(100, value, np.float32) for value in (1, 2, 3))
    x, y, z = (geon.constant(array, axis) for array in (a, b, c))
    text, _, arrays = canonical([x + y, y])
    assert text == canonical([z + x, x])[0] != canonical([x + y, x])[0]
    np.testing.assert_array_equal([constant.array for constant in arrays], [a, b])


def test_a_call_with_a_rule_of_the_users_is_its_value():
    @geon.custom_deriv(lambda *args: [args[-1]])
    def twice(x):
        return x * 2

    x = geon.placeholder([C])
    assert canonical([geon.tan(twice(x))])[0] == canonical([geon.tan(x * 2)])[0]


SCRIPT = """
import hashlib
import sys
sys.path[:0] = {paths!r}
from tests.op_graph.graphs import GRAPHS
from geon.op_graph.text.fingerprint import canonical
from geon.op_graph.transforms.functionalize import functional
order = GRAPHS if sys.argv[1] == "0" else GRAPHS[::-1]
for name, graph in sorted((graph.__name__, graph()) for graph in order):
    roots = [root for op in graph for root in functional([op]).roots]
    print(name, hashlib.sha256(canonical(roots)[0].encode()).hexdigest())
"""


def test_the_hash_is_the_same_in_every_process():
    printed = []
    for seed in ("0", "12345"):
        script = SCRIPT.format(paths=[str(Path(__file__).parents[2])])
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        run = [sys.executable, "-c", script, seed]
        printed.append(
            subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout
        )
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == len(GRAPHS)
