"""The arrays that PyTorch made: ``make_references.py``, ``make_sequence_references.py``."""

from pathlib import Path

import numpy as np

import geon

ARRAYS = {
    key: array
    for file in ("references.npz", "sequence_references.npz")
    for key, array in np.load(Path(__file__).with_name(file)).items()
}


def reference(case):
    """The arrays of one case, by name."""
    found = {
        key.removeprefix(f"{case}/"): value
        for key, value in ARRAYS.items()
        if key.startswith(f"{case}/")
    }
    assert found, case
    return found


def computed(transformer, y, order, inputs, values, training=None, beside=()):
    """The result over ``order``, and the derivative by each leaf, seeded with ``g``."""
    y = geon.reorder(y, order)
    g = geon.placeholder(y.axes, name="g")
    floats = [leaf for leaf in inputs if leaf.dtype.name == "float32"]
    slopes = geon.deriv(y, floats, seed=g)
    updates = [] if training is None else training.updates
    placeholders = [leaf for leaf in inputs if leaf.primitive.name == "placeholder"]
    placeholders += beside
    f = transformer.computation([y, *slopes, *updates], *placeholders, g)
    found = f(*[values[leaf] for leaf in placeholders], values["g"])
    return found[0], dict(zip(floats, found[1:], strict=False))


def agrees(transformer, case, y, order, leaves, training=None, turned=None, beside=None):
    """Value and derivatives are the reference's; ``leaves`` are those of its arrays, by name.

    ``turned`` are functions from an array of the reference to that of geon's leaf. ``beside`` are
    placeholders by which there is no derivative.
    """
    arrays, turned, beside = reference(case), turned or {}, beside or {}
    values = {leaf: arrays[name] for name, leaf in (leaves | beside).items()}
    inputs = list(leaves.values())
    found, slopes = computed(
        transformer, y, order, inputs, values | {"g": arrays["g"]}, training, list(beside.values())
    )
    close(found, arrays["y"])
    for name, leaf in leaves.items():
        if leaf in slopes:
            close(slopes[leaf], turned.get(name, lambda a: a)(arrays[f"d{name}"]))


def close(found, wanted):
    """Equal but for rounding, as large as the largest number of the array makes it."""
    assert found.shape == wanted.shape
    room = 3e-6 * max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=room)
