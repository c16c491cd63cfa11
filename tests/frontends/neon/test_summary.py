"""Summaries: axes, parameters and bytes, and operations that are counted by hand."""

import gc
import weakref
from html.parser import HTMLParser

import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.frontends.neon.training.summary import HEAD, summary

N, T = ax.N, ax.T
C, K = geon.Axis("C", 3), geon.Axis("K", 8)
HEIGHT, WIDTH = geon.Axis("H", 6), geon.Axis("W", 5)
SAME = dict.fromkeys([ax.H, ax.W], geon.Window(3, pad="same"))


def rows_of(found):
    """The rows of a summary's text below its head, and those of its HTML, which are the same."""

    class Cells(HTMLParser):
        def __init__(self):
            super().__init__()
            self.rows = []

        def handle_starttag(self, tag, attrs):
            if tag == "tr":
                self.rows.append([])
            if tag in ("td", "th"):
                self.rows[-1].append("")

        def handle_data(self, data):
            self.rows[-1][-1] += data

    parser = Cells()
    parser.feed(found._repr_html_())
    head, *rows = parser.rows
    assert tuple(head) == HEAD and [tuple(row) for row in rows] == found.rows()
    text = str(found).splitlines()
    assert text[0].split() == list(HEAD) and len(text) == len(rows) + 1
    for line, row in zip(text[1:], rows, strict=True):
        assert line.split() == " ".join(row).split()
    return [tuple(row) for row in rows]


def image():
    return geon.placeholder([N, HEIGHT, WIDTH, C], name="x")


def of_sequence():
    return geon.placeholder([N, T, C], name="x")


# By hand: two for each multiplication of a product, one for each element of another op, and one for
# each element that is summed.
COUNTS = {
    "linear": (lambda: neon.Linear(K, 0.1), of_sequence, f"{2 * 3 * 8}*T"),
    "affine": (lambda: neon.Affine(K, 0.1, 0.0, geon.tanh), of_sequence, f"{2 * 3 * 8 + 8 + 8}*T"),
    "convolution": (
        lambda: neon.Convolution(SAME, K, 0.1, 0.0),
        image,
        f"{30 * 8 * (2 * 9 * 3 + 1):,}",
    ),
    "depthwise": (lambda: neon.Convolution(SAME, [], 0.1, apart=C), image, f"{30 * 3 * 2 * 9:,}"),
    "pooling": (
        lambda: neon.Pooling({ax.H: 2, ax.W: 5}),
        image,
        f"{3 * 1 * 3 * (2 * 5)}",
    ),
    # x - mean, variance + epsilon, its root, their product, a scale and a shift
    "batch norm": (lambda: neon.BatchNorm(), image, f"{90 + 3 + 3 + 90 + 90 + 90}"),
    # mean: 3 and a division; mean square: 3, 3 and a division; epsilon and root; scale
    "rms norm": (lambda: neon.RMSNorm(), of_sequence, f"{3 + 3 + 1 + 1 + 1 + 3 + 3}*T"),
    "dropout": (lambda: neon.Dropout(0.5, geon.Random(0)), image, "0"),
    "lookup": (
        lambda: neon.LookupTable(geon.Axis("V", 9), K, 0.1),
        lambda: geon.placeholder([N, T], "int64"),
        "0",
    ),
    # what x and the state give to four gates, two sums, five functions, three products and a sum
    "lstm": (
        lambda: neon.LSTM(K, 0.1),
        of_sequence,
        f"{2 * 3 * 32 + 32 + 2 * 8 * 32 + 32 + 8 * (5 + 3 + 1)}*T",
    ),
    "residual": (lambda: neon.Residual(lambda x: x * 2), image, "90"),
}


@pytest.mark.parametrize("case", COUNTS)
def test_operations(case):
    make, data, wanted = COUNTS[case]
    layer = make()
    y = layer(data())
    assert rows_of(summary(layer, y))[0][-1] == wanted


def test_operations_of_attention():
    """Queries, keys and values; scores scaled, masked and a softmax; the mixture; the result."""
    layer = neon.MultiHeadAttention(geon.Axis("head", 2), geon.Axis("key", 4), C, 0.1, causal=True)
    times = geon.Axis("T", 5)
    found = summary(layer, layer(geon.placeholder([N, times, C])))
    wanted = 3 * (2 * 5 * 3 * 8)  # products for queries, keys and values
    wanted += 5 * 8  # queries are scaled
    wanted += 2 * 2 * 25 * 4  # scores
    wanted += 2 * 25  # which are allowed
    wanted += 2 * 5 * (5 + 5 + 5 + 5 + 5)  # the largest, less it, exp, the sum, divided
    wanted += 2 * 2 * 25 * 4  # mixed
    wanted += 2 * 5 * 8 * 3  # the result
    assert found.operations == wanted


def network():
    random = geon.Random(0, name="random")
    inner = neon.Sequential([neon.Dropout(0.5, random), neon.Linear(K, 0.1, over=K)])
    return neon.Sequential(
        [
            neon.Convolution(SAME, K, 0.1, 0.0, geon.relu),
            neon.BatchNorm(),
            neon.Residual(inner),
            lambda x: geon.mean(x, [ax.H, ax.W]),
            neon.Affine(geon.Axis("Y", 10), 0.1),
        ],
        name="net",
    )


