"""Arguments that layers, initialisers, costs and callbacks cannot use: each error has the cure."""

import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis as ax
from tests.places import placed

C, E, Y = geon.Axis("C", 4), geon.Axis("E", 8), geon.Axis("Y", 3)
WORDS = geon.Axis("word", 10)
x = geon.placeholder([ax.N, C], name="x")
lines = geon.placeholder([ax.N, ax.T, C], name="lines")
some = geon.placeholder([ax.N, ax.T], name="some")


REFUSED = {
    "an option that no layer takes": (
        lambda: neon.Sequential([neon.Affine(Y, 0.1)])(x, mask=some),
        r"Sequential at .*test_refused.py.*: its forward takes no mask=; leave it out",
    ),
    "an option of a layer inside": (
        lambda: neon.Sequential([neon.LSTM(E, 0.1), neon.Affine(Y, 0.1)])(lines, mask=some),
        r"takes no mask=; call LSTM with it .*lambda x: layer\(x, mask=",
    ),
    "a mask of numbers": (
        lambda: neon.LSTM(E, 0.1)(lines, mask=some),
        "float32; give truth values",
    ),
    "windows without axes": (
        lambda: neon.Convolution([ax.H, 3], Y, 0.1),
        r"Convolution at .*test_refused.py.*: windows are a dict, such as \{H: .*not \[Axis",
    ),
    "pools without axes": (lambda: neon.Pooling([ax.H]), "Pooling at .*: windows are a dict"),
    "a class of layers": (
        lambda: neon.Sequential([neon.BatchNorm]),
        r"BatchNorm is a class of layers and no layer; give one: BatchNorm\(",
    ),
    "a class of initialisers": (
        lambda: neon.Affine(Y, neon.Glorot)(x),
        r"Affine at .*test_refused.py.*: w is to begin with the class Glorot; .*neon.Glorot\(",
    ),
    "a function that returns nothing": (
        lambda: neon.Sequential([lambda x: None])(x),
        r"Activation at .*test_refused.py.*: its forward gave None; let it return one tensor",
    ),
    "no list of layers": (lambda: neon.Sequential(neon.Affine(Y, 0.1)), "no list of layers"),
    "a seed for a stream": (lambda: neon.Glorot(0), r"random=0 .*geon.Random\(0"),
    "a seed for dropout": (lambda: neon.Dropout(0.5, 0), r"Dropout: random=0 .*geon.Random\(0"),
    "padding that is no word": (
        lambda: neon.LookupTable(WORDS, E, 0.1, pad=10),
        "pad=10 is no number of a row of word:10",
    ),
    "targets of the wrong kind": (
        lambda: neon.costs.cross_entropy(x, geon.placeholder([ax.N], name="t")),
        r"t\(N\) .* of dtype float32 fits .* neither .* over \(N\), nor .* over \(N, C:4\)",
    ),
    "huber": (lambda: neon.costs.huber(x, x, -1), "huber: delta=-1; give a finite number above 0"),
    "focal": (lambda: neon.costs.focal(x, 0, gamma=-1), "focal: gamma=-1; give"),
    "History": (lambda: neon.History(3), "History: path=3; give a path"),
    "Checkpoints": (lambda: neon.Checkpoints(3), "Checkpoints: folder=3; give a path"),
    "Curves of no history": (lambda: neon.Curves("a", "b"), r"history='a'; give the neon.History"),
    "Curves": (lambda: neon.Curves(neon.History(), 3), "Curves: path=3; give a path"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_used_is_refused_with_the_cure(what):
    call, message = REFUSED[what]
    with pytest.raises(geon.GeonError, match=placed(message)):
        call()
