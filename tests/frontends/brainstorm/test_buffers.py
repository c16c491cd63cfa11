"""Layout, orders of its buffers beside a search, and views."""

import itertools
import random

import numpy as np
import pytest

from geon.frontends.brainstorm import Network
from geon.frontends.brainstorm.handlers import NumpyHandler
from geon.frontends.brainstorm.layers import FullyConnected, Input, Loss, Lstm, NoOp, SquaredError
from geon.frontends.brainstorm.structure.layout import (
    can_be_connected_with_single_buffer,
    gather_array_nodes,
    permute_rows,
)
from geon.frontends.brainstorm.structure.pq_tree import consecutive_order
from geon.frontends.brainstorm.utils import PathError

VIEWS = [
    "inputs", "outputs", "parameters", "internals", "input_deltas", "output_deltas", "gradients",
]  # fmt: skip


def chain(handler=None):
    end = (
        Input({"default": ("T", "B", 4)})
        >> FullyConnected(3, name="A")
        >> FullyConnected(2, name="C")
    )
    return of(end, handler)


def of(layer, handler=None):
    net = Network.from_layer(layer)
    net.set_handler(handler or NumpyHandler("float64"))
    return net


def memory(array):
    """The address of an array's first element."""
    return array.__array_interface__["data"][0]


def test_the_layout_is_nested_dictionaries():
    layout = chain().layout
    assert [key for key in layout if key[0] != "@"] == [
        "parameters",
        "gradients",
        "Input",
        "A",
        "C",
    ]
    assert layout["@type"] == "BufferView"
    assert [key for key in layout["A"] if key[0] != "@"] == VIEWS
    assert [layout["A"][view]["@index"] for view in VIEWS] == list(range(7))
    w = layout["A"]["parameters"]["W"]
    assert {key: w[key] for key in ("@type", "@index", "@shape", "@slice", "@hub")} == {
        "@type": "array", "@index": 0, "@shape": (3, 4), "@slice": (0, 12), "@hub": 0,
    }  # fmt: skip
    assert layout["parameters"]["@slice"] == (0, 12 + 3 + 6 + 2)
    assert layout["A"]["gradients"]["W"]["@is_backward_only"]
    assert layout["A"]["outputs"]["default"]["@hub"] == layout["C"]["inputs"]["default"]["@hub"]
    paths = [path for path, _ in gather_array_nodes(layout)]
    assert len(paths) == len(set(paths)) and "C.input_deltas.default" in paths


def test_outputs_and_inputs_share_memory():
    net = chain()
    net.provide_external_data({"default": np.zeros((2, 5, 4))})
    buffer = net.buffer
    assert memory(buffer.A.outputs.default) == memory(buffer.C.inputs.default)
    assert memory(buffer.A.output_deltas.default) == memory(buffer.C.input_deltas.default)
    buffer.A.outputs.default[...] = 7
    assert (buffer.C.inputs.default == 7).all()
    assert not any(np.shares_memory(a, b) for a in buffer.A.outputs for b in buffer.A.internals)


