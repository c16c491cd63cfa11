"""Models of PyTorch are loaded with their gradients, open lengths, buffers and outputs."""

import numpy as np
import pytest

import geon

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402
from torch.export import Dim, export  # noqa: E402

from geon.frontends.torch import UnsupportedError, load  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


class Residual(nn.Module):
    """A small residual net; its batch norms use the statistics of the batch."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.last = nn.Linear(4, 5)

    def forward(self, image):
        """Return class scores."""
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.first(image))), 2)
        x = torch.relu(x + self.second(x))
        return self.last(x.mean((2, 3)))


class Transformer(nn.Module):
    """A language model of one layer."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.positions = nn.Embedding(16, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.last = nn.Linear(8, 11)

    def forward(self, tokens):
        """Return scores of the next tokens."""
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.last(self.layer(x)).log_softmax(-1)


class Recurrent(nn.Module):
    """Two layers of an LSTM in both directions."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        """Return all outputs and the last state."""
        y, (h, c) = self.lstm(x)
        return {"y": y, "state": (h, c)}


MODELS = {
    "residual": (Residual, (torch.randn(3, 3, 6, 6),), {"image": {0: Dim("N")}}),
    "transformer": (
        Transformer, (torch.randint(0, 11, (3, 5)),),
        {"tokens": {0: Dim("N"), 1: Dim("T", max=16)}},
    ),
    "recurrent": (Recurrent, (torch.randn(3, 5, 3),), {"x": {0: Dim("N")}}),
}  # fmt: skip


def leaves(value):
    """The tensors of an output, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@pytest.mark.parametrize("name", MODELS)
def test_values_and_gradients_are_those_of_pytorch(name):
    torch.manual_seed(0)
    make, given, dynamic = MODELS[name]
    module = make()
    model = load(export(module, given, dynamic_shapes=dynamic))
    parameters = dict(module.named_parameters())
    assert [n for n, v in model.variables.items() if v.trainable] == list(parameters)
    (x,) = model.inputs.values()
    expected = leaves(module(*given))
    loss = sum((each**2).sum() for each in expected)
    loss.backward()
    outputs = leaves(model.graph())
    found = sum(geon.sum(geon.square(each)) for each in outputs)
    derivatives = geon.deriv(found, [model.variables[each] for each in parameters])
    transformer = geon.make_transformer("numpy")
    values, gradients = transformer.computation([outputs, derivatives], x)(given[0].numpy())
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted.detach().numpy(), 1e-4, 1e-5)
    for key, gradient in zip(parameters, gradients, strict=True):
        wanted = parameters[key].grad.numpy()
        scale = max(np.abs(wanted).max(), 1.0)
        np.testing.assert_allclose(gradient / scale, wanted / scale, 1e-3, 1e-4, err_msg=key)


def test_one_compiled_program_serves_all_lengths():
    module = Transformer().eval()
    _, given, dynamic = MODELS["transformer"]
    model = load(export(module, given, dynamic_shapes=dynamic))
    assert model.inputs["tokens"].axes.names == ("N", "T")
    f = model.computation(geon.make_transformer("native"))
    for shape in ((2, 7), (5, 16), (3, 2)):
        tokens = torch.randint(0, 11, shape)
        with torch.no_grad():
            wanted = module(tokens).numpy()
        np.testing.assert_allclose(f(tokens.numpy())["output"], wanted, 1e-4, 1e-5)


def test_buffers_change_as_in_the_module():
    module = Residual()
    model = load(export(module, MODELS["residual"][1]))
    transformer = geon.make_transformer("numpy")
    f = model.computation(transformer)
    assert f(MODELS["residual"][1][0].numpy())["updates"] is None
    module(*MODELS["residual"][1])
    for key, buffer in module.named_buffers():
        found = transformer.get(model.variables[key])
        np.testing.assert_allclose(found, buffer.numpy(), 1e-5, 1e-6, err_msg=key)
        assert not model.variables[key].trainable


def test_a_model_is_trained_further():
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    module[0].weight.requires_grad_(False)
    model = load(export(module, (torch.randn(4, 3),)), {"input": ["N", "C"]})
    trained = [v for v in model.variables.values() if v.trainable]
    assert "0.weight" in model.variables and "0.weight" not in [v.name for v in trained]
    loss = geon.mean(geon.square(model.outputs["output"] - 1))
    pairs = zip(trained, geon.deriv(loss, trained), strict=True)
    steps = [geon.assign(v, v - 0.1 * d) for v, d in pairs]
    step = geon.make_transformer("numpy").computation(
        [loss, geon.doall(steps)], model.inputs["input"]
    )
    data = np.random.default_rng(0).normal(size=(4, 3))
    losses = [float(step(data)[0]) for _ in range(30)]
    assert losses[-1] < 0.1 * losses[0]


