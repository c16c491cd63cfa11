"""What kernels cost, counted from their data and compared with counts by hand."""

import pytest

import geon
from geon.op_graph.axes.affine import variable
from geon.op_graph.rows.reducers import ARGMAX
from geon.op_graph.values.dtypes import FLOAT32, INT64
from geon.transformers.kernels.analysis.op_counts import count, reduced_values
from geon.transformers.kernels.costs.kernel_costs import cost_of
from geon.transformers.kernels.ir.nest import Reduction
from geon.transformers.kernels.ir.scalar_code import IndexNumber, Load, ScalarBuilder, walk
from geon.transformers.lowering.planning.cost_report import operand_places, written_place
from geon.transformers.sizes.product_problem import ProductSizes

from ..golden.emitting import Native
from .made_machine import made

N, C = geon.Axis("N"), geon.Axis("C", 1000)


def costs(results, *placeholders, **lengths):
    schedule = Native().computation(results, *placeholders).stages().schedule
    place = written_place(schedule)
    return [
        cost_of(kernel.work, lengths, operand_places(schedule, kernel, place))
        for kernel in schedule.kernels
    ]


def only(found):
    (cost,) = found
    return cost.read, cost.written, cost.touched, sum(cost.operations(made()).values())


def test_an_elementwise_kernel_reads_writes_and_adds_each_element():
    x, y = geon.placeholder([N, C]), geon.placeholder([C])
    found = costs(x * 2 + y, x, y, N=10)
    assert only(found) == (40_000 + 4000, 40_000, 84_000, 20_000)
    assert list(found[0].operations(made())) == ["float32"]


def test_a_reduction_counts_what_it_goes_over():
    x = geon.placeholder([N, C], dtype="float64")
    assert only(costs(geon.sum(x, C), x, N=7)) == (56_000, 56, 56_056, 7000)


def test_pieces_cost_what_they_do():
    """Each part of a join is computed once, for its own elements; as a whole both are for all."""
    n = geon.Axis("N")
    x, y = geon.placeholder([n]), geon.placeholder([n])
    (cost,) = costs(geon.concat([x * 2, y + 1], n), x, y, N=1000)
    assert (cost.read, cost.written) == (8000, 8000)
    assert cost.rows == {("multiply", "float32"): 1000, ("add", "float32"): 1000}
    assert [(stage.piece, stage.turns) for stage in cost.stages] == [(True, 1000)] * 2
    assert [[a.reach.elements for a in stage.accesses] for stage in cost.stages] == [[1000] * 2] * 2
    slope = geon.deriv(geon.sum(geon.square(x[{n: slice(1, None)}] - x[{n: slice(None, -1)}])), x)
    (long,), (short,) = costs(slope, x, N=3), costs(slope, x, N=1)
    assert len(long.stages) == 3 and [stage.piece for stage in short.stages] == [False]


