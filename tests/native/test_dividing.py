"""How a sum is divided over tasks: by lengths and by its ops, not by how they are written in C."""

import re

import numpy as np
import pytest

import geon
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.tree import loops_of
from geon.transformers.loops.work import work
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.printing.scalars import c_expressions

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def weights(f):
    """The work of one element of each pass of a computation's first kernel."""
    tree = from_nest(f.plan.schedule.kernels[0].work)
    return [work(loop.body, loop.variable) for loop in loops_of(tree.body)]


def test_the_text_of_an_op_does_not_count(monkeypatch):
    x = geon.placeholder([geon.Axis("N")])
    with geon.make_transformer("native", threads=1) as transformer:
        f = transformer.computation(geon.sum(geon.tanh(x) * x), x)
        before = weights(f)
        written = c_expressions.expression

        def longer(*args, **keywords):
            return f"({written(*args, **keywords)} + 0 * geon_one() * geon_two())"

        monkeypatch.setattr(c_expressions, "expression", longer)
        assert weights(f) == before
        assert before[0] > 1


def test_costly_ops_count_for_more():
    x = geon.placeholder([geon.Axis("N")])
    with geon.make_transformer("native", threads=1) as transformer:
        (cheap,) = weights(transformer.computation(geon.sum(x * x), x))
        (costly,) = weights(transformer.computation(geon.sum(geon.tanh(x)), x))
    assert costly > 2 * cheap


def test_names_and_threads_change_no_bits():
    values = np.random.default_rng(0).random(3_000_001, np.float32)
    found = set()
    for threads in (1, 2, 3):
        for name in ("x", "another_name"):
            x = geon.placeholder([geon.Axis("N")], name=name)
            with geon.make_transformer("native", threads=threads) as transformer:
                found.add(transformer.computation(geon.sum(geon.tanh(x)), x)(values).tobytes())
    assert len(found) == 1


def two_passes(x, axes):
    """Values of passes that need what the one before reduced: sums, extremes and positions."""
    peak = geon.max(x)
    largest = geon.cast(geon.argmax(x, axes), "float32")
    noise = geon.Random(3).uniform(x.axes)
    return {
        "variance": geon.mean(geon.square(x - geon.mean(x))),
        "log of sum": geon.logsumexp(x, axes),
        "extreme and sum": [peak, geon.sum(geon.exp(x - peak)), geon.max(peak - x)],
        "position": [geon.sum(x - largest), largest],
        "three": geon.sum(geon.square(x - geon.mean(geon.square(x - geon.mean(x))))),
        "drawn": geon.sum(noise * (x - geon.mean(x))),
    }


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", two_passes(geon.placeholder([geon.Axis("N")]), [geon.Axis("N")]))
def test_later_passes_are_divided_too(name, is_open):
    """Of sizes that are one task and many, with the bits of one thread, and values of NumPy."""
    a, b = geon.Axis("A"), geon.Axis("B")
    for rows, columns in ((1, 1), (3, 17), (57, 311), (700, 1009)):
        if not is_open:
            a, b = a.with_length(rows), b.with_length(columns)
        x = geon.placeholder([a, b])
        result = two_passes(x, [a, b])[name]
        data = np.random.default_rng(rows).normal(size=(rows, columns)).astype(np.float32)
        found = []
        for threads, plan in ((1, True), (2, True), (3, True), (2, False)):
            with geon.NativeTransformer(threads=threads) as transformer:
                f = transformer.computation(result, x, plan=plan)
                values = f(data)
                found.append(values if isinstance(result, list) else [values])
        with geon.NumPyTransformer() as numpy:
            wanted = numpy.computation(result, x)(data)
        wanted = wanted if isinstance(result, list) else [wanted]
        for first, expected in zip(found[0], wanted, strict=True):
            np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-4 * rows)
        for other in found[1:]:
            assert [v.tobytes() for v in other] == [v.tobytes() for v in found[0]]


def test_tasks_of_later_passes_are_told_what_was_reduced_and_store_nothing_of_a_row():
    a, b = geon.Axis("A", 700), geon.Axis("B", 1009)
    x = geon.placeholder([a, b])
    with geon.NativeTransformer(threads=2) as transformer:
        for name in ("variance", "log of sum", "extreme and sum", "position", "three"):
            source = transformer.computation(two_passes(x, [a, b])[name], x).source
            tasks = source.split("static void kernel_0(")[0]
            assert re.search(r"kernel_0_(part|rows)1\(void \*argument", tasks), name
            assert "y0[0] =" not in tasks and "y1[0] =" not in tasks, name