class Loops(nn.Module):
    """A branch, a scan, a loop with a condition and a map."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x, n):
        """Return the results of each."""
        from torch._higher_order_ops.map import map as mapped
        from torch._higher_order_ops.scan import scan
        from torch._higher_order_ops.while_loop import while_loop

        y = torch.cond(x.sum() > 0, lambda v: v @ self.w, lambda v: v.flip(0), (x,))
        start = torch.zeros(4)
        last, all_of_them = scan(
            lambda c, r: (c * 0.5 + torch.tanh(r @ self.w), c + r), start, x, dim=0
        )
        zero = torch.tensor(0)
        count, z = while_loop(lambda i, c: i < n, lambda i, c: (i + 1, c * 2 + i), (zero, x))
        return y, last, all_of_them, count, z, mapped(lambda r, w: r @ w, x, self.w)


def test_loops_and_branches_are_regions():
    module, given = Loops(), (torch.randn(3, 4), torch.tensor(3))
    model = load(export(module, given))
    found = model.computation(geon.make_transformer("numpy"))(*[each.numpy() for each in given])
    for value, wanted in zip(found.values(), module(*given), strict=True):
        np.testing.assert_allclose(value, wanted.detach().numpy(), 1e-5, 1e-6)


class Drawing(nn.Module):
    """Random numbers of all kinds."""

    def forward(self, x):
        """Return draws and a dropout."""
        numbers = torch.rand(1000), torch.randn(1000), torch.rand_like(x), torch.randperm(9)
        return *numbers, nn.functional.dropout(x, 0.25, True)


def test_draws_have_the_distributions_of_pytorch():
    model = load(export(Drawing(), (torch.ones(5000),)))
    found = list(model.computation(geon.make_transformer("numpy"))(np.ones(5000)).values())
    assert 0 <= found[0].min() and found[0].max() < 1 and abs(found[0].mean() - 0.5) < 0.05
    assert abs(found[1].mean()) < 0.15 and abs(found[1].std() - 1) < 0.1
    assert sorted(found[3]) == list(range(9)) and found[2].shape == (5000,)
    assert (
        set(np.round(found[4], 4)) == {0, np.float32(1.3333)} and 0.7 < (found[4] > 0).mean() < 0.8
    )


class Spectra(nn.Module):
    """Complex numbers and Fourier transforms, in each way that they are divided."""

    def forward(self, x):
        """Return spectra, parts, and what is computed back from them."""
        half, z = torch.fft.rfft(x), torch.complex(x, x + 1)
        return (
            half.abs(),
            half.angle(),
            torch.fft.irfft(half, n=4),
            torch.fft.irfft2(torch.fft.rfft2(x), s=(3, 4)),
            torch.fft.fftshift(half.imag),
            torch.fft.fft2(z, norm="ortho"),
            torch.fft.ifft2(z, norm="ortho"),
            torch.fft.ifft(z, norm="forward"),
            torch.view_as_real(half.conj() * 2),
            torch.view_as_complex(torch.stack([x, x], -1)),
            torch.exp(z) * z / (z - 2j) + torch.sum(z),
            torch.matmul(z, z.T).real,
            torch.stft(x.reshape(1, -1), 4, 2, window=torch.ones(4), return_complex=True).abs(),
        )


def test_complex_numbers_and_transforms():
    x = torch.randn(3, 4)
    found = load(export(Spectra(), (x,))).computation(geon.make_transformer("numpy"))(x.numpy())
    for name, wanted in zip(found, Spectra()(x), strict=True):
        expected = wanted.resolve_conj().numpy()
        assert found[name].dtype == expected.dtype
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)


class Unknown(nn.Module):
    """Operators that geon does not have."""

    def forward(self, x):
        """Return what depends on elements, singular values and an inverse."""
        return torch.linalg.svd(x).S + x.nonzero().sum(), torch.linalg.inv(x)


def test_unknown_operators_are_named_at_once():
    with pytest.raises(UnsupportedError) as caught:
        load(export(Unknown(), (torch.randn(3, 3),)))
    assert {"aten._linalg_svd.default", "aten.nonzero.default"} <= set(caught.value.names)
    assert "aten.nonzero.default: 1" in str(caught.value)


class Masked(nn.Module):
    """A mask that the length of the result depends on."""

    def forward(self, x):
        """Return the elements that are positive, summed."""
        return x[torch.tensor([True, False])].sum()


def test_a_node_that_cannot_be_built_is_named_with_its_line():
    with pytest.raises(geon.GeonError, match=r"node \w+ \(index.Tensor\).*by a mask") as caught:
        load(export(Masked(), (torch.randn(2, 3),)))
    assert "test_load_models.py" in str(caught.value)


def test_names_of_axes_must_fit():
    program = export(nn.Linear(3, 2), (torch.randn(4, 3),))
    with pytest.raises(geon.ArgumentError, match="no input 'x'; it has input"):
        load(program, {"x": ["N", "C"]})
    with pytest.raises(geon.ArgumentError, match="1 names for 2 dimensions"):
        load(program, {"input": ["N"]})


def test_lengths_that_are_multiples_of_a_dim():
    """PyTorch derives the lengths 2 * half of images that are pooled in pairs."""
    half = Dim("half", min=2, max=64)
    module = Residual().eval()
    program = export(
        module, (torch.randn(2, 3, 8, 6),), dynamic_shapes=({2: 2 * half, 3: 2 * half - 2},)
    )
    model = load(program)
    f = model.computation(geon.NumPyTransformer())
    for side in (8, 6, 14):
        image = torch.randn(2, 3, side, side - 2)
        (found,) = f(image.numpy()).values()
        np.testing.assert_allclose(found, module(image).detach().numpy(), 1e-4, 1e-5)
    with pytest.raises(geon.FeedError, match="has length 9 where"):
        f(np.zeros((2, 3, 9, 7), np.float32))
