"""``first_difference`` names the op at which two computations part, and changes nothing."""

import numpy as np
import pytest

import geon
from geon.testing import first_difference
from tests.places import here
from tests.testing.wrong import WrongMemory, WrongRow

N, C = geon.Axis("N"), geon.Axis("C", 3)
ARRAY = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


class Model:
    """A layer, its sum and an update, with the line that tanh is on."""

    def __init__(self):
        self.x = geon.placeholder([N, C], name="x")
        self.w = geon.Variable(axes=[C], initial_value=2.0, name="w")
        self.hidden = geon.tanh(self.x * self.w, name="hidden")
        self.place = here(-1)
        self.total = geon.sum(geon.exp(self.hidden), C)
        self.update = geon.assign(self.w, self.w + geon.sum(self.hidden, N))

    def on(self, transformer):
        """The computation by a transformer."""
        return transformer.computation([self.total, self.update], self.x)


def test_the_wrong_row_is_named_with_its_line():
    model = Model()
    f, g = model.on(geon.NumPyTransformer()), model.on(WrongRow())
    found = first_difference(f, g, ARRAY)
    assert found.op is model.hidden and found.place.endswith(model.place)
    assert found.names == ("numpy", "wrong row") and (found.count, found.size) == (12, 12)
    n, c = found.at["N"], found.at["C"]
    np.testing.assert_allclose(found.left, np.tanh(2 * ARRAY[n, c]), rtol=1e-6)
    np.testing.assert_allclose(found.right, np.sin(2 * ARRAY[n, c]), rtol=1e-6)
    text = str(found)
    for part in ("tanh hidden(N, C:3) float32", model.place, f"N = {n}, C = {c}", "12 of 12",
                 repr(found.left), repr(found.right)):  # fmt: skip
        assert part in text


def test_one_computation_is_compared_with_the_interpreter():
    model = Model()
    found = first_difference(model.on(WrongRow()), ARRAY)
    assert found.op is model.hidden and found.names[1] == "the naive interpreter"
    assert first_difference(model.on(geon.NumPyTransformer()), ARRAY) is None


def test_the_same_gives_none_and_changes_no_variable():
    model = Model()
    t = geon.NumPyTransformer()
    f, g = model.on(t), model.on(geon.NumPyTransformer())
    before = t.get(model.w)
    assert (
        first_difference(f, g, ARRAY) is None and first_difference(f, g, ARRAY, exact=True) is None
    )
    np.testing.assert_array_equal(t.get(model.w), before)


def test_random_draws_advance_no_stream():
    stream = geon.Random(1)
    t = geon.NumPyTransformer()
    f = t.computation(geon.tanh(stream.normal([C])))
    f()
    assert first_difference(f) is None and int(t.get(stream.counter)) == 1


def test_variables_that_differ_are_the_first_difference():
    model = Model()
    other = geon.NumPyTransformer()
    other.set(model.w, [2.0, 3.0, 2.0])
    found = first_difference(model.on(geon.NumPyTransformer()), model.on(other), ARRAY)
    assert found.op is model.w and found.at == {"C": 1} and (found.left, found.right) == (2, 3)


def test_a_defect_that_only_unkept_values_show():
    model = Model()
    found = first_difference(model.on(WrongMemory()), ARRAY)
    assert found.op is model.total and found.names[0] == "wrong memory"


def test_a_graph_that_was_loaded_again_is_the_same_graph():
    model = Model()
    f = model.on(geon.NumPyTransformer())
    results = geon.loads(f.dumps(ARRAY))
    loaded = results[0].placeholders()
    g = WrongRow().computation(results, *loaded)
    assert first_difference(f, g, ARRAY).op is model.hidden


def test_two_graphs_are_refused():
    x = geon.placeholder([C])
    t = geon.NumPyTransformer()
    with pytest.raises(geon.ArgumentError, match="same graph"):
        first_difference(t.computation(x + 1, x), t.computation(x + 2, x), np.ones(3))


def test_stable_forms_are_no_difference():
    x = geon.placeholder([C])
    f = geon.NumPyTransformer().computation(geon.log(geon.softmax(x)), x)
    assert first_difference(f, np.array([0.0, 500.0, -500.0])) is None


def test_integers_prints_and_scalars(capsys):
    x = geon.placeholder([C], "int64")
    y = geon.print(x * 2) + geon.tensor_size(x)
    f = geon.NumPyTransformer().computation([geon.max(y), x, 3], x)
    assert first_difference(f, np.arange(3)) is None
    assert capsys.readouterr().out == ""


def walked(body):
    """The sum of what a loop over rows stacks, and its last carry."""
    x = geon.placeholder([N, C], name="x")
    last, seen = geon.scan(body, geon.sum(x, N), x, over=N)
    return [geon.sum(geon.exp(seen), N), last * 2], x, seen


@pytest.mark.parametrize("exact", [False, True])
def test_a_loop_that_is_the_same(exact):
    results, x, _ = walked(lambda c, row: (c * 0.5 + row, c - row))
    f, g = (each.computation(results, x) for each in (geon.NumPyTransformer(), WrongRow()))
    assert first_difference(f, g, ARRAY, exact=exact) is None
    assert first_difference(f, ARRAY) is None


def test_a_loop_whose_body_is_wrong_is_named_by_its_result():
    results, x, seen = walked(lambda c, row: (c * 0.5 + row, geon.tanh(row)))
    f, g = (each.computation(results, x) for each in (geon.NumPyTransformer(), WrongRow()))
    for found in (first_difference(f, g, ARRAY), first_difference(g, ARRAY)):
        assert found.op is seen and found.count == 12


def test_a_defect_of_unkept_values_behind_a_loop():
    x = geon.placeholder([N, C], name="x")
    hidden = geon.tanh(x)
    last, _ = geon.scan(lambda c, row: (c + row, None), geon.sum(x, N), hidden, over=N)
    f = WrongMemory().computation(last * 2, x)
    found = first_difference(f, ARRAY)
    assert found.op is last and found.names[0] == "wrong memory"
