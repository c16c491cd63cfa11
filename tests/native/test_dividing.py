"""How a sum is divided over tasks: by lengths and by its ops, not by how they are written in C."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.depths import Depths
from geon.transformers.kernels.weights import weight
from geon.transformers.native.toolchain import find_toolchain
from geon.transformers.printing import c_expressions

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def weights(f):
    """The work of one element of each pass of a computation's first kernel."""
    nest = f.plan.schedule.kernels[0].work
    return [weight(each, Depths.of(nest)) for each in nest.passes]


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