def test_each_part_of_a_row_is_counted_at_its_own_length():
    m, n = geon.Axis("M", 40), geon.Axis("N", 500)
    x = geon.placeholder([m, n])
    inner = x[:, 1:-1]
    slope = geon.deriv(geon.sum(geon.square(x[:, 2:] - 2 * inner + x[:, :-2])), x)
    costs_of = [cost for cost in costs(slope, x) if any(stage.piece for stage in cost.stages)]
    (cost,) = costs_of
    turns = [stage.turns // 40 for stage in cost.stages]
    assert sum(turns) == 500 and max(turns) >= 496
    assert [stage.inner for stage in cost.stages] == turns


def test_a_reducer_with_a_state_counts_its_steps():
    code = ScalarBuilder()
    element, position = (
        code(Load, 0, variable("i"), FLOAT32),
        code(IndexNumber, variable("i"), INT64),
    )
    reduction = Reduction(0, ARGMAX, (FLOAT32, INT64), (element,), position)
    rows = {}
    for value in walk(*reduced_values(reduction)):
        count(rows, value, 1)
    assert rows["less", "float32"] == rows["less", "int64"] == 1
    assert rows["where", "float32"] == rows["where", "int64"] == 1


def test_softmax_is_three_passes_that_read_once():
    x = geon.placeholder([N, C])
    (cost,) = costs(geon.softmax(x, C), x, N=8)
    assert (cost.read, cost.written) == (32_000, 32_000)
    assert [stage.turns for stage in cost.stages] == [8000, 8000, 8000]
    assert cost.rows["exp", "float32"] == cost.rows["maximum", "float32"] == 8000
    assert cost.rows["divide", "float32"] == 8  # once for each row
    assert cost.stages[-1].once == {("divide", "float32"): 8}
    assert sum(cost.operations(made()).values()) == 8000 * (1 + 1 + 20 + 1 + 1) + 8


def test_a_value_read_twice_counts_once():
    x = geon.placeholder([C])
    assert only(costs(x * geon.flip(x, C), x)) == (4000, 4000, 8000, 1000)


def test_of_a_sliced_value_only_the_slice_is_read():
    x = geon.placeholder([C])
    assert only(costs(x[{C: slice(0, 10)}] + 1, x)) == (40, 40, 80, 10)
    shifted = x[{C: slice(0, 10)}] + x[{C: slice(1, 11)}]
    assert only(costs(shifted, x)) == (44, 40, 84, 10)


def test_what_a_kernel_stores_and_reads_again_is_written_alone():
    x = geon.placeholder([N, C])
    y = geon.exp(x)
    (cost,) = costs([y, y - geon.sum(y, C)], x, N=10)
    assert (cost.read, cost.written, cost.touched) == (40_000, 80_000, 120_000)


def test_a_broadcast_operand_is_read_once():
    x, y = geon.placeholder([N, C]), geon.placeholder([N])
    (cost,) = costs(x + y, x, y, N=10)
    assert (cost.read, cost.written) == (40_000 + 40, 40_000)
    steps = {access.reach.elements: access.reach.step for access in cost.stages[0].accesses}
    assert steps == {10_000: "unit", 10: "still"}


def test_elements_that_lie_apart_touch_a_line_each():
    x = geon.placeholder([N, C])
    (cost,) = costs(x[{C: 5}] + 1, x, N=50)
    (load, store) = cost.stages[0].accesses
    assert (load.reach.step, load.reach.elements, load.reach.line_bytes) == ("far", 50, 50 * 64)
    assert (store.reach.step, store.reach.line_bytes) == ("unit", 200)
    assert (cost.read, cost.written) == (200, 200)


def test_a_gather_reads_at_positions():
    x, at = geon.placeholder([C]), geon.placeholder([N], dtype="int64")
    found = costs(geon.gather(x, at, C), x, at, N=30)
    assert sum(cost.read for cost in found) >= 30 * 8 + 30 * 4
    loads = [access for cost in found for stage in cost.stages for access in stage.accesses]
    by_size = {load.itemsize: load.reach for load in loads if not load.writes}
    assert by_size[4].step == "far" and by_size[4].elements == 30 and by_size[8].step == "unit"
    # Each in a line of its own, of which there are no more than the operand has.
    assert by_size[4].scattered and by_size[4].line_bytes == min(30 * 64, 4 * C.length)
    assert not by_size[8].scattered


def test_a_product_takes_two_operations_for_each_triple():
    m, k, n = geon.Axis("M", 30), geon.Axis("K", 20), geon.Axis("L", 40)
    x, y = geon.placeholder([m, k]), geon.placeholder([k, n])
    found = costs(geon.dot(x, y), x, y)
    assert only(found) == (4 * (600 + 800), 4 * 1200, 4 * 2600, 2 * 30 * 20 * 40)
    product = found[0].product
    assert product.sizes == ProductSizes(1, 30, 40, 20)
    assert product.strides == ((20, 1), (1, 40)) and product.planned is None


def test_what_is_done_with_sums_counts():
    m, k, n = geon.Axis("M", 30), geon.Axis("K", 20), geon.Axis("L", 40)
    x, y, z = geon.placeholder([m, k]), geon.placeholder([k, n]), geon.placeholder([n])
    (cost,) = costs(geon.exp(geon.dot(x, y) + z), x, y, z)
    assert cost.read == 4 * (600 + 800 + 40)
    assert cost.rows["exp", "float32"] == cost.rows["add", "float32"] == 1200
    assert cost.operations(made()) == {"float32": 2 * 24_000 + 1200 * 21}


def test_an_update_in_place_touches_the_variable_once():
    w = geon.Variable([C], initial_value=1.0)
    x = geon.placeholder([C])
    assert only(costs(geon.assign(w, w - x * 0.5), x)) == (8000, 4000, 8000, 2000)


def test_casts_count_and_copies_do_not():
    x = geon.placeholder([C], dtype="int32")
    assert costs(geon.cast(x, "float32"), x)[0].operations(made()) == {"int32": 1000}
    assert costs(geon.flip(x, C), x)[0].operations(made()) == {}


def test_library_calls_count_their_operands():
    x = geon.placeholder([N, C])
    assert only(costs(geon.cumsum(x, C), x, N=3)) == (12_000, 12_000, 24_000, 3000)
    (cost,) = costs(geon.sort(x, C), x, N=3)
    assert (cost.read, cost.written) == (12_000, 12_000) and cost.counted.steps > 3000


def test_library_calls_that_replace_a_part_in_place_touch_that_alone():
    w, at, x = geon.Variable([C], initial_value=1.0), geon.placeholder([N], dtype="int64"), None
    x = geon.placeholder([N])
    found = costs(geon.assign(w, geon.scatter(w, at, x, C)), at, x, N=30)
    assert found[-1].touched == 30 * (8 + 4 + 4)
    whole = costs(geon.scatter(w, at, x, C), at, x, N=30)
    assert whole[-1].touched == 30 * (8 + 4) + 2 * 4000


def test_a_missing_length_is_named():
    x = geon.placeholder([N, C])
    with pytest.raises(KeyError, match="N"):
        costs(x + 1, x)


def test_more_elements_cost_more():
    x = geon.placeholder([N, C])
    sizes = (1, 10, 1000, 5000)
    found = [costs(geon.softmax(x, C), x, N=n)[0] for n in sizes]
    for less, more in zip(found, found[1:], strict=False):
        assert less.read < more.read and less.written < more.written
        assert sum(less.rows.values()) < sum(more.rows.values())
