"""Arguments that fit no function of NNC: errors say what is wrong, where, and what to give."""

import os

import numpy as np
import pytest

import geon
from geon.frontends import nnc
from geon.frontends.nnc import Tensor, TensorParam, cmd, cnnp, micro

HERE = os.path.relpath(__file__)
A = np.ones((2, 3), "float32")
IMAGE = np.ones((1, 4, 4, 1), "float32")


def symbolic():
    """Return a graph with a sum of two symbols."""
    g = nnc.SymbolicGraph("g")
    x, y = g.tensor((2, 3), name="x"), g.tensor((2, 3), name="y")
    (z,) = g.exec(cmd.add(), [x, y])
    return g, x, y, z


def concrete():
    """Return a graph of one node, and its tensors."""
    g, x, y = nnc.Graph("c"), Tensor(A), Tensor(shape=(2, 3))
    return g, g.exec(cmd.relu(), [x], [y]), x, y


def model():
    """Return a model that can be trained."""
    made = cnnp.dense(2)
    made.compile((4, 3), minimizer=cmd.sgd(), loss=cmd.mse())
    return made


def frame():
    return nnc.DataFrame.from_array({"a": np.array([0.5, 1.0]), "b": np.array([0, 1])})


def outdated(g, node, x, y):
    schedule = g.static_schedule()
    g.exec(cmd.relu(), [y], [x])
    g.run_with_schedule(schedule)


def parallel(inputs, gradients, devices=("cpu", "cpu")):
    g, x, y, z = symbolic()
    (d,) = g.backward([z], [y])
    named = {"x": x, "y": y, "d": d}
    nnc.data_parallel(g, [named[n] for n in inputs], [named[n] for n in gradients], devices)


def other_graph():
    g, x, _, _ = symbolic()
    h, y, _, _ = symbolic()
    (z,) = h.exec(cmd.add(), [x, y])
    h.compile([z])


