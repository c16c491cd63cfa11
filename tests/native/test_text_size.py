"""The text that a compiler is given for small recurrent networks."""

import re

import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

# Of the kernels of one gradient. Element by element an LSTM of 8 units had 2,560, and one of 12
# had 4,832; a recurrent layer of 12 units, the longest one that still is, has 1,513. Definitions of
# functions do not count.
MOST_STATEMENTS = 1520
# Of functions of one row beside those, which are of vectors: gcc takes 0.1 ms for each.
MOST_OF_ONE_ROW = 450
CASES = {neon.LSTM: (4, 8, 12), neon.GRU: (8, 16), neon.Recurrent: (12, 16)}


ONE_ROW = re.compile(r"^static void \w+_one\(.*?^}$", re.MULTILINE | re.DOTALL)


def statements(layer, length):
    """Return how many statements the kernels of a layer's gradient have, which no file is the text
    of: those of loops over rows, and those of functions of one row.
    """
    x = geon.placeholder([ax.N, ax.T, geon.Axis("C", 6)])
    loss = geon.mean(layer(geon.Axis("H", length), neon.Constant(0.1))(x))
    f = geon.NativeTransformer().computation([loss, *geon.deriv(loss, loss.variables())], x)
    empty = geon.NativeTransformer().computation([geon.tanh(x) + geon.sigmoid(x), x + 1], x)
    module, least = (
        make_module(for_vectors(each.plan, 64), each.linking, annotate=False).units
        for each in (f, empty)
    )
    known = {line for unit in least for line in unit.splitlines()}
    alone = [found for unit in module for found in ONE_ROW.findall(unit)]
    both = [[ONE_ROW.sub("", unit) for unit in module], alone]
    return [
        sum(
            line.rstrip().endswith(";") and line not in known
            for unit in units
            for line in unit.splitlines()
        )
        for units in both
    ]


def test_small_recurrent_networks_are_no_long_texts():
    """Whatever the number of units is, within a bound that a compiler takes half a second for."""
    found = {
        (layer.__name__, length): statements(layer, length)
        for layer, lengths in CASES.items()
        for length in lengths
    }
    bounds = (MOST_STATEMENTS, MOST_OF_ONE_ROW)
    assert not {
        case: counts
        for case, counts in found.items()
        if any(count > most for count, most in zip(counts, bounds, strict=True))
    }
