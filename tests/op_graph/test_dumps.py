"""Dumps: round trips are byte equal, texts that were tampered with raise DumpError alone."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import geon
from geon.op_graph.attributes import is_items, is_widths
from geon.op_graph.dump_values import read_length, read_value, write_length, write_value
from geon.op_graph.dumps import canonical, dumps, graph_hash, loads, loads_case
from geon.op_graph.functional import functional
from geon.op_graph.legal import ROWS
from geon.op_graph.op_graph import post_order
from geon.op_graph.registry import PRIMITIVES
from geon.op_graph.simplify import simplify_rules

N, C, H = geon.Axis("N"), geon.Axis("C", 4), geon.Axis("H")


def training():
    x, t = geon.placeholder([N, C], name="x"), geon.placeholder([N], name="t")
    w = geon.Variable([C], initial_value=np.linspace(0, 1, 4), dtype="float32", name="w")
    b = geon.Variable(initial_value=0, name="b", tags=["bias", "affine"])
    loss = geon.mean(geon.square(geon.sigmoid(geon.dot(x, w) + b) - t), name="loss")
    steps = [geon.assign(v, v - 0.1 * geon.deriv(loss, v)) for v in loss.variables()]
    return [loss, geon.doall(steps, name="train")]


def leaves():
    stream = geon.Random(2**64 - 1, name="noise")
    first = stream.normal([C], std=0.1)
    w = geon.Variable(initial_value=first, name="w")
    kept = geon.persistent_tensor([N], initial_value=1)
    temporary = geon.temporary_tensor([C], dtype="int8", initializers=[geon.assign(kept, 2)])
    unset = geon.Variable([N, C], dtype="bfloat16")
    x = geon.placeholder([C], "uint16", name="x", tags=["fed"], initializers=[w])
    later = geon.Variable([C], initial_value=w + 1)
    counted = geon.iota(C) + temporary
    used = counted + x
    return [
        used,
        w * later,
        kept,
        unset,
        geon.tensor_size(unset),
        geon.sum(geon.cast(used, "bool")),
    ]


def movement():
    x = geon.placeholder([N, C])
    at = geon.placeholder([], "int64")
    square = geon.placeholder([H, H.prime])
    flat = geon.flatten(x)
    return [
        x[1:-1:2, ::-1],
        x[::3, at],
        x[{C: slice(3, 0, -1)}][..., 1],
        geon.update(x, 7, (slice(0, 4), at)),
        geon.concat([x, x[2:]], N),
        geon.stack([x, x], geon.Axis("S")),
        geon.pad(x, {C: (1, 2), N: 1}, value=2),
        geon.pad(x, {N: 2}, mode="reflect"),
        flat,
        geon.unflatten(x, C, [geon.Axis("A", 2), geon.Axis("B", 2)]),
        geon.rename(x, {N: H}) + geon.Variable([H, C]),
        geon.dot(square, geon.rename(square, {H.prime: "K"}), over=H),
        geon.flip(geon.reorder(x, [C, N]), C),
        geon.broadcast(x, [C, H, N]),
    ]


def indexing():
    x = geon.placeholder([N, C], "float64")
    index = geon.placeholder([N, H], "int32")
    values, positions = geon.top_k(x, 2, C)
    return [
        geon.gather(x, index, C),
        geon.scatter(x, index, 1.5, C, mode="add"),
        geon.argsort(x, N) + geon.argmax(x),
        geon.sort(x, C, descending=True),
        geon.cumprod(geon.cumsum(x, N, reverse=True), C, exclusive=True),
        geon.sum(values * positions),
        geon.max(x, N),
        geon.any(geon.isnan(x), out_axes=C),
        geon.polygamma(3, x),
        geon.stop_gradient(geon.where(x > 0, x, -0.0)),
    ]


def constants():
    rng = np.random.default_rng(3)
    large = geon.constant(rng.normal(size=(30, 4)), [geon.Axis("R", 30), C], name="table")
    numbers = [geon.constant(v, dtype=d) for v, d in ((1, "int8"), (True, "bool"), (1, "bfloat16"))]
    special = geon.constant([np.nan, -0.0, np.inf], [geon.Axis("T", 3)])
    empty = geon.constant(np.zeros((0, 4)), [geon.Axis("Z"), C])
    return [large * 2, *numbers, special, empty, geon.constant(1, name="one"), large + large]


def ordered():
    v = geon.Variable([C], initial_value=1, name="v")
    x = geon.placeholder([C])
    once = geon.assign(v, v + 1)
    part = geon.assign(v[1:3][0], 5)
    return [
        geon.sequential([once, part, once, v * 2]),
        geon.sequential([geon.assign(x, x + v), geon.doall([once])]),
        geon.add(x, v, follows=[once], name="late"),
        geon.print(x * v, label='a "label"\n'),
        geon.assign(x[::2], geon.Random(5).uniform([C])[::2]),
    ]


def second_derivatives():
    x = geon.placeholder([N, C], "float64")
    y = geon.sum(geon.softmax(x, normalization_axes=C) * geon.tanh(x[:, ::-1]))
    return [geon.deriv(geon.sum(geon.square(geon.deriv(y, x))), x)]


def simplified():
    from geon.op_graph.rewrite import rewrite

    made = functional(training() + second_derivatives())
    return rewrite(made.roots, simplify_rules(), {})


GRAPHS = (
    training,
    leaves,
    movement,
    indexing,
    constants,
    ordered,
    second_derivatives,
    simplified,
)
graphs = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)


@graphs
def test_a_round_trip_is_byte_equal(graph):
    results = graph()
    text = dumps(results)
    read = loads(text)
    assert dumps(read) == text
    assert dumps(loads(text)) == text
    assert [str(op) for op in read] == [str(op) for op in results]
    assert text.isascii()


@graphs
def test_a_round_trip_gives_an_equal_graph(graph):
    results = graph()
    read = loads(dumps(*results))
    assert len(read) == len(results)
    for old, new in zip(post_order(results), post_order(read), strict=True):
        assert type(old) is type(new)
        assert old.primitive is new.primitive
        assert old.axes is new.axes
        assert old.dtype is new.dtype
        assert (old.weak, old.effectful) == (new.weak, new.effectful)
        assert (old.name, old.tags, old.file_info) == (new.name, new.tags, new.file_info)
        assert [(g.relation, g.left, g.right, g.meaning) for g in old.guards] == [
            (g.relation, g.left, g.right, g.meaning) for g in new.guards
        ]
    assert canonical(results)[0] == canonical(read)[0]


@graphs
def test_without_notes_there_are_no_names_and_lines(graph):
    results = graph()
    text = dumps(results, notes=False)
    assert not any(key in text for key in ('"at": ', '"name": ', '"names": ', '"tags": '))
    assert dumps(loads(text), notes=False) == text
    made = [op for op in loads(text) if op.variables()]
    assert all(__file__ in op.filename for op in made)


def test_leaves_are_new_with_what_was_declared():
    results = leaves()
    used, product, kept, unset, *_ = loads(dumps(results))
    w, later = product.args
    assert later.initial_value.args[0] is w
    assert later.initializers == (geon.assign(later, later.initial_value),)
    assert w.trainable and w.persistent and w.name == "w"
    assert kept.persistent and not kept.trainable
    assert not unset.initializers and unset.dtype.name == "bfloat16"
    temporary, x = used.args[0].args[1], used.args[1]
    while temporary.args:
        temporary = temporary.args[0]
    while x.args:
        x = x.args[0]
    assert not temporary.persistent
    assert temporary.initializers[0].args[0] is kept
    assert x.is_input and x.tags == {"fed"} and x.initializers == (w,)
    assert not {kept, unset, w, later} & {*post_order(results)}


def test_constants_and_large_arrays_keep_their_bits():
    from geon.op_graph.constants import constant_value

    for old, new in zip(
        post_order(constants()), post_order(loads(dumps(constants()))), strict=True
    ):
        if old.primitive.name == "constant":
            assert constant_value(old).tobytes() == constant_value(new).tobytes()
            assert not constant_value(new).flags.writeable
    shared = loads(dumps(constants()))
    assert shared[0].args[0] is shared[-1].args[0]


def test_feeds_and_lengths_make_one_case():
    loss, train = training()
    x = loss.placeholders()[0]
    w = loss.variables()[0]
    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    text = dumps(loss, train, feeds={w: np.ones(4, np.float32), x: array}, lengths={N: 3, "H": 0})
    case = loads_case(text)
    assert case.lengths == {"H": 0, "N": 3}
    assert [leaf.name for leaf in case.feeds] == ["x", "w"]
    fed = {leaf.name: array for leaf, array in case.feeds.items()}
    np.testing.assert_array_equal(fed["x"], array)
    assert fed["x"].dtype == np.float64 and fed["x"].flags.writeable
    again = dumps(case.results, feeds=case.feeds, lengths=case.lengths)
    assert again == text
    half = np.ones((), geon.placeholder(dtype="bfloat16").dtype)
    scalar = geon.placeholder()
    for value in (half, np.float16(2), 3, True, np.zeros((2, 0))):
        (read,) = loads_case(dumps(scalar, feeds={scalar: value})).feeds.values()
        assert read.dtype == np.asarray(value).dtype and read.shape == np.asarray(value).shape


def test_a_callable_initial_value_is_left_out():
    v = geon.Variable([C], initial_value=lambda axes: np.ones(4))
    (read,) = loads(dumps(v))
    assert read.initial_value is None
    assert dumps(read) == dumps(v)


def test_what_cannot_be_dumped_says_so():
    x = geon.placeholder([C], name="x")

    @geon.custom_deriv(lambda *args: [args[-1]])
    def twice(x):
        return x * 2

    with pytest.raises(geon.DumpError, match=rf"(?s){os.path.basename(__file__)}:\d+.*simplified"):
        dumps(twice(x))
    with pytest.raises(geon.DumpError, match="no placeholder or variable"):
        dumps(x, feeds={geon.placeholder(): 1})
    with pytest.raises(geon.DumpError, match="takes ops"):
        dumps(x, 3)
    with pytest.raises(geon.DumpError, match="dtype"):
        dumps(x, feeds={x: ["a"]})
    with pytest.raises(geon.DumpError, match="integer"):
        dumps(x, lengths={N: -1})
    with pytest.raises(geon.DumpError, match="open axis"):
        dumps(x, lengths={C: 4})
    v = geon.Variable([C])
    v.info.initializers = (geon.assign(v, v + 1),)
    with pytest.raises(geon.DumpError, match="initialize itself"):
        dumps(v)


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, 1, -(2**70), "", "A0", 'é"\n\ud800', 0.1, -0.0, float("inf"), b"",
        b"\0\xff", (), ((1,), (True, (None, "x"))), N, C, H.prime, geon.Axes(), geon.Axes(N, C),
        N.expression, (3 * N.expression + 1) // 2 * H.expression - 5, np.dtype("float16"),
        PRIMITIVES["add"], PRIMITIVES["sum"],
    ],
    ids=repr,
)  # fmt: skip
def test_attributes_keep_type_and_value(value):
    read = read_value(json.loads(json.dumps(write_value(value))))
    assert type(read) is type(value)
    assert read == value
    assert repr(read) == repr(value)


ODD = geon.Axis("an odd name + 1").expression
lengths = st.recursive(
    st.integers(-3, 9) | st.sampled_from([N.expression, H.expression, ODD]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 5)).map(lambda pair: pair[0] // pair[1]),
        st.tuples(inner, inner).map(lambda p: p[0] // p[1] if p[1] != 0 else p[0]),
    ),
    max_leaves=8,
)  # fmt: skip


@given(lengths)
def test_lengths_keep_their_normal_form(length):
    assert read_length(json.loads(json.dumps(write_length(length)))) == length


# Texts that were tampered with ------------------------------------------------------------------


@graphs
def test_a_truncated_text_is_refused(graph):
    lines = dumps(graph()).split("\n")[:-1]
    for kept in range(len(lines)):
        with pytest.raises(geon.DumpError):
            loads("\n".join(lines[:kept]))
        with pytest.raises(geon.DumpError, match=f"line {kept + 1} "):
            loads("\n".join([*lines[:kept], lines[kept][:-1]]))


def test_the_line_that_is_wrong_is_named():
    lines = dumps(training()).split("\n")
    for wrong in (
        "[]",
        "{}",
        "7",
        "",
        "null",
        '["add", [], [], "float32"]',
        lines[0],
        lines[1][:-3],
    ):
        with pytest.raises(geon.DumpError, match="line 5 "):
            loads("\n".join([*lines[:4], wrong, *lines[5:]]))
    with pytest.raises(geon.DumpError, match="line 1 .*first line"):
        loads("\n".join(lines[1:]))
    with pytest.raises(geon.DumpError, match=f"line {len(lines)} .*the end"):
        loads("\n".join([*lines, ""]))
    with pytest.raises(geon.DumpError, match="version 99"):
        loads("\n".join(['{"geon": "graph", "version": 99}', *lines[1:]]))
    with pytest.raises(geon.DumpError, match="string"):
        loads(b"")


X = '["placeholder", [], [["N", "N"]], "float32", {}]'
I = '["iota", [], [["N", "N"]], "int64", {"attrs": [["axis", "N", "N"], "int64"]}]'  # noqa: E741


@pytest.mark.parametrize(
    "line, problem",
    [
        ('["tan", [2], [["N", "N"]], "float64", {}]', "gives float32, not float64"),
        ('["tan", [2], [["N", 3]], "float32", {}]', None),
        ('["tan", [2], [["M", "N"]], "float32", {}]', "not .M"),
        ('["tan", [3], [["N", "N"]], "float32", {}]', "before"),
        ('["tan", [4], [["N", "N"]], "float32", {}]', "before"),
        ('["tan", [1], [["N", "N"]], "float32", {}]', "before"),
        ('["tan", [-1], [["N", "N"]], "float32", {}]', "before"),
        ('["tan", [true], [["N", "N"]], "float32", {}]', "before"),
        ('["tan", [2, 2], [["N", "N"]], "float32", {}]', "1 arguments"),
        ('["tan", [2], [["N", "N"]], "float32", {"attrs": [1]}]', "0 attributes"),
        ('["tan", [2], [["N", "N"], ["N", 3]], "float32", {}]', "twice"),
        ('["tan", [2], [["N", -1]], "float32", {}]', "at least 0"),
        ('["tan", [2], [["N", ["+", [1, ["N", 1]]]]], "float32", {}]', "shortest"),
        ('["tan", [2], [["N", ["+", [2, ["N", 1]], [1, ["N", 1]]]]], "float32", {}]', "normal"),
        ('["tan", [2], [["N", ["+", [2, ["N", 1000000000]]]]], "float32", {}]', "power"),
        ('["tan", [2], [["N", "N"]], "complex64", {}]', "dtype"),
        ('["tan", [2], [["N", "N"]], "float32", {"lazy": true}]', "known"),
        ('["tan", [2], [["N", "N"]], "float32", {"name": 1}]', "string"),
        ('["tan", [2], [["N", "N"]], "float32", {"name": "a", "name": "b"}]', "each key once"),
        ('["tan", [2], [["N", "N"]], "float32", {"trainable": true}]', "keys of a leaf"),
        ('["tan", [2], [["N", "N"]], "float32", {"weak": false}]', "true"),
        ('["tan", [2], [["N", "N"]], "float32", {"guards": [["<", 1, 2, ""]]}]', "=="),
        ('["exec", [2], [["N", "N"]], "float32", {}]', "primitive"),
        ('["add", [2, 3], [["N", "N"]], "float32", {}]', "before"),
        ('["cast", [2], [["N", "N"]], "int8", {"attrs": ["int16", false]}]', "gives int16"),
        ('["sum", [2], [], "float32", {"attrs": [["tuple", "M"]]}]', "no axis"),
        ('["sum", [2], [], "float32", {"attrs": [["tuple", 1]]}]', "no reduced"),
        ('["sum", [2], [["N", "N"]], "float32", {"attrs": [["tuple", "N"]]}]', "gives"),
        ('["slice", [2], [], "float32", {"attrs": [["tuple", ["tuple", "at", -1]]]}]', "inside"),
        ('["slice", [2], [], "float32", {"attrs": [["tuple", ["tuple", "dyn", 1]]]}]', "positions"),
        ('["slice", [], [], "float32", {"attrs": [["tuple"]]}]', "arguments"),
        ('["constant", [], [], "int8", {"attrs": [["bytes", "AAA="], ["axes"], "int8", false]}]',
         "2 bytes"),
        ('["constant", [], [], "bool", {"attrs": [["bytes", "Ag=="], ["axes"], "bool", false]}]',
         "bool"),
        ('["constant", [], [], "bool", {"attrs": [["bytes", "AQ="], ["axes"], "bool", false]}]',
         "base64"),
        ('["random_bits", [2], [["N", "N"]], "uint32", {"attrs": [0, 0, ["axes", ["N", "N"]], '
         '"uint32"]}]', "counter"),
        ('["assign", [2, 2], [["N", "N"]], "void", {}]', "gives"),
        ('["doall", [2], [], "float32", {}]', "gives void"),
        ('["variable", [2], [["N", "N"]], "float32", {}]', "a leaf"),
        ('["variable", [], [], "float32", {"initial": 2}]', "initial value"),
        ('["placeholder", [], [["N", "N"]], "float32", {"initial": 2}]', "placeholder"),
        ('["tan", [2], [["N", "N"]], "float32", NaN]', "integer"),
        ('["tan", [2.0], [["N", "N"]], "float32", {}]', "integer"),
        ("[" * 100_000, "recursion"),
        ('{"feed": 2, "array": ["array", "float32", [1000000000000], ""]}', "shape"),
        ('{"feed": 1, "array": ["array", "float32", [0], ""]}', "before"),
        ('{"lengths": {"N": -1}}', "at least 0"),
        ('{"results": [3]}', "before"),
    ],
)  # fmt: skip
def test_what_no_graph_has_is_refused(line, problem):
    text = "\n".join(['{"geon": "graph", "version": 1}', X, line, '{"results": [2]}', ""])
    if problem is None:
        loads(text)  # an open length may turn out to be any number
    else:
        with pytest.raises(geon.DumpError, match=f"(?s)line 3 .*{problem}"):
            loads(text)


def test_no_text_changes_what_ops_of_constants_are():
    one = geon.constant(1.0, dtype="float64")
    text = dumps(geon.tan(one), notes=False)
    del one
    for wrong in ("float32", "float16", "int64"):
        with pytest.raises(geon.DumpError):
            loads(text.replace('["tan", [2], [], "float64"', f'["tan", [2], [], "{wrong}"'))
    assert geon.tan(geon.constant(1.0, dtype="float64")).dtype == np.float64


SOURCES = [dumps(graph()) for graph in GRAPHS]
PIECES = sorted({part for text in SOURCES for part in text.replace(",", " ").split()})


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_mutated_text_is_read_or_refused(data):
    text = data.draw(st.sampled_from(SOURCES))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.sampled_from([0, 1, 1, 2, 5, 40]))
        new = data.draw(st.sampled_from(PIECES) | st.text(max_size=3) | st.sampled_from("0123[]{}"))
        text = text[:start] + new + text[end:]
    _read_or_refuse(text)


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_flipped_field_is_read_or_refused(data):
    lines = data.draw(st.sampled_from(SOURCES)).split("\n")[:-1]
    index = data.draw(st.integers(0, len(lines) - 1))
    line = [json.loads(lines[index])]
    place, key = line, 0
    while isinstance(place[key], (list, dict)) and place[key] and data.draw(st.integers(0, 4)):
        place = place[key]
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
    other = json.loads(data.draw(st.sampled_from(lines)))
    plain = st.none() | st.booleans() | st.integers(-3, 70) | st.sampled_from([2**80, "N", "", []])
    place[key] = data.draw(plain | st.sampled_from(list(other)))
    lines[index] = json.dumps(line[0])
    _read_or_refuse("\n".join(lines))


def _read_or_refuse(text):
    try:
        read = loads(text)
    except geon.DumpError as error:
        assert "line" in str(error)
    else:
        again = dumps(read)
        assert dumps(loads(again)) == again
        canonical(read)


# The canonical text -----------------------------------------------------------------------------


def test_every_row_has_its_attributes_checked():
    own = {name for name, row in PRIMITIVES.items() if row.attributes} - {"custom", "checked"}
    assert own <= ROWS.keys()
    for name, row in ROWS.items():
        assert len(row.attributes) == len(PRIMITIVES[name].attributes), name
    assert not is_items(((),)) and not is_items((("range", 0, 1, 0),)) and not is_widths(((1,),))


def network(name="x", **options):
    x = geon.placeholder([N, C], name=name)
    w = geon.Variable([C], name=name + "w", **options)
    return geon.mean(geon.tanh(geon.dot(x, w) + 1.0))


def test_names_tags_and_flags_are_no_part_of_the_canonical_text():
    one = network()
    other = network("y", trainable=False, persistent=False, initial_value=3, tags=["a"])
    assert canonical([one])[0] == canonical([other])[0]
    assert graph_hash([one]) == graph_hash([other])
    for op in (one, other):
        _, found, arrays = canonical([op])
        assert found == [leaf for leaf in post_order([op]) if not leaf.args and leaf in found]
        assert len(found) == 2
        assert arrays == []


def test_what_matters_is_part_of_the_canonical_text():
    x, y = geon.placeholder([N, C]), geon.placeholder([N, C])
    f, g = geon.placeholder([N, H]), geon.Variable([N, C])
    graphs = [
        [x + y], [x + x], [y + x, x], [x - y], [x + f], [x + g], [g + x], [x + 1.0], [x + 2.0],
        [x * 0.0], [x * -0.0], [x, None], [None, x], [x], [None], [x, x], [x, y], [y, y, x],
        [x[1:]], [x[:-1]], [geon.sum(x, N)], [geon.sum(x, C)], [geon.cumsum(x, C)],
        [geon.cumsum(x, C, exclusive=True)], [geon.cumsum(x, C, reverse=True)],
        [geon.placeholder([N, C], "float64")], [geon.placeholder([C, N])],
        [geon.placeholder([geon.Axis("N", "M"), C])], [geon.placeholder([N, geon.Axis("C", 5)])],
        [geon.cast(x, "int8")], [geon.cast(x, "int16")], [geon.reorder(x, [C, N])],
        [geon.constant(np.ones(99), geon.Axis("W"))], [geon.constant(np.ones(98), geon.Axis("W"))],
        [geon.constant(np.ones(99, "f4"), geon.Axis("W"))],
        [geon.constant(1)], [geon.constant(1.0)], [geon.constant(True)],
        [geon.Random(1).bits(C)], [geon.Random(2).bits(C)], [geon.polygamma(1, x)],
        [x + geon.placeholder([geon.Axis("N", 7), C])],
    ]  # fmt: skip
    texts = [canonical(graph)[0] for graph in graphs]
    assert len({*texts}) == len(texts), [
        (i, j) for i in range(len(texts)) for j in range(i) if texts[i] == texts[j]
    ]


def test_the_order_of_axes_that_a_rewrite_kept_is_part_of_the_canonical_text():
    from geon.op_graph.op_graph import with_args

    x, y = geon.placeholder([N, C]), geon.placeholder([N])
    kept = with_args(geon.broadcast(y, [N, C]) * x, (y, x))
    turned = with_args(geon.broadcast(y, [C, N]) * geon.reorder(x, [C, N]), (y, x))
    assert kept is not turned
    assert canonical([kept])[0] != canonical([turned])[0]
    for op in (kept, turned):
        (read,) = loads(dumps(op))
        assert read.axes is op.axes and dumps(read) == dumps(op)


def test_large_constants_are_told_apart_by_number_and_their_arrays_returned():
    axis = geon.Axis("W", 100)
    a, b, c = (np.full(100, value, np.float32) for value in (1, 2, 3))
    x, y, z = (geon.constant(array, axis) for array in (a, b, c))
    text, _, arrays = canonical([x + y, y])
    assert text == canonical([z + x, x])[0] != canonical([x + y, x])[0]
    np.testing.assert_array_equal(arrays, [a, b])


def test_a_call_with_a_rule_of_the_users_is_its_value():
    @geon.custom_deriv(lambda *args: [args[-1]])
    def twice(x):
        return x * 2

    x = geon.placeholder([C])
    assert canonical([geon.tan(twice(x))])[0] == canonical([geon.tan(x * 2)])[0]


SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from tests.op_graph.test_dumps import GRAPHS
from geon.op_graph.dumps import dumps, graph_hash
from geon.op_graph.functional import functional
order = GRAPHS if sys.argv[1] == "0" else GRAPHS[::-1]
for name, found in sorted((g.__name__, graph_hash(functional(g()).roots)) for g in order):
    print(name, found)
"""


def test_the_hash_is_the_same_in_every_process():
    printed = []
    for seed in ("0", "12345"):
        script = SCRIPT.format(paths=[os.getcwd()])
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        run = [sys.executable, "-c", script, seed]
        printed.append(
            subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout
        )
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == len(GRAPHS)


def test_a_deep_graph_is_dumped_and_read():
    x = geon.placeholder([N, C], name="x")
    y = x
    for _ in range(50_000):
        y = geon.tan(y) + x
    times = [time.perf_counter()]
    text = dumps(y)
    times.append(time.perf_counter())
    read = loads(text)
    times.append(time.perf_counter())
    found = canonical([y])[0]
    times.append(time.perf_counter())
    assert canonical(read)[0] == found
    assert dumps(read) == text
    for what, start, end in zip(("dumps", "loads", "canonical"), times, times[1:], strict=False):
        print(f"{what}: {(end - start) / 100_000 * 1e6:.1f} microseconds per op")