graph = nnc.DynamicGraph()
CALLS = [
    (lambda: TensorParam((2,), "foo"), r"TensorParam at .*dtype='foo' is none of bool.*give one"),
    (lambda: Tensor(shape=(2.5,)), r"shape=\(2.5,\); give a list, each an integer"),
    (lambda: Tensor([[1], [2, 3]]), "rows of different shapes; give numbers in one shape"),
    (lambda: Tensor(A).view("ab"), "Tensor.view at .*shape='ab'; give a list, each an integer"),
    (lambda: cmd(5), "cmd at .*name=5; give a text"),
    (lambda: cmd.sgd(rate="a"), "rate='a'; give a number"),
    (lambda: nnc.cmd_exec("relu", [A]), "cmd_exec at .*command='relu'; give a command, such"),
    (lambda: nnc.cmd_exec(cmd.relu(), A), "inputs=.*give a list"),
    (lambda: nnc.cmd_exec(cmd.relu(), ["abc"]), "'abc' is no array of numbers"),
    (lambda: nnc.cmd_exec(cmd.ewsum(), []), "no values to put together; give one or more"),
    (lambda: nnc.cmd_exec(cmd.gemm().backward, [A, A]), "was given 2 inputs; it takes the gradie"),
    (lambda: nnc.cmd_exec(cmd.custom(function=lambda x: 5), [A]), "returned 5; let it return 1"),
    (lambda: nnc.cmd_exec(cmd.custom(function=lambda x: [x, x]), [A]), "let it return 1 values"),
    (lambda: nnc.cmd_exec(cmd.comm_broadcast(count=0), [A]), "count=0; give an integer of"),
    (lambda: nnc.cmd_exec(cmd.max_pool(size="a"), [IMAGE]), "'a' is no integer; give one, or two"),
    (lambda: nnc.cmd_exec(cmd.reduce_sum(axes="a"), [A]), "positions 'a' are no integers"),
    (lambda: nnc.cmd_exec(cmd.histogram(bins=0), [A]), "bins=0; give an integer"),
    (lambda: nnc.infer_params(cmd.relu(), [A]), "params=.*give a list, each a param, such as"),
    (lambda: nnc.hint_auto(cmd.max_pool(), TensorParam((4, 4)), TensorParam((4, 4))),
     "are no images; give 3 or 4 dimensions"),
    (lambda: nnc.autotune(cmd.gemm(), [A, A]), "autotune at .*summed lengths are 3 and 2"),
    (lambda: nnc.write_tensors("/nowhere/x", {"a": A}), "write_tensors at .*cannot be written"),
    (lambda: nnc.map_tensor(__file__, TensorParam((2,)), -4), "from byte -4 on.*check the path"),
    (lambda: concrete()[0].exec(cmd.relu(), [A], [A]), "Graph.exec at .*each a tensor, such as"),
    (lambda: concrete()[0].concat("a", "b"), "a is no node of c; its nodes are relu0: give one"),
    (lambda: concrete()[0].static_schedule(0), "streams=0; give an integer of at least 1"),
    (lambda: outdated(*concrete()), "has not the nodes that c has now; make another one"),
    (lambda: concrete()[0].while_("loop", 3, {}, {}), "loop='loop'; give a graph, such as"),
    (lambda: concrete()[0].while_(nnc.Graph(), 3, {}, {}, breakpoints=[Tensor(A)]),
     "a breakpoint is no output of a node of graph; give outputs"),
    (lambda: concrete()[0].while_(nnc.Graph(), 3, {}, []), "to while_ as a dictionary"),
    (lambda: cnnp.dynamic(5), "dynamic at .*function=5; give a function"),
    (lambda: concrete()[0].case_of(0, [], []), "index=0; give a function"),
    (lambda: concrete()[0].case_of(len, [], [nnc.Graph()]), "give a pair of a graph and its"),
    (lambda: symbolic()[0].exec(cmd.relu(), [Tensor(A)]), "each a symbol, such as g.tensor"),
    (lambda: symbolic()[0].backward(*symbolic()[3:], []), "losses=<symbol.*give a list, each a"),
    (lambda: symbolic()[0].minimize("sgd", [], []), "optimiser='sgd'; give a command"),
    (lambda: symbolic()[0].simplify([Tensor(A)]), "outputs=.*give a list, each a symbol"),
    (lambda: symbolic()[0].compile([], {Tensor(A): A}), "is no symbol; give one with its tensor"),
    (other_graph, r"x float32\(2, 3\)> \(made at .*is of g, another graph than g"),
    (lambda: parallel("", "d"), "for 0 inputs; give two or more.* and the inputs that differ"),
    (lambda: parallel("x", "y"), "is no gradient that nodes compute of the inputs x; give what"),
    (lambda: parallel("x", "d", ["foo", "cpu"]), "device='foo' is none of cpu"),
    (lambda: graph.exec(cmd.relu(), [A]), "DynamicGraph.exec at .*each a variable, such as"),
    (lambda: graph.backward([graph.variable(A)], [graph.variable([1])]), "give variables of fl"),
    (lambda: cnnp.dense(2.5), "cnnp.dense at .*count=2.5; give an integer"),
    (lambda: cnnp.chunk(0)(A), "do not divide into n=0 parts; give a number"),
    (lambda: cnnp.group_norm(0)(IMAGE), "groups=0 does not divide"),
    (lambda: cnnp.dense(2).compile((2, 3), format="foo"), "format='foo'; give one of NHWC"),
    (lambda: cnnp.dense(2).compile((2, 3), loss=5), "loss=5; give a function"),
    (lambda: cnnp.lstm(4)(A), "is no batch of sequences; give 3 dimensions"),
    (lambda: model().evaluate(), r"it takes the inputs \(x\), of which the first 1 are needed"),
    (lambda: model().fit_data(frame().iterate(), epochs=-1), "epochs=-1; give an integer of"),
    (lambda: model().parameters().clip_grad_norm(-1.0), "largest=-1.0; give a finite number"),
    (lambda: frame().map("c", 5, "a"), "DataFrame.map at .*function=5; give a function"),
    (lambda: frame().map("c", lambda a: 5, "a").pull("c"), "has no list of values for 2 rows"),
    (lambda: frame().one_hot("c", "a", 3).pull("c"), "0.5 in row 0.*give integers, or a larger"),
    (lambda: frame().extract_tuple("c", "a", 0).pull("c"), "'c' needs tuples with an element 0"),
    (lambda: frame().pull("a", rows="x"), "rows='x'; give a slice, or integers"),
    (lambda: nnc.DataFrame.from_array([1, 2]), "arrays=.*give a dictionary"),
    (lambda: nnc.Jitter((2, 2), std=(0,)), "deviations above 0"),
    (lambda: micro.combine(5), "outputs=5; give a micro operation, such as"),
    (lambda: micro.combine(micro.input(0).reduce("sum", 5)).interpret(A), "position 5 is out of"),
    (lambda: micro.combine(micro.input(0).reindex(("2",), ("i0//0", "0"))).interpret(A),
     "'i0 // 0' divides by 0; give another divisor"),
    (lambda: micro.combine(micro.input(0).select(1, micro.input(1))).interpret(A, [[7], [0]]),
     "positions 0 to 7 along dimension 1"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", CALLS, ids=[str(k) for k in range(len(CALLS))])
def test_errors_say_what_is_wrong_where_and_what_to_give(call, message):
    with pytest.raises(geon.GeonError, match=f"(?s){message}") as raised:
        call()
    assert f"{HERE}:" in str(raised.value)


def test_an_error_of_a_run_names_the_node_and_both_places():
    g, _, x, _ = concrete()
    node = g.exec(cmd.gemm(), [x, x], [Tensor(shape=(5,))], "product")
    with pytest.raises(geon.AxisError, match="summed lengths are 3 and 2") as raised:
        g.run()
    assert str(node) in str(raised.value) and str(raised.value).count(f"{HERE}:") == 2
    assert str(raised.value).startswith("Graph.run at ")
