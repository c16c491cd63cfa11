"""What rounding explains is no difference, and every other one is found and named."""

from dataclasses import replace

import interpreter_transformer
import numpy as np
import pytest
from interpreter_transformer import InterpreterTransformer

import geon
from geon.testing import assert_agrees, first_difference
from geon.testing.rounding import Expected, spreads

N, C = geon.Axis("N"), geon.Axis("C", 6)
ARRAY = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
x = geon.placeholder([N, C], name="x")
HIDDEN = geon.tanh(x)


def recurrent(step):
    return geon.scan(step, geon.sum(x, N) * 0.1, x, over=N)


ROUNDED = {
    "a wider dtype": geon.cast(HIDDEN, "float64") * 3 + 1,
    "a half in between": geon.cast(geon.cast(HIDDEN, "bfloat16"), "float32") * x,
    "a sum that cancels": geon.sum(HIDDEN - geon.mean(HIDDEN)),
    "rows that cancel": geon.sum(x - geon.mean(x, N)) * 1000.0,
    "a quotient of both": (HIDDEN - geon.mean(HIDDEN, N)) / (1e-3 + abs(geon.sum(x - x * 2))),
    "a product that cancels": geon.dot(HIDDEN - geon.mean(HIDDEN, N), geon.exp(x), over=N),
    "a variance": geon.mean(geon.square(HIDDEN)) - geon.square(geon.mean(HIDDEN)),
    "a loop": recurrent(lambda c, e: (geon.tanh(c * 2 + e), geon.sum(e - c)))[1],
    "its derivative": geon.deriv(
        geon.sum(recurrent(lambda c, e: (geon.tanh(c * 2 + e), geon.sum(e - c)))[1]), x
    ),
}


@pytest.fixture
def otherwise(monkeypatch):
    """A function that gives a transformer whose ``row`` (None: each) is wrong by ``error``."""
    plain = interpreter_transformer.evaluate

    def made(row, error):
        random = np.random.default_rng(1)

        def evaluate(op, bound, args):
            value = plain(op, bound, args)
            named = op.primitive.name == row or (row is None and op.primitive.kind in (
                "elementwise", "reduction", "contraction"))  # fmt: skip
            if not named or op.dtype.kind not in "fV":
                return value
            wide = value.astype(np.float64)
            return (wide * (1 + error(op) * random.uniform(-1, 1, wide.shape))).astype(op.dtype)

        monkeypatch.setattr(interpreter_transformer, "evaluate", evaluate)
        kind = type("Otherwise", (InterpreterTransformer,), {})
        kind.target = replace(InterpreterTransformer.target, name=f"{row} otherwise")
        return kind()

    return made


EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-7}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_is_no_difference(otherwise, name):
    result = ROUNDED[name]
    wide = otherwise(
        None, lambda op: EPS[op.dtype.name] * (1 if op.dtype.name == "bfloat16" else 4)
    )
    f = wide.computation(result, x)
    assert first_difference(f, ARRAY) is None
    assert first_difference(f, geon.NumPyTransformer().computation(result, x), ARRAY) is None
    assert_agrees(wide, result, {x: ARRAY})


@pytest.mark.parametrize("transformer", ["numpy", "native"])
@pytest.mark.parametrize("name", ROUNDED)
def test_two_transformers_differ_by_rounding(name, transformer):
    try:
        made = geon.make_transformer(transformer)
    except geon.UnavailableError as error:
        pytest.skip(str(error))
    with made:
        assert_agrees(made, ROUNDED[name], {x: ARRAY})
        assert first_difference(made.computation(ROUNDED[name], x), ARRAY) is None


def network():
    w = geon.constant(np.linspace(-1, 1, 36).reshape(6, 6), [C, geon.Axis("H", 6)], "float32")
    h = geon.sigmoid(geon.dot(x, w)) - geon.exp(geon.rename(x, {C: "H"}) * 0.3)
    wide = geon.sqrt(geon.cast(geon.square(h), "float64") + 0.1)
    half = geon.cast(geon.sin(geon.cast(wide, "float32")), "bfloat16")
    return geon.mean(geon.cast(half, "float32") / geon.max(h)) + geon.log(geon.sum(geon.cosh(h)))


NETWORK = network()


@pytest.mark.parametrize(
    "row",
    ["dot", "sigmoid", "exp", "subtract", "square", "add", "sqrt", "sin", "max", "divide", "cosh",
     "sum", "log"],
)  # fmt: skip
@pytest.mark.parametrize("error", [1.0, 0.05])
def test_a_wrong_row_is_found_among_what_is_rounded(otherwise, row, error):
    wrong = otherwise(row, lambda op: error)
    found = first_difference(wrong.computation(NETWORK, x), ARRAY)
    assert found is not None and found.op.primitive.name == row
    with pytest.raises(AssertionError, match=rf"{row} otherwise and the naive interpreter part at"):
        assert_agrees(wrong, [NETWORK, found.op], {x: ARRAY})


@pytest.mark.parametrize("row", ["tanh", "cast"])
def test_a_small_mistake_in_float64_is_found(otherwise, row):
    result = geon.tanh(geon.cast(geon.tanh(x), "float64")) * 2
    wrong = otherwise(row, lambda op: 1e-3 if op.dtype.name == "float64" else 0)
    found = first_difference(wrong.computation(result, x), ARRAY)
    assert found.op.primitive.name == row and found.op.dtype == np.float64


def test_whole_numbers_are_taken_for_exact():
    counts = geon.sum(geon.cast(x > 0, "float32"), N)
    results = [geon.floor(counts / 1), geon.argmax(geon.floor(x * 0), C), counts * 3 - counts]
    for spread in spreads(results, {x: ARRAY}, {"N": 50}):
        assert not spread.any()


def test_loops_that_a_condition_ends_still_end():
    def nearer(y):
        return (y + x / y) / 2

    def far(carry):
        return geon.max(geon.absolute(carry[0] - carry[1])) > 1e-6

    root = geon.while_loop(far, lambda c: (nearer(c[0]), c[0]), (x * 0 + 1.5, x * 0))[0]
    (spread,) = spreads([root], {x: np.abs(ARRAY) + 1}, {"N": 50})
    assert spread.max() < 1e-3


def test_a_term_that_is_wrong_in_a_sum_that_cancels_is_found():
    total = geon.sum(x - geon.mean(x, N), N)
    expected = Expected([total], {x: ARRAY}, {"N": 50})
    value = expected.values[total]
    assert expected.same(total, value + 1e-4).all()
    assert not expected.same(total, value + 0.1).any()
