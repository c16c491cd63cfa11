"""Messages about positions and lengths name the cure that fits what these are for."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax

N, T = ax.N, ax.T
Y, L, E = geon.Axis("Y", 3), geon.Axis("L", 2), geon.Axis("E", 4)
DOCS = Path(__file__).parents[1] / "docs"
scores = geon.placeholder([N, Y], name="scores")
classes = geon.placeholder([N], "int64", name="classes")
marked = geon.placeholder([N], "int64", name="marked")
words = geon.placeholder([N], "int64", name="words")
spoken = geon.placeholder([N, T, Y], name="spoken")
labels = geon.placeholder([N, L], "int64", name="labels")
counts = geon.placeholder([N], "int64", name="counts")
large = geon.placeholder([N], "uint64", name="large")
number = geon.placeholder([], "int64", name="number")
sequence = geon.placeholder([geon.Axis("N", 1), T, E], name="sequence")
free = geon.placeholder([geon.Axis("F")], name="free")
MASK = "-100 marks do not count with mask= of neon.Model"


def full_cache():
    cache = neon.Cache(geon.Axis("place", 2))
    layer = neon.MultiHeadAttention(
        geon.Axis("heads", 1), geon.Axis("keys", 2), E, 0.1, causal=True
    )
    return [layer(sequence, cache=cache), *cache.updates]


# What is computed, what of, data that it refuses, and what the message says.
OF_CALLS = {
    "class -100": (
        lambda: neon.costs.cross_entropy(scores, classes),
        [scores, classes],
        [np.zeros((2, 3)), [0, -100]],
        [r"classes\(N\) .* used as class numbers", "-100 to 0", MASK],
    ),
    "class of a metric": (
        lambda: neon.metrics.Accuracy().each(scores, marked),
        [scores, marked],
        [np.zeros((1, 3)), [3]],
        [r"marked\(N\) .* used as class numbers", ": 3 where", MASK],
    ),
    "label": (
        lambda: neon.costs.ctc(spoken, labels),
        [spoken, labels],
        [np.zeros((1, 5, 3)), [[1, 7]]],
        [r"labels\(N, L:2\) .* used as class numbers", "1 to 7 .* length 3"],
    ),
    "label that counts": (
        lambda: neon.costs.ctc(spoken, labels, label_lengths=counts),
        [spoken, labels, counts],
        [np.zeros((1, 5, 3)), [[1, -2]], [2]],
        [r"labels\(.* used as class numbers", "-2 to 1 .* length 3"],
    ),
    "uint64": (
        lambda: geon.gather(geon.iota(Y), large, Y),
        [large],
        [np.array([1, 2**63 + 5], np.uint64)],
        [r"large\(N\)", "1 to 9223372036854775807 or more where"],
    ),
    "table": (
        lambda: neon.LookupTable(geon.Axis("W", 9), E, 0.1)(words),
        [words],
        [[-1, 4]],
        [r"words\(N\) .* used as rows of a table", r"pad= of neon\.LookupTable"],
    ),
    "branch": (
        lambda: geon.case_of(number, [lambda: free, lambda: free + 1]),
        [free, number],
        [[1.0], 5],
        ["used as the number of a branch", "give the case a default="],
    ),
    "cache": (
        full_cache,
        [sequence],
        [np.zeros((1, 3, 4))],
        [r"cache\.times", "used as positions in a cache", "more places, or set its position to 0"],
    ),
    "resize": (
        lambda: geon.resize(free, {"F": 4}),
        [free],
        [[]],
        ["^resize at", r"axis F of free\(F\)", "no element", "F = 0"],
    ),
}
single = geon.placeholder([geon.Axis("E", 1)], name="single")
OF_BUILDING = {
    "resize": (
        lambda: geon.resize(geon.placeholder([geon.Axis("Z", 0)], name="none"), {"Z": 3}),
        ["^resize at", r"axis Z:0 of none\(Z:0\)", "give it at least one"],
    ),
    "length 1": (
        lambda: sequence + single,
        ["length 4 in sequence", r"single\[\{E: 0\}\] is the element of single\(E:1\)"],
    ),
    "length 1 in a product": (
        lambda: geon.dot(single * 2, sequence),
        [r"x\[\{E: 0\}\] is the element of multiply\(E:1\)"],
    ),
    "append": (lambda: geon.append, [r"geon\.concat\(\[x, y\], A\)"]),
}


def missing(caught, parts):
    return [part for part in parts if not re.search(part, str(caught.value), re.DOTALL)]


def test_messages_about_data_name_the_cure(transformer):
    wrong = {}
    for name, (build, given, data, parts) in OF_CALLS.items():
        f = transformer.computation(build(), *given)
        with pytest.raises((geon.IndexRangeError, geon.GuardError)) as caught:
            f(*data)
        if missing(caught, parts) or "clip" in str(caught.value) and name != "uint64":
            wrong[name] = str(caught.value)
    assert not wrong


def test_a_label_that_does_not_count_may_be_anything(transformer):
    f = transformer.computation(
        neon.costs.ctc(spoken, labels, label_lengths=counts), spoken, labels, counts
    )
    scored = np.random.default_rng(0).normal(size=(1, 5, 3))
    np.testing.assert_array_equal(f(scored, [[1, -7]], [1]), f(scored, [[1, 2]], [1]))


def test_messages_of_building_name_the_cure():
    wrong = {}
    for name, (build, parts) in OF_BUILDING.items():
        with pytest.raises((geon.AxisError, AttributeError)) as caught:
            build()
        if missing(caught, parts):
            wrong[name] = str(caught.value)
    assert not wrong


def test_equal_positions_of_several_purposes_are_positions(transformer):
    """Equal ops are one, so a message about them names no purpose."""
    both = geon.placeholder([N], "int64", name="both")
    rows = neon.LookupTable(Y, E, 0.1)(both)
    f = transformer.computation([rows, neon.costs.cross_entropy(scores, both)], scores, both)
    with pytest.raises(geon.IndexRangeError, match="used as positions.*geon.clip"):
        f(np.zeros((1, 3)), [-1])


def reference_pages() -> dict[str, str]:
    """The pages of the reference by name, made by another process: their examples set options."""
    code = (
        "import generate_ops, json; pages = generate_ops.files().items(); "
        "print(json.dumps({page.stem: text for page, text in pages}))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=DOCS, capture_output=True, text=True, check=True
    )
    return json.loads(made.stdout)


def test_pages_say_which_derivative_there_is():
    """Those that say that there is none are refused, and no other page says so."""
    x = geon.placeholder([Y], name="x")
    none = {
        "all": lambda: geon.all(x > 0),
        "any": lambda: geon.any(x > 0),
        "argmax": lambda: geon.argmax(x),
        "argmin": lambda: geon.argmin(x),
        "argsort": lambda: geon.sum(geon.argsort(x, Y)),
    }
    said = {page for page, text in reference_pages().items() if "**Derivative**: none" in text}
    assert said == none.keys()
    for build in none.values():
        with pytest.raises(geon.DerivativeError):
            geon.deriv(build(), x)
    values, positions = geon.top_k(x, 2, Y)
    with pytest.raises(geon.DerivativeError):
        geon.deriv(geon.sum(positions), x)
    f = geon.make_transformer("numpy").computation(
        [
            geon.deriv(geon.sum(values * values), x),
            geon.deriv(geon.sequential([geon.assign(geon.Variable([Y]), 1), geon.sum(x)]), x),
        ],
        x,
    )
    np.testing.assert_array_equal(f([1, 3, 2])[0], [0, 6, 4])
    np.testing.assert_array_equal(f([1, 3, 2])[1], [1, 1, 1])
