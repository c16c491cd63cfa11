"""CNNP models beside PyTorch: values, and gradients by inputs and parameters."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: run make test-frameworks")

from geon.testing.cases import for_each  # noqa: E402

from .model_cases import CASES  # noqa: E402


@for_each("name", sorted(CASES))
def test_values_and_gradients_beside_torch(name):
    case = CASES[name]
    model = case.make()
    model.compile(*case.inputs)
    found = model.evaluate(*case.inputs, is_test=not case.trains, requires_grad=True)
    inputs = [torch.tensor(x) for x in case.inputs]
    floats = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    own = model.places()
    weights = {name: torch.tensor(owner.own[name].numpy()) for _, owner, name in own}
    for owner, name in [(owner, name) for _, owner, name in own]:
        weights[name].requires_grad_(owner.own[name].kind != "state")
    wanted = case.torch(torch, torch.nn.functional, weights, *inputs)
    wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    outputs = found if isinstance(found, tuple) else (found,)
    total, seeds = 0.0, []
    for y, known in zip(outputs, wanted, strict=True):
        assert y.shape == tuple(known.shape)
        assert np.allclose(y, known.detach(), rtol=1e-5, atol=1e-6)
        if known.is_floating_point():
            seeds.append(np.random.default_rng(len(seeds)).normal(size=y.shape).astype(y.dtype))
            total = total + (known * torch.tensor(seeds[-1])).sum()
    if not seeds or not torch.is_tensor(total) or not total.requires_grad:
        return
    by_inputs = [g for g in model.backward(*seeds) if g is not None]
    leaves = [*floats, *[w for w in weights.values() if w.requires_grad]]
    known = torch.autograd.grad(total, leaves, allow_unused=True)
    mine = [*by_inputs, *model.parameters("*").gradients] if weights else by_inputs
    mine = [g for g in mine if g is not None]
    # None for the weights of the LSTM, which PyTorch has copies of.
    for g, k in zip(mine, known, strict=True):
        assert k is None or np.allclose(g, k, rtol=1e-4, atol=1e-5)
