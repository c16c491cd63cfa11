"""Updates of parts of values: kernels that compute what they store, in place where it is right."""

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

TARGETS = [
    "numpy",
    pytest.param(
        "native",
        marks=pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler"),
    ),
]
N, C = geon.Axis("N", 12), geon.Axis("C", 40)
AT = geon.placeholder([], dtype="int64", name="at")
PARTS = {
    "rows": (slice(2, 9), slice(None)),
    "row": (3, slice(None)),
    "columns": (slice(None), slice(5, 33)),
    "steps": (slice(1, 12, 3), slice(0, 40, 2)),
    "position": (AT, slice(None)),
}


def started(seed):
    """A variable with values, a placeholder and an array for it, and the variable's values."""
    random = np.random.default_rng(seed)
    held, given = (random.normal(size=(12, 40)).astype("float32") for _ in range(2))
    return geon.Variable([N, C], initial_value=held, name="v"), given, held


def at_five(part):
    """The part as an index of arrays, with 5 for the position that is given at run time."""
    return tuple(5 if item is AT else item for item in part)


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_part_of_a_variable_changes_by_a_formula_of_itself(target, part):
    v, given, held = started(1)
    x = geon.placeholder([N, C])
    new = geon.tanh(v[part]) * 2 + geon.square(x[part])
    with geon.make_transformer(target) as transformer:
        f = transformer.computation([geon.assign(v[part], new), geon.sum(v)], x, AT)
        f(given, 5)
        wanted, where = held.copy(), at_five(part)
        wanted[where] = np.tanh(held[where]) * 2 + given[where] ** 2
        np.testing.assert_allclose(transformer.get(v), wanted, rtol=1e-5)
        if target == "native":
            names = [kernel.op.primitive.name for kernel in f.plan.schedule.kernels]
            assert sorted({*names} - {"checked"}) == ["sum", "update"] and not f.plan.hidden


@pytest.mark.parametrize("shift", [0, 1, 3])
@pytest.mark.parametrize("target", TARGETS)
def test_a_part_is_computed_from_another_part_that_overlaps_it(target, shift):
    """Each element has the value that was there before the call."""
    v, given, held = started(2)
    x = geon.placeholder([N, C])
    new = geon.cast_axes(v[shift : shift + 8], v[1:9].axes) * 3 - x[1:9]
    with geon.make_transformer(target) as transformer:
        transformer.computation(geon.assign(v[1:9], new), x)(given)
        wanted = held.copy()
        wanted[1:9] = held[shift : shift + 8] * 3 - given[1:9]
        np.testing.assert_allclose(transformer.get(v), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_a_part_is_computed_from_its_reverse_its_sum_and_its_row(target):
    v, given, held = started(3)
    x = geon.placeholder([N, C])
    part = v[2:10]
    new = geon.flip(part, [part.axes["N"]]) - geon.mean(part, [C]) + geon.exp(x[0])
    with geon.make_transformer(target) as transformer:
        transformer.computation(geon.assign(part, new), x)(given)
        old = held[2:10]
        wanted = held.copy()
        wanted[2:10] = old[::-1] - old.mean(1, keepdims=True) + np.exp(given[0])
        np.testing.assert_allclose(transformer.get(v), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_a_value_that_others_read_is_stored_once(target):
    v, given, held = started(4)
    x = geon.placeholder([N, C])
    new = geon.exp(v[3:7]) + x[3:7]
    with geon.make_transformer(target) as transformer:
        f = transformer.computation([new, geon.assign(v[3:7], new)], x)
        found = f(given)[0]
        wanted = held.copy()
        wanted[3:7] = np.exp(held[3:7]) + given[3:7]
        np.testing.assert_allclose(found, wanted[3:7], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(transformer.get(v)[3:7], found)


@pytest.mark.parametrize("target", TARGETS)
def test_two_parts_change_at_once(target):
    """Both formulas read the values before the call."""
    v, given, held = started(5)
    x = geon.placeholder([N, C])
    effects = [geon.assign(v[:6], v[:6] + x[:6]), geon.assign(v[6:], v[6:] * x[6:])]
    with geon.make_transformer(target) as transformer:
        transformer.computation(geon.doall(effects), x)(given)
        wanted = np.concatenate([held[:6] + given[:6], held[6:] * given[6:]])
        np.testing.assert_allclose(transformer.get(v), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [(1, 3), (7, 64), (130, 17)])
def test_open_lengths(lengths):
    rows, columns = geon.Axis("R"), geon.Axis("K")
    x, y = geon.placeholder([rows, columns]), geon.placeholder([rows, columns])
    z = geon.update(x, geon.sqrt(geon.absolute(y[1:])) * 2 + x[1:], {rows: slice(1, None)})
    random = np.random.default_rng(6)
    a, b = (random.normal(size=lengths).astype("float32") for _ in range(2))
    wanted = a.copy()
    wanted[1:] = np.sqrt(np.abs(b[1:])) * 2 + a[1:]
    for target in ("numpy", "native" if find_toolchain() else "numpy"):
        with geon.make_transformer(target) as transformer:
            f = transformer.computation(z, x, y)
            np.testing.assert_allclose(f(a, b), wanted, rtol=1e-5, atol=1e-6)
