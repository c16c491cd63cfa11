"""Results computed in the place of what their kernel reads: each element is read before."""

import dataclasses
import math

import numpy as np
import pytest

import geon
from geon.transformers.kernels.products.row_blocking import Blocked
from geon.transformers.lowering.fusion.fusion_groups import same_places
from geon.transformers.lowering.fusion.kernel_reads import KernelReads
from geon.transformers.lowering.planning.inplace_legality import reads_first, wrong_step
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from tests.kernels.transformer import KernelsTransformer

A, B, C = geon.Axis("A", 70), geon.Axis("B", 8), geon.Axis("C", 3)


def given(*axes):
    """A placeholder, and an array for it."""
    data = np.random.default_rng(4).normal(size=[axis.length for axis in axes])
    return geon.placeholder(axes), data.astype(np.float32)


def stores_of_a_row():
    """Two values of a row behind its sum, the first in the place of what the second reads."""
    rows, axis = geon.Axis("A", 3), geon.Axis("B", 2)
    (q, a), (y, b) = given(rows, axis), given(rows)
    total, freed = geon.sum(q, axis), geon.sort(y, rows)
    results = [geon.sort(geon.exp(total), rows), freed * total]
    return results, {q: a, y: b}, [np.sort(np.exp(a.sum(1))), np.sort(b) * a.sum(1)]


def stores_side_by_side():
    """The same of rows that adjoin, with a function of which compilers make no vectors."""
    (q, a), (y, b) = given(B, A), given(A)
    total, freed = geon.sum(q, B), geon.sort(y, A)
    results = [geon.sort(geon.exp(total), A), geon.lgamma(geon.absolute(freed) + 1.5) + total]
    standing = np.array([math.lgamma(abs(each) + 1.5) for each in np.sort(b)])
    return results, {q: a, y: b}, [np.sort(np.exp(a.sum(0))), standing + a.sum(0)]


def stores_in_two_orders():
    """Elements that are stored in two orders of axes, which are two passes of a row."""
    rows, axis = geon.Axis("A", 5), geon.Axis("B", 4)
    z, a = given(rows, axis, C)
    freed = geon.sort(z, C)
    total = geon.sum(freed, [axis, C])
    turned = geon.reorder(geon.sin(freed) * total + freed, [rows, C, axis])
    b = np.sort(a, 2)
    each = b.sum((1, 2))[:, None, None]
    wanted = [np.sort(np.exp(b) - each, 2), (np.sin(b) * each + b).transpose(0, 2, 1)]
    return [geon.sort(geon.exp(freed) - total, C), turned], {z: a}, wanted


def stores_of_rows_and_elements():
    """Values of a row beside those of its elements, where nothing is reduced."""
    (x, a), (y, b), (z, c) = given(A, B), given(A), given(A)
    near, freed = geon.sort(y, A), geon.sort(z, A)
    one, other = np.sort(b), np.sort(c)
    wanted = [one * other, a * (one + 1)[:, None], one + 1]
    return [freed * near, x * (near + 1), near + 1], {x: a, y: b, z: c}, wanted


