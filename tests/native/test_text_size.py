"""The text that a compiler is given for small recurrent networks."""

import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from geon.transformers.native.emit.module_text import make_module

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

# Of the kernels of one gradient. Element by element an LSTM of 8 units had 2,560, and one of 12
# had 4,832; a recurrent layer of 12 units, the longest one that still is, has 1,441.
MOST_STATEMENTS = 1500
CASES = {neon.LSTM: (4, 8, 12), neon.GRU: (8, 16), neon.Recurrent: (12, 16)}


def statements(layer, length):
    """How many statements the kernels of a layer's gradient have, which no file is the text of."""
    x = geon.placeholder([ax.N, ax.T, geon.Axis("C", 6)])
    loss = geon.mean(layer(geon.Axis("H", length), neon.Constant(0.1))(x))
    f = geon.NativeTransformer().computation([loss, *geon.deriv(loss, loss.variables())], x)
    empty = geon.NativeTransformer().computation(x + 1, x)
    module, least = (
        make_module(each.plan, each.linking, 64, annotate=False).units for each in (f, empty)
    )
    known = {line for unit in least for line in unit.splitlines()}
    lines = [line for unit in module for line in unit.splitlines() if line not in known]
    return sum(line.rstrip().endswith(";") for line in lines)


def test_small_recurrent_networks_are_no_long_texts():
    """Whatever the number of units is, within a bound that a compiler takes half a second for."""
    found = {
        (layer.__name__, length): statements(layer, length)
        for layer, lengths in CASES.items()
        for length in lengths
    }
    assert not {case: count for case, count in found.items() if count > MOST_STATEMENTS}
