"""What notebooks show: everything escaped, expressions a few levels deep and never without end."""

from html.parser import HTMLParser
from types import SimpleNamespace

import geon
from geon.op_graph.text.display import (
    MAX_SHOWN_ARGUMENTS,
    MAX_SHOWN_LEVELS,
    computation_html,
    tensor_html,
)

N, C = geon.Axis("N"), geon.Axis("C", 4)


class Shown(HTMLParser):
    """The text of cells and trees, after checking that every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.tags = [], [], set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_tensor_shows_what_it_is_and_its_expression():
    x, w = geon.placeholder([N, C], name="x"), geon.Variable([C], name="w")
    y = geon.add(geon.tanh(geon.dot(x, w)), 1.5, name="y", tags=["b", "a"])
    shown = Shown(y._repr_html_())
    assert y._repr_html_() == tensor_html(y)
    text = shown.texts
    for row in (("name", "y"), ("primitive", "add"), ("axes", "(N)"), ("dtype", "float32")):
        assert row in zip(text, text[1:], strict=False)
    assert any("test_pictures.py:" in part for part in text)
    assert "a, b" in text
    assert text[-1].splitlines() == [
        "y = add (N) float32",
        "  tanh (N) float32",
        "    dot (N) float32",
        "      x = placeholder (N, C:4) float32",
        "      w = variable (C:4) float32",
        "  1.5 float32",
    ]


def test_everything_is_escaped():
    axis = geon.Axis("<i>&", 2)
    x = geon.placeholder([axis], name="<script>alert(1)</script>", tags=["</pre><b>"])
    for op in (x, geon.tan(x), geon.assign(x, 1)):
        shown = Shown(tensor_html(op))
        assert shown.tags <= {"table", "tr", "th", "td", "pre"}
    shown = Shown(computation_html({"<u>": x, "results": ["<b>", geon.tan(x)]}))
    assert shown.tags <= {"table", "tr", "th", "td", "br"}


def test_large_expressions_are_cut():
    y = x = geon.placeholder([N, C])
    for _ in range(10_000):
        y = geon.tan(y)
    lines = Shown(tensor_html(y)).texts[-1].splitlines()
    assert len(lines) == MAX_SHOWN_LEVELS + 2 and lines[-1].strip() == "..."
    parts = geon.concat([x] * 50, C)
    lines = Shown(tensor_html(parts)).texts[-1].splitlines()
    assert (
        len(lines) == MAX_SHOWN_ARGUMENTS + 2
        and lines[-1].strip() == f"... {50 - MAX_SHOWN_ARGUMENTS} more"
    )
    for _ in range(100):
        y = y + y
    lines = Shown(tensor_html(y)).texts[-1].splitlines()
    assert sum(line.endswith("(as above)") for line in lines) == MAX_SHOWN_LEVELS - 1


def test_leaves_show_their_flags_and_no_expression():
    v = geon.temporary_tensor([C], name="v")
    text = Shown(tensor_html(v)).texts
    assert ("trainable", "no") in zip(text, text[1:], strict=False)
    assert "<pre>" not in tensor_html(v)


def test_a_computation_shows_its_rows():
    x, v = geon.placeholder([N], name="x"), geon.Variable(name="v")
    rows = {"results": [x * v, geon.assign(v, 1)], "placeholders": [x], "variables": []}
    peak = N.expression * 4 + 64
    shown = [
        Shown(computation_html({**rows, "peak_bytes": peak})).texts,
        Shown(computation_html(SimpleNamespace(**rows, peak_bytes=peak, other=1))).texts,
    ]
    assert shown[0] == shown[1]
    assert shown[0] == [
        "results", "multiply(N) float32", "assign(v()) void", "placeholders", "x(N) float32",
        "variables", "none", "peak bytes", "4*N + 64",
    ]  # fmt: skip
    assert Shown(computation_html({"peak_bytes": 1234567})).texts == ["peak bytes", "1,234,567"]
    assert Shown(computation_html(SimpleNamespace(results=None))).texts == ["results"]