def test_parameters_are_one_vector_in_declared_order():
    buffer = chain().buffer
    buffer.parameters[:] = np.arange(23)
    np.testing.assert_array_equal(buffer.A.parameters.W, np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(buffer.A.parameters.bias, [12, 13, 14])
    np.testing.assert_array_equal(buffer.C.parameters[1], [21, 22])
    np.testing.assert_array_equal(buffer.C.parameters._full_buffer, np.arange(15, 23))
    buffer.C.gradients.bias[...] = 5
    np.testing.assert_array_equal(buffer.gradients[-2:], [5, 5])


def shared(*groups):
    """Layers a, b, c, ... of 1, 2, 3, ... units, and for each group a layer that reads those."""
    entry = Input({"default": ("T", "B", 2)})
    sources = {n: entry >> FullyConnected(k, "tanh", name=n) for k, n in enumerate("abcd", 1)}
    ends = []
    for number, group in enumerate(groups):
        end = FullyConnected(2, "tanh", name=f"End{number}")
        for name in group:
            sources[name] >> end
        ends.append(end >> Loss(importance=1 + number))
    return of(ends[0])


def values(net):
    """The gradients of a network with given parameters and data."""
    net.provide_external_data({"default": np.random.RandomState(0).randn(2, 3, 2)})
    net.buffer.parameters[:] = np.random.RandomState(1).randn(net.buffer.parameters.size)
    net.forward_pass()
    net.backward_pass()
    found = net.get("gradients")
    for place in range(0, len(found), 5):
        before = net.buffer.parameters[place]
        losses = []
        for change in (1e-6, -1e-6):
            net.buffer.parameters[place] = before + change
            net.forward_pass()
            losses.append(net.get_loss_values()["total_loss"])
        net.buffer.parameters[place] = before
        assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(found[place], abs=1e-7)
    return found


def test_inputs_of_several_layers_are_runs_of_one_buffer():
    net = shared("ac", "cb", "bd")
    assert "@copies" not in net.layout
    hubs = {net.layout[name]["outputs"]["default"]["@hub"] for name in "abcd"}
    slices = [net.layout[name]["outputs"]["default"]["@slice"] for name in "acbd"]
    assert len(hubs) == 1 and slices == [(0, 1), (1, 4), (4, 6), (6, 10)]
    assert net.layout["End1"]["inputs"]["default"]["@slice"] == (1, 6)
    values(net)


def test_where_there_is_no_order_an_input_is_a_copy():
    net = shared("ab", "bc", "ac", "d")
    assert net.layout["@copies"] == {
        "End2.inputs.default": ["a.outputs.default", "c.outputs.default"],
        "End2.input_deltas.default": ["a.output_deltas.default", "c.output_deltas.default"],
    }
    values(net)
    both = np.concatenate([net.get("a.outputs.default"), net.get("c.outputs.default")], -1)
    np.testing.assert_array_equal(net.get("End2.inputs.default"), both)


def test_an_output_that_an_input_reads_twice_is_copied():
    entry, twice = Input({"default": ("T", "B", 2)}), FullyConnected(2, "tanh", name="Twice")
    a = entry >> FullyConnected(3, "tanh", name="a")
    a >> twice
    a >> twice
    a >> NoOp(name="Z") >> Loss(name="Other")
    net = of(twice >> Loss())
    assert net.layers["Twice"].in_shapes["default"].shape == ("T", "B", 6)
    values(net)


def test_images_are_concatenated_along_their_last_dimension():
    entry, end = Input({"a": ("T", "B", 2, 3), "b": ("T", "B", 2, 1)}), NoOp(name="End")
    entry - "b" >> end
    entry - "a" >> end
    net = of(end)
    data = {n: np.random.rand(1, 2, 2, k) for n, k in (("a", 3), ("b", 1))}
    net.provide_external_data(data)
    net.forward_pass()
    np.testing.assert_array_equal(
        net.get("End.outputs.default"), np.concatenate([data["a"], data["b"]], -1)
    )


def test_orders_of_rows():
    assert permute_rows("abc", ["ac"]) == ["a", "c", "b"]
    assert permute_rows("abc", ["ab", "bc", "ac"]) is None
    assert can_be_connected_with_single_buffer("abcd", {"x": "ad", "y": "dc"})


def test_views_stay_the_same_objects_and_parameters_keep_their_values():
    net = chain()
    views = net.buffer, net.buffer.A, net.buffer.A.outputs
    net.buffer.parameters[:] = np.arange(23)
    for steps, batch in ((1, 2), (7, 9), (2, 1), (7, 9), (20, 9)):
        net.provide_external_data({"default": np.ones((steps, batch, 4))})
        assert (net.time_size, net.batch_size) == (steps, batch)
        assert views == (net.buffer, net.buffer.A, net.buffer.A.outputs)
        assert views[2].default.shape == (steps, batch, 3)
        np.testing.assert_array_equal(net.buffer.parameters, np.arange(23))
        net.forward_pass()
        assert (views[2].default == net.get("A.outputs.default")).all()


def test_access_to_views():
    buffer = chain().buffer
    w, bias = buffer.A.parameters
    assert buffer["A.parameters.W"] is w is buffer.A["parameters"][0]
    assert buffer["A"]["parameters"].keys() == ["W", "bias"]
    assert dict(buffer.A.parameters.items())["bias"] is bias
    assert list(buffer.A.parameters._asdict()) == ["W", "bias"]
    assert "A.parameters.W" in buffer and "A.parameters.V" not in buffer and "W" in buffer.A[2]
    assert repr(buffer.A.parameters) == "<BufferView: W, bias>"
    with pytest.raises(PathError, match=r"'A.parameters.V'|'V'.*there are W, bias"):
        buffer["A.parameters.V"]
    with pytest.raises(AttributeError, match="no buffer 'V'; there are W, bias"):
        buffer.A.parameters.V  # noqa: B018  # reading it is what is tested
    with pytest.raises(KeyError, match="'A.parameters' is a view of several buffers.*W, bias"):
        chain().get("A.parameters")


def test_get_is_a_copy():
    net = chain()
    copy = net.get("A.parameters.W")
    copy[...] = 3
    assert not (net.buffer.A.parameters.W == 3).any()


def test_a_context_is_one_more_row_at_the_end():
    net = of(Input({"default": ("T", "B", 2)}) >> Lstm(3, name="L") >> NoOp(name="End"))
    net.provide_external_data({"default": np.random.rand(4, 5, 2)})
    assert net.buffer.L.outputs.default.shape == (5, 5, 3)
    assert net.buffer.End.inputs.default.shape == (4, 5, 3)
    net.forward_pass()
    assert not net.buffer.L.outputs.default[-1].any()
    context = net.get_context()
    last = net.get("L.outputs.default")[3]
    net.forward_pass(context=context)
    np.testing.assert_array_equal(net.buffer.L.outputs.default[-1], last)
    net.forward_pass()
    assert not net.buffer.L.outputs.default[-1].any()


def test_a_context_longer_than_the_batch_keeps_what_was_before():
    net = of(Input({"default": ("T", "B", 2)}) >> Lstm(3, name="L"))
    manager = net._buffers
    (hub,) = [h for h in manager.hubs if "L.outputs.default" in h.slices]
    number = manager.hubs.index(hub)
    hub.context_size = 3
    manager.resize(2, 1)
    manager.buffers[number][...] = np.arange(5).reshape(5, 1, 1)
    np.testing.assert_array_equal(manager.get_context()[number][:, 0, 0], [4, 0, 1])


def test_an_internal_can_be_read_by_another_layer():
    entry = Input({"default": ("T", "B", 2)})
    a = entry >> FullyConnected(3, "tanh", name="A")
    a - "..internals.H" >> FullyConnected(2, "tanh", name="B") >> Loss(name="First")
    cost = a >> FullyConnected(2, "tanh", name="C") >> Loss(name="Second")
    values(of(cost))


def test_targets_have_no_deltas():
    entry, cost = Input({"default": ("T", "B", 2), "targets": ("T", "B", 2)}), SquaredError()
    entry >> FullyConnected(2, name="A") >> cost
    entry - "targets" >> "targets" - cost
    net = of(cost - "loss" >> Loss())
    net.provide_external_data({"default": np.ones((1, 2, 2)), "targets": np.ones((1, 2, 2))})
    net.buffer.parameters[:] = 1
    net.forward_pass()
    net.backward_pass()
    assert not net.buffer.Input.output_deltas.targets.any()
    assert net.buffer.Input.output_deltas.default.any()


# Orders ------------------------------------------------------------------------------------------


def searched(count, sets):
    """The first of all permutations in which each set is contiguous."""
    for order in itertools.permutations(range(count)):
        places = [[order.index(element) for element in each] for each in sets]
        if all(max(each) - min(each) == len(each) - 1 for each in places):
            return list(order)
    return None


def subsets(count):
    return [s for n in range(1, count + 1) for s in itertools.combinations(range(count), n)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_all_small_cases(count):
    for number in range(4):
        for sets in itertools.combinations(subsets(count), number):
            assert consecutive_order(count, sets) == searched(count, sets), sets


def test_the_order_of_sets_does_not_matter():
    for sets in itertools.permutations(subsets(3), 3):
        assert consecutive_order(3, sets) == searched(3, sets), sets


@pytest.mark.parametrize("seed", range(4))
def test_random_cases(seed):
    draw = random.Random(seed)
    found = []
    for _ in range(60):
        count = draw.randint(4, 6)
        order = draw.sample(range(count), count)
        sets = [order[a:b] for a, b in (sorted(draw.sample(range(count + 1), 2)) for _ in range(4))]
        if draw.random() < 0.3:
            sets.append(draw.sample(range(count), draw.randint(2, count - 1)))
        found.append(consecutive_order(count, sets))
        assert found[-1] == searched(count, sets), sets
    assert None in found and any(found)


def test_many_elements_take_no_search():
    pairs = [(k, k + 1) for k in range(0, 199)]
    assert consecutive_order(200, pairs) == list(range(200))
    assert consecutive_order(200, [*pairs, (0, 199)]) is None
