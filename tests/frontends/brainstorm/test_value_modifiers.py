"""Modifiers of values and gradients against NumPy, and in networks."""

import json

import numpy as np
import pytest

import geon
from geon.frontends.brainstorm.describable import create_from_description, get_description
from geon.frontends.brainstorm.handlers import NumpyHandler
from geon.frontends.brainstorm.utils import NetworkValidationError
from geon.frontends.brainstorm.value_modifiers import (
    ClipValues,
    ConstrainL2Norm,
    FreezeValues,
    GradientModifier,
    L1Decay,
    L2Decay,
    MaskValues,
    ValueModifier,
)
from tests.frontends.brainstorm.small_network import XOR, xor_network

MASK = np.array([[1, 0, 1], [0, 1, 1]])


def constrained(values, limit):
    norms = np.linalg.norm(values.reshape(len(values), -1), axis=1)
    factors = np.minimum(1, limit / np.maximum(norms, 1e-30))
    return values * factors.reshape(-1, *[1] * (values.ndim - 1))


VALUES = {
    "constrain": (ConstrainL2Norm(1.5), (4, 3), lambda v: constrained(v, 1.5)),
    "constrain filters": (ConstrainL2Norm(0.7), (4, 3, 2, 2), lambda v: constrained(v, 0.7)),
    "constrain a bias": (ConstrainL2Norm(0.01), (5,), lambda v: v),
    "clip": (ClipValues(-0.5, 0.25), (4, 3), lambda v: v.clip(-0.5, 0.25)),
    "mask": (MaskValues(MASK), (2, 3), lambda v: v * MASK),
    "freeze": (FreezeValues(MASK), (2, 3), lambda v: MASK),
}


def round_trip(modifier):
    return create_from_description(json.loads(json.dumps(get_description(modifier))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", VALUES)
def test_values_are_modified_in_place(case, dtype):
    modifier, shape, expected = VALUES[case]
    handler = NumpyHandler(dtype)
    for each in (modifier, round_trip(modifier)):
        whole = np.random.default_rng(0).normal(size=(2 * shape[0], *shape[1:])).astype(dtype)
        before, view = whole.copy(), whole[shape[0] :]
        each(handler, view)
        assert np.allclose(view, expected(before[shape[0] :]), rtol=1e-6)
        assert (whole[: shape[0]] == before[: shape[0]]).all()


@pytest.mark.parametrize("modifier", [L1Decay(0.3), L2Decay(0.3)])
def test_gradients_are_modified_by_parameters(modifier):
    handler = NumpyHandler("float64")
    w, g = np.random.default_rng(0).normal(size=(2, 3, 4))
    expected = g + 0.3 * (np.sign(w) if isinstance(modifier, L1Decay) else w)
    before = w.copy()
    round_trip(modifier)(handler, w, g)
    assert np.allclose(g, expected) and (w == before).all()


def test_frozen_values_are_those_of_the_first_call():
    handler, modifier = NumpyHandler("float64"), FreezeValues()
    values = np.arange(3.0)
    modifier(handler, values)
    values += 1
    modifier(handler, values)
    assert values.tolist() == [0, 1, 2]
    assert get_description(modifier) == {"@type": "FreezeValues"}


def test_the_formula_is_the_same_on_tensors():
    """Compiled networks have the formula of a gradient modifier in their graphs."""
    A, B = geon.Axis("A", 2), geon.Axis("B", 3)
    w, g = (geon.placeholder([A, B], "float64") for _ in range(2))
    values = np.random.default_rng(0).normal(size=(2, 2, 3))
    modifiers = [ConstrainL2Norm(0.5), ClipValues(-0.1, 0.1), MaskValues(MASK), L1Decay(0.3)]
    results = [m.modified(*([w] * isinstance(m, GradientModifier)), g) for m in modifiers]
    found = geon.NumPyTransformer().computation(results, w, g)(*values)
    for modifier, value in zip(modifiers, found, strict=True):
        expected = values.copy()
        arrays = expected if isinstance(modifier, GradientModifier) else expected[1:]
        modifier(NumpyHandler("float64"), *arrays)
        assert np.allclose(value, expected[1])


class Double(ValueModifier):
    def __call__(self, handler, view):
        handler.mult_st(2, view, out=view)


def test_networks_apply_modifiers():
    net = xor_network()
    net.set_weight_modifiers(
        OutLayer={"W": [Double(), ClipValues(-0.5, 0.5)]}, FullyConnected=FreezeValues()
    )
    net.set_gradient_modifiers(OutLayer=L2Decay(10.0))
    before = {name: net.get(f"OutLayer.parameters.{name}") for name in ("W", "bias")}
    net.provide_external_data(XOR)
    net.forward_pass(training_pass=True)
    net.backward_pass()
    with_decay = net.get("OutLayer.gradients.W")
    net.set_gradient_modifiers({})
    net.backward_pass()
    assert np.allclose(with_decay, net.get("OutLayer.gradients.W") + 10 * before["W"], atol=1e-6)
    net.apply_weight_modifiers()
    assert np.allclose(net.get("OutLayer.parameters.W"), (2 * before["W"]).clip(-0.5, 0.5))
    assert (net.get("OutLayer.parameters.bias") == before["bias"]).all()
    assert "OutLayer.W.ClipValues(low=-0.5" in repr(net.weight_modifiers["OutLayer"]["W"][1])


def test_what_does_not_fit_is_refused():
    handler = NumpyHandler("float64")
    with pytest.raises(NetworkValidationError, match=r"mask has the shape \(2, 3\).*\(3, 2\)"):
        MaskValues(MASK)(handler, np.zeros((3, 2)))
    with pytest.raises(NetworkValidationError, match="Double.*has no formula.*compiled=True"):
        Double().modified(geon.placeholder([geon.Axis("A", 2)]))
    for make in (lambda: ClipValues(1, -1), lambda: ConstrainL2Norm(0)):
        with pytest.raises(geon.ArgumentError):
            make()