PROGRAMS = [
    stores_of_a_row,
    stores_side_by_side,
    stores_in_two_orders,
    stores_of_rows_and_elements,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values(transformer, program):
    results, inputs, wanted = program()
    found = transformer.computation(results, *inputs)(*inputs.values())
    plain = transformer.computation(results, *inputs, plan=False)(*inputs.values())
    for a, b, c in zip(found, plain, wanted, strict=True):
        assert a.tobytes() == b.tobytes()
        np.testing.assert_allclose(a, c, 2e-4, 2e-4)


@pytest.mark.parametrize("first", [True, False])
def test_the_old_value_of_a_variable_beside_the_new_one(transformer, first):
    """What is stored as it was read may be of the place that the other store writes."""
    axis, start = geon.Axis("N", 256), np.linspace(0, 1, 256, dtype=np.float32)
    v = geon.Variable(axis, initial_value=start)
    results = [v, geon.assign(v, geon.exp(v))]
    found = transformer.computation(results if first else results[::-1])()
    np.testing.assert_array_equal(found[0 if first else 1], start)
    np.testing.assert_allclose(transformer.get(v), np.exp(start), 1e-5)


# The verifier -----------------------------------------------------------------------------------


def planned(program):
    """The plan of a target that fuses."""
    results, inputs, _ = program()
    return KernelsTransformer().computation(results, *inputs).plan


def over_anything(reading, result):
    """All values of a kernel in whose place a result would lie, whenever they are read."""
    values = [value for value in reading.reads if value.axes.same_set(result.axes)]
    return tuple([value for value in values if same_places(reading.laid_out, value, result)])


def read_at_other_indices():
    x, a = given(A)
    freed = geon.sort(x, A)
    return [geon.exp(geon.flip(freed, A)) + freed], {x: a}, None


def read_in_a_later_pass():
    x, a = given(A, B)
    freed = geon.sort(x, B)
    wide = geon.exp(freed)
    return [wide, geon.max(freed * geon.sum(wide, B), B)], {x: a}, None


def read_by_a_product():
    x, a = given(A, A.prime)
    freed = geon.sort(x, A)
    square = geon.dot(freed, geon.rename(freed, {A: A.prime, A.prime: "K"}), over=A.prime)
    return [geon.tanh(geon.rename(square, {"K": A.prime})) + freed], {x: a}, None


BROKEN = [read_at_other_indices, read_in_a_later_pass, read_by_a_product]


@pytest.mark.parametrize("program", BROKEN, ids=lambda program: program.__name__)
def test_a_planner_that_asks_for_no_order_is_refused(monkeypatch, program):
    verify_plan(planned(program))
    monkeypatch.setattr(KernelReads, "in_place", over_anything)
    with pytest.raises(geon.PlanError, match="is computed over"):
        verify_plan(planned(program))


def test_a_planner_that_knows_no_order_of_axes_is_refused(monkeypatch):
    verify_plan(planned(stores_in_two_orders))
    monkeypatch.setattr(KernelReads, "is_one_pass", lambda *_: True)
    with pytest.raises(geon.PlanError, match="is computed over"):
        verify_plan(planned(stores_in_two_orders))


def test_all_forms_of_work_are_played():
    """A nest for short rows, and one for long ones, both read before they write."""
    x = geon.placeholder([geon.Axis("N"), geon.Axis("M")])
    freed = geon.sort(x, "M")
    total = geon.sum(freed, "M")
    results = [freed - total, total]
    plan = KernelsTransformer().computation(results, x).plan
    nest = next(k.work for k in plan.schedule.kernels if len(k.results) == 2)
    value = next(op for op in nest.operands if op.primitive.name == "sort")
    result = next(op for op in nest.operands if op.primitive.name == "subtract")
    assert nest.short is not None
    assert reads_first(nest, value, result, {"N": 3, "M": 5})
    assert not reads_first(stored_early(nest), value, result, {"N": 3, "M": 5})
    turned = dataclasses.replace(nest, short=stored_early(nest.short))
    assert not reads_first(turned, value, result, {"N": 3, "M": 5})


def stored_early(nest):
    """A nest whose first pass also stores what it reads where the last one stores."""
    first, *others = nest.steps
    (store,) = others[-1].stores
    (element,) = first.reductions[0].elements
    early = dataclasses.replace(first, stores=(dataclasses.replace(store, value=element),))
    return dataclasses.replace(nest, steps=(early, *others))


def test_a_chain_whose_memory_is_given_away_too_early_is_refused():
    n, k, h = geon.Axis("n", 2048), geon.Axis("k", 64), geon.Axis("h", 1024)
    x, w, v = geon.placeholder([n, k]), geon.placeholder([k, h]), geon.placeholder([h, k.prime])
    hidden = geon.softmax(geon.dot(x, w), normalization_axes=h)
    plan = KernelsTransformer().computation(geon.dot(hidden, v), x, w, v).plan
    (at,) = [at for at, k in enumerate(plan.schedule.kernels) if isinstance(k.work, Blocked)]
    kernels = list(plan.schedule.kernels)
    work = kernels[at].work
    verify_plan(plan)
    first = [dataclasses.replace(place, number=99) if place.inner else place
             for place in work.places[-1]]  # fmt: skip
    broken = dataclasses.replace(work, places=(*work.places[:-1], tuple(first)))
    assert wrong_step(broken, {}) is not None
    kernels[at] = dataclasses.replace(kernels[at], work=broken)
    schedule = dataclasses.replace(plan.schedule, kernels=tuple(kernels))
    with pytest.raises(geon.PlanError, match="of a block after it was written over"):
        verify_plan(dataclasses.replace(plan, schedule=schedule))
