"""Models that PyTorch exports to ONNX: results and gradients of weights are PyTorch's."""

import io

import numpy as np
import pytest

import geon
from geon.frontends import onnx

REASON = "make test-frameworks runs it; it needs PyTorch and onnxscript"
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("onnxscript", reason=REASON)


class ResidualBlock(torch.nn.Module):
    """Two convolutions with batch normalisation beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = torch.nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.shortcut = torch.nn.Conv2d(inputs, outputs, 1, stride)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.second(torch.relu(self.norm(self.first(x))))
        return torch.relu(y + self.shortcut(x))


class ResidualNet(torch.nn.Module):
    """Blocks, a mean over pixels, and scores."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(ResidualBlock(3, 8, 1), ResidualBlock(8, 12, 2))
        self.scores = torch.nn.Linear(12, 5)

    def forward(self, image):
        return self.scores(self.blocks(image).mean((2, 3)))


class Encoder(torch.nn.Module):
    """Layers of attention over words."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(20, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 24, 0.0, "gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.scores = torch.nn.Linear(16, 4)

    def forward(self, words):
        return self.scores(self.layers(self.words(words)))


class Recurrent(torch.nn.Module):
    """An LSTM in both directions over a sequence of vectors."""

    def __init__(self):
        super().__init__()
        self.cells = torch.nn.LSTM(6, 7, 2, batch_first=True, bidirectional=True)
        self.scores = torch.nn.Linear(14, 3)

    def forward(self, x):
        return self.scores(self.cells(x)[0])


def inputs(module, batch, length):
    """An input of a module."""
    random = np.random.default_rng(batch)
    if isinstance(module, ResidualNet):
        return random.normal(size=(batch, 3, 10, 10)).astype("f4")
    if isinstance(module, Encoder):
        return random.integers(0, 20, (batch, length))
    return random.normal(size=(batch, length, 6)).astype("f4")


def exported(module, dimensions):
    """The geon model of a module with these open dimensions, by position."""
    example = torch.from_numpy(inputs(module, 3, 9))
    file = io.BytesIO()
    shapes = ({k: torch.export.Dim(name, min=2) for k, name in dimensions.items()},)
    program = torch.onnx.export(
        module, (example,), dynamo=True, dynamic_shapes=shapes, optimize=False, verbose=False
    )
    program.save(file)
    return onnx.load(file.getvalue())


@pytest.mark.parametrize("kind", [ResidualNet, Encoder, Recurrent])
def test_results_and_gradients_are_those_of_pytorch(kind):
    torch.manual_seed(0)
    module = kind().eval()
    opened = {0: "N"} if kind is ResidualNet else {0: "N", 1: "T"}
    model = exported(module, opened)
    (given,) = model.inputs.values()
    (scores,) = model.outputs.values()
    assert [axis.open_name for axis in given.axes][: len(opened)] == list(opened.values())
    weights = {name: v for name, v in model.variables.items() if v.trainable}
    slopes = geon.deriv(geon.sum(geon.sin(scores)), list(weights.values()), unreached="zero")
    f = geon.make_transformer("native").computation([scores, *slopes], given)
    parameters = dict(module.named_parameters())
    assert parameters.keys() >= weights.keys() - dict(module.named_buffers()).keys()
    for batch, length in ((3, 9), (5, 4)):
        x = inputs(module, batch, length)
        module.zero_grad()
        wanted = module(torch.from_numpy(x))
        torch.sin(wanted).sum().backward()
        found, *gradients = f(x)
        np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
        compared = 0
        for name, gradient in zip(weights, gradients, strict=True):
            if name in parameters:
                expected = parameters[name].grad.numpy()
                np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4)
                compared += 1
        assert compared >= len(parameters) // 2
