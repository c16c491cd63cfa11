"""``memory=``: a program that takes no more than it may, by computing values again."""

import re

import numpy as np
import pytest

import geon
from geon.transformers.binding.memory_option import UNITS, bytes_given
from tests.transformers.test_recompute import (
    H,
    N,
    count,
    layer,
    random_results,
    training,
    weight,
)

ROWS = geon.Axis("N", 512)  # so many that values take more than what kernels work in
X = np.random.default_rng(6).normal(size=(512, 16)).astype(np.float32)


def network(layers, rows=ROWS):
    x = geon.placeholder([rows, H], name="x")
    ws = [weight(k) for k in range(layers)]
    h = x
    for w in ws:
        h = layer(w, h)
    loss = geon.mean(geon.square(h))
    return [loss, *geon.deriv(loss, ws)], x


@pytest.mark.parametrize("part", [0.9, 0.75, 0.6])
def test_a_budget_is_kept_and_values_are_the_same(part, transformer):
    results, x = network(16)
    f = transformer.computation(results, x)
    budget = int(part * f.peak_bytes())
    g = transformer.computation(results, x, memory=budget)
    assert g.peak_bytes() <= budget < f.peak_bytes()
    for got, want in zip(g(X), f(X), strict=True):
        if transformer.target.name == "numpy":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    assert count(g, "tanh") > count(f, "tanh")


def test_what_fits_as_it_is_stays_as_it_is(transformer):
    results, x = network(4)
    f = transformer.computation(results, x)
    g = transformer.computation(results, x, memory=f.peak_bytes())
    assert g.source == f.source and "computed again" not in g.explain("simplify")


def test_a_budget_that_no_choice_meets_is_refused_with_the_least(transformer):
    results, x = network(12)
    whole = transformer.computation(results, x).peak_bytes()
    f = transformer.computation(results, x, memory=1000)
    with pytest.raises(geon.SizeError) as caught:
        f(X)
    text = str(caught.value)
    pattern = r"memory=1000 bytes are too few: a call takes (\d+) bytes, and (\d+) are the least"
    found = re.search(pattern, text)
    assert int(found[1]) == whole > int(found[2])
    fitting = transformer.computation(results, x, memory=int(found[2]))
    assert fitting.peak_bytes() == int(found[2])
    with pytest.raises(geon.SizeError, match="too few"):
        transformer.computation(results, x, memory=int(found[2]) - 1).explain("plan")


def test_cheaper_values_are_computed_again_first():
    results, x = network(16)
    transformer = geon.NumPyTransformer()
    whole = transformer.computation(results, x)
    dots = []
    for part in (0.95, 0.75, 0.5):
        f = transformer.computation(results, x, memory=int(part * whole.peak_bytes()))
        dots.append(count(f, "dot"))
    assert count(whole, "dot") <= dots[0] <= dots[1] <= dots[2]


def test_what_is_computed_again_is_shown(make):
    transformer = make()
    results, x = network(12)
    whole = transformer.computation(results, x)
    f = transformer.computation(results, x, memory=int(0.7 * whole.peak_bytes()))
    shown = f.explain("simplify").splitlines()
    at = next(k for k, line in enumerate(shown) if line.startswith("computed again: "))
    assert re.search(r"\d+ tanh", shown[at])
    assert shown[at + 1] == f"peak bytes: {f.peak_bytes()} instead of {whole.peak_bytes()}"
    if transformer.target.machine is not None:
        more, less = re.fullmatch(r"predicted: (.*) us instead of (.*) us", shown[at + 2]).groups()
        assert float(more) > float(less) > 0
    results, placeholders, _ = training(4, 2)(geon.checkpoint)
    marked = make().computation(results, *placeholders).explain("simplify")
    assert (
        "computed again: " in marked and "instead of" in marked and "N" in marked.splitlines()[-1]
    )


def test_lengths_are_those_given_specialized_or_by_default(make):
    results, x = network(10, N)
    transformer = make()
    with pytest.raises(geon.ArgumentError, match=r"N is open: x\(N, H:16\) .*lengths={N: ...}"):
        transformer.computation(results, x, memory="1MB")
    whole = transformer.computation(results, x).peak_bytes({N: 512})
    budget = int(0.7 * whole)
    for options in ({"lengths": {N: 512}}, {"specialize": {N: 512}}):
        f = transformer.computation(results, x, memory=budget, **options)
        assert f.peak_bytes() <= budget
    with geon.lengths({N: 512}):
        f = transformer.computation(results, x, memory=budget)
        assert f.peak_bytes() <= budget
    other = transformer.computation(results, x, memory=f"{budget} B", lengths={N: 4})
    assert "computed again" not in other.explain("simplify")


def test_budgets_are_of_programs_of_their_own(transformer):
    results, x = network(8)
    whole = transformer.computation(results, x)
    small = transformer.computation(results, x, memory=int(0.75 * whole.peak_bytes()))
    assert whole(X)[0] == pytest.approx(small(X)[0]) and whole.source != small.source
    assert whole.stages().compiled is not small.stages().compiled


def test_steps_change_variables_as_without_a_budget(make):
    found = []
    for part in (None, 0.7):
        transformer = make()
        results, placeholders, ws = training(10, 10)(lambda function: function)
        f = transformer.computation(results, *placeholders, lengths={N: 512})
        if part is not None:
            budget = int(part * f.peak_bytes())
            f = transformer.computation(results, *placeholders, lengths={N: 512}, memory=budget)
            assert f.peak_bytes() <= budget
        found.append([f(X)[0], f(X)[0], *map(transformer.get, ws)])
    for without, again in zip(*found, strict=True):
        if transformer.target.name == "numpy":
            np.testing.assert_array_equal(again, without)
        else:
            np.testing.assert_allclose(again, without, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("given", ["512", "MB", "-1 MB", "1.5 mb", -1, 1.5, True, ["1MB"], "1e3 B"])
def test_what_is_no_number_of_bytes_is_refused(given):
    x = geon.placeholder([H])
    with pytest.raises(geon.ArgumentError, match="is no number of bytes; give an integer.*'512MB'"):
        geon.NumPyTransformer().computation(x * 2, x, memory=given)


def test_units():
    assert [bytes_given(text) for text in (7, "7 B", "2kB", "1.5 MiB", "1 GB", " 3TiB ")] == [
        7, 7, 2000, 3 << 19, 10**9, 3 << 40]  # fmt: skip
    assert set(UNITS) == {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}


def test_random_graphs_mean_the_same_in_less_memory():
    fitting = 0
    for seed in range(40):
        results, placeholders, _ = random_results(seed)
        *results, step = results
        feeds = np.array([0.1, 0.7, -1.2]), np.array([1.1, -0.3, 0.2])
        transformer = geon.NumPyTransformer()
        transformer.computation(step, *placeholders)
        f = transformer.computation(results, *placeholders)
        values = f(*feeds)
        for part in (0.85, 0.6):
            budget = int(part * f.peak_bytes())
            g = transformer.computation(results, *placeholders, memory=budget)
            try:
                found = g(*feeds)
            except geon.SizeError:
                continue
            fitting += 1
            assert g.peak_bytes() <= budget
            for one, other in zip(found, values, strict=True):
                np.testing.assert_array_equal(one, other)
    assert fitting > 3
