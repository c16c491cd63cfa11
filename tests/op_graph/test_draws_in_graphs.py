"""Draws in graphs, keys of arguments, side tables by ops and byte budgets."""

import gc
import threading

import numpy as np

import geon
from geon.op_graph.core.traversal import until_dropped
from geon.op_graph.random.graph_draws import has_draws, number_draws
from geon.op_graph.values.byte_budget import ByteBudget
from geon.op_graph.values.structural_key import add_parts

N = geon.Axis("N", 3)


def test_draws_are_found_below_an_op_and_in_bodies_of_regions():
    stream, x = geon.Random(1), geon.placeholder([N])
    looped = geon.scan(lambda c, v: (c + v * stream.normal(), c), 0.0 * geon.sum(x), x, over=N)[0]
    assert has_draws([x + stream.normal([N])]) and has_draws([looped]) and not has_draws([x + 1.0])


def test_draws_are_numbered_by_their_order_so_that_equal_code_gives_one_op():
    stream = geon.Random(1)
    first, second = (stream.normal([N]) + stream.uniform([N]) for _ in range(2))
    assert first is not second and number_draws(first) is number_draws(second)


def key_of(*values):
    key = []
    add_parts(key, values, lambda value: type(value))
    return tuple(key)


def test_keys_tell_structures_and_numbers_apart():
    values = [1, 1.0, True, 0.0, -0.0, [1], (1,), [[1], 2], [[1, 2]], {"a": 1}, slice(1, 2), "1"]
    values += [np.float32(1), np.float64(1), None, [None], [], {}]
    keys = [key_of(value) for value in values]
    assert len(set(keys)) == len(values)
    assert key_of([0.5, {"a": slice(None, 2)}]) == key_of([0.5, {"a": slice(None, 2)}])
    assert key_of([0.5] * 1000) == (list,)


def test_a_side_table_forgets_an_op_that_dies():
    table = {}
    op = geon.placeholder([N])
    assert until_dropped(table, op, 1) == 1 and until_dropped(table, op, 2) == 1
    del op
    gc.collect()
    assert not table


class Held:
    pass


def test_a_byte_budget_drops_what_was_not_used_for_longest():
    dropped = []
    budget = ByteBudget(100, dropped.append, threading.RLock())
    first, second, third = Held(), Held(), Held()
    budget.count(first, 40)
    budget.count(second, 40)
    budget.count(first, 40)
    budget.count(third, 40)
    assert dropped == [second] and budget.taken == 80
    del third
    gc.collect()
    budget.limit(100)
    assert budget.taken == 40
    budget.drop_later(second)
    budget.limit(0)
    assert dropped == [second, second, first] and budget.taken == 0