def test_a_network(transformer):
    t = geon.placeholder([N], "int64", name="t")
    made = neon.Model(
        network(), image(), t, neon.costs.cross_entropy, neon.Adam(), transformer=transformer
    )
    before = rows_of(made.summary())
    assert before == [
        ("net: Sequential", "(N, Y:10)", "", "", "", "0"),
        ("  0: Convolution", "(N, H:6, W:5, K:8)", "w(H.window:3, W.window:3, C:3, K:8)", "216",
         "864", f"{240 * (54 + 1 + 2):,}"),
        ("", "", "b(K:8)", "8", "32", ""),
        ("  1: BatchNorm", "(N, H:6, W:5, K:8)", "mean(K:8)", "8", "32", f"{4 * 240 + 16}"),
        ("", "", "variance(K:8)", "8", "32", ""),
        ("", "", "scale(K:8)", "8", "32", ""),
        ("", "", "shift(K:8)", "8", "32", ""),
        ("  2: Residual", "(N, H:6, W:5, K:8)", "", "", "", "240"),
        ("    layer: Sequential", "(N, H:6, W:5, K:8)", "", "", "", "0"),
        ("      0: Dropout", "(N, H:6, W:5, K:8)", "", "", "", "0"),
        ("      1: Linear", "(N, H:6, W:5, K:8)", "w(K':8, K:8)", "64", "256", f"{30 * 128:,}"),
        ("  3: Activation", "(N, K:8)", "", "", "", "248"),
        ("  4: Affine", "(N, Y:10)", "w(K:8, Y:10)", "80", "320", "170"),
        ("", "", "b(Y:10)", "10", "40", ""),
        ("trained", "", "", "394", "1,576", f"{13680 + 976 + 240 + 3840 + 248 + 170:,}"),
        ("not trained", "", "", "16", "64", ""),
    ]  # fmt: skip
    made.step()  # the layers are called once more, for training
    assert rows_of(made.summary()) == before


def test_a_batch_of_any_length_is_one_example():
    def count(n):
        layer = neon.Affine(K, 0.1)
        return summary(layer, layer(geon.placeholder([geon.Axis("N", n), C]))).operations

    assert count(1) == count(50) == count("N") == 2 * 24 + 8


def test_a_layer_that_is_called_twice_is_one_line_with_both_results():
    shared = neon.Linear(C, 0.1, over=C)
    net = neon.Sequential([shared, geon.tanh, shared], name="net")
    rows = rows_of(summary(net, net(geon.placeholder([N, C]))))
    assert [row[0] for row in rows] == [
        "net: Sequential", "  0: Linear", "", "  1: Activation", "trained", "not trained",
    ]  # fmt: skip
    assert [row[1] for row in rows[1:3]] == ["(N, C:3)", "(N, C:3)"]
    assert rows[1][-1] == str(2 * 18) and rows[-2][3:] == ("9", "36", "39")


def test_calls_that_are_no_part_of_the_result_are_not_counted():
    layer = neon.Linear(K, 0.1)
    kept = layer(geon.placeholder([N, C])), layer(geon.placeholder([N, T, C]))
    assert rows_of(summary(layer, kept[0]))[0][-1] == "48"
    assert {row[1] for row in rows_of(summary(layer))} == {"(N, K:8)", "(N, T, K:8)", ""}


def test_a_summary_keeps_no_graph_alive():
    layer = neon.Linear(K, 0.1)
    result = weakref.ref(layer(geon.placeholder([N, C])))
    gc.collect()
    assert result() is None and list(layer.calls) == []


def test_open_axes_have_expressions():
    layer = neon.Linear(K, 0.0)
    y = layer(geon.placeholder([N, ax.C]))
    rows = rows_of(summary(layer, y))
    assert rows[0][3:] == ("8*C", "32*C", "16*C") and rows[-1][3:5] == ("0", "0")


def test_what_is_shown_is_escaped():
    layer = neon.Linear(K, 0.1, name="<b>&")
    y = layer(geon.placeholder([N, C]))
    page = summary(layer, y)._repr_html_()
    assert "&lt;b&gt;&amp;: Linear" in page and "<b>" not in page
    assert rows_of(summary(layer, y))[0][0] == "<b>&: Linear"


def test_what_two_layers_ask_for_is_counted_once():
    net = neon.Parallel([geon.tanh, geon.tanh, geon.exp], "C")
    assert summary(net, net(geon.placeholder([N, C]))).operations == 3 + 3


def test_loops_and_what_depends_on_constants_alone():
    def halved(x):
        rates = geon.exp(geon.constant([1.0, 2.0, 3.0], [C])) * 2
        x, _ = geon.while_loop(
            lambda s: s[1] > 1, lambda s: (s[0] / 2, geon.sum(s[0])), (x, geon.sum(x))
        )
        return x * rates

    layer = neon.Activation(halved)
    found = summary(layer, layer(geon.placeholder([C])))
    # before the loop a sum; inside a comparison, a half and a sum; then a product
    assert found.operations == 3 + (1 + 3 + 3) + 3
