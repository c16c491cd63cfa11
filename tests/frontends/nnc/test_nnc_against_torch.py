"""Commands of NNC against PyTorch: values and gradients."""

import numpy as np
import pytest

from geon.frontends import nnc
from geon.frontends.nnc import cmd

torch = pytest.importorskip("torch", reason="PyTorch is not installed: run make test-frameworks")
F = torch.nn.functional
RANDOM = np.random.default_rng(11)


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def images(f):
    """A function of (N, C, H, W) as one of (N, H, W, C)."""
    return lambda x, *rest: f(x.permute(0, 3, 1, 2), *rest).permute(0, 2, 3, 1)


def filters(w):
    return w.permute(0, 3, 1, 2)


def lstm(x, w, **options):
    layer = torch.nn.LSTM(3, 4, 2, bidirectional=True, **options)
    names = [name for name, _ in layer.named_parameters()]
    names.sort(key=lambda name: name.startswith("bias"))
    values, at = {}, 0
    for name in names:
        shape = dict(layer.named_parameters())[name].shape
        values[name] = w[at : at + shape.numel()].reshape(shape)
        at += shape.numel()
    assert at == len(w)
    return torch.func.functional_call(layer, values, (x,))[0]


IMAGE, LABELS = normal(2, 6, 5, 3), np.array([1, 0, 3])
SIZE = int(sum(np.prod(s) for s in nnc.lstm_shapes(3, 4, 2, True, True)))
PROJECTED_SIZE = int(sum(np.prod(s) for s in nnc.lstm_shapes(3, 4, 2, True, False, 2)))
CASES = [
    (cmd.gemm(transpose_b=True), (normal(4, 3), normal(5, 3), normal(5)), F.linear),
    (
        cmd.convolution(stride=2, border=1, dilation=(1, 2)),
        (IMAGE, normal(4, 3, 2, 3), normal(4)),
        images(lambda x, w, b: F.conv2d(x, filters(w), b, 2, 1, (1, 2))),
    ),
    (
        cmd.convolution_transpose(stride=2, border=1, output_padding=1),
        (IMAGE, normal(3, 3, 3, 4), normal(4)),
        images(lambda x, w, b: F.conv_transpose2d(x, filters(w), b, 2, 1, 1)),
    ),
    (cmd.max_pool(size=2, border=1), (IMAGE,), images(lambda x: F.max_pool2d(x, 2, 2, 1))),
    (
        cmd.average_pool(size=3, stride=2, border=1),
        (IMAGE,),
        images(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    ),
    (
        cmd.upsample(type="bilinear", scale=2),
        (IMAGE,),
        images(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    ),
    (
        cmd.batch_norm(),
        (IMAGE, normal(3), normal(3)),
        images(lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
    ),
    (
        cmd.layer_norm(),
        (normal(4, 5), normal(5), normal(5)),
        lambda x, w, b: F.layer_norm(x, (5,), w, b),
    ),
    (
        cmd.group_norm(groups=2),
        (normal(2, 3, 3, 4), normal(4), normal(4)),
        images(lambda x, w, b: F.group_norm(x, 2, w, b)),
    ),
    (
        cmd.rmsnorm(),
        (normal(4, 5), normal(5)),
        lambda x, w: F.rms_norm(x, (5,), w, 1e-6),
    ),
    (cmd.gelu(), (normal(9),), F.gelu),
    (cmd.gelu(tanh=True), (normal(9),), lambda x: F.gelu(x, approximate="tanh")),
    (cmd.swish(), (normal(9),), F.silu),
    (cmd.leaky_relu(slope=0.1), (normal(9),), lambda x: F.leaky_relu(x, 0.1)),
    (cmd.softmax(), (normal(3, 4),), lambda x: F.softmax(x, 1)),
    (
        cmd.softmax_crossentropy(),
        (normal(3, 4), LABELS),
        lambda x, y: F.cross_entropy(x, y, reduction="none"),
    ),
    (
        cmd.sigmoid_binary_crossentropy(pos_weight=3.0),
        (normal(3, 2), abs(normal(3, 2)) % 1),
        lambda x, y: F.binary_cross_entropy_with_logits(
            x, y, reduction="none", pos_weight=torch.full((2,), 3.0)
        ).sum(1),
    ),
    (
        cmd.smooth_l1(beta=0.5),
        (normal(3, 4), normal(3, 4)),
        lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=0.5).sum(1),
    ),
    (cmd.mse(), (normal(3, 4), normal(3, 4)), lambda x, y: ((x - y) ** 2).mean(1)),
    (
        cmd.scaled_dot_product_attention(is_causal=True),
        (normal(2, 4, 2, 3), normal(2, 4, 2, 3), normal(2, 4, 2, 3)),
        lambda *qkv: F.scaled_dot_product_attention(
            *[x.transpose(1, 2) for x in qkv], is_causal=True
        ).transpose(1, 2),
    ),
    (
        cmd.lstm(hidden=4, layers=2, bidirectional=True),
        (normal(5, 2, 3), None, None, None, 0.5 * normal(SIZE)),
        lambda x, w: lstm(x, w),
    ),
    (
        cmd.lstm(hidden=4, layers=2, bidirectional=True, bias=False, projection=2),
        (normal(5, 2, 3), None, None, None, 0.5 * normal(PROJECTED_SIZE)),
        lambda x, w: lstm(x, w, bias=False, proj_size=2),
    ),
]


@pytest.mark.parametrize("command, inputs, f", CASES, ids=[case[0].name for case in CASES])
def test_values_and_gradients_are_those_of_pytorch(command, inputs, f):
    given = [None if x is None else nnc.Tensor(x, device="numpy") for x in inputs]
    outputs = nnc.cmd_exec(command, given)
    theirs = [torch.tensor(x, requires_grad=x.dtype == "float32") for x in inputs if x is not None]
    expected = f(*theirs)
    np.testing.assert_allclose(outputs[0].array, expected.detach(), rtol=2e-5, atol=2e-6)
    seed = normal(*expected.shape)
    expected.backward(torch.tensor(seed))
    rest = [None] * (len(outputs) - 1)
    found = nnc.cmd_exec(command.backward, [seed, *rest, *given, *outputs])
    mine = [g.array for g in found if g is not None]
    wanted = [x.grad for x in theirs if x.grad is not None]
    assert len(mine) == len(wanted)
    for a, b in zip(mine, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    "command, states, make",
    [
        (
            cmd.sgd(rate=0.1, momentum=0.8, decay=0.1),
            1,
            lambda p: torch.optim.SGD(p, 0.1, 0.8, weight_decay=0.1),
        ),
        (
            cmd.sgd(rate=0.1, momentum=0.8, nesterov=True),
            1,
            lambda p: torch.optim.SGD(p, 0.1, 0.8, nesterov=True),
        ),
        (
            cmd.adam(rate=0.1, decay=0.1),
            2,
            lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1),
        ),
        (
            cmd.adamw(rate=0.1, decay=0.1),
            2,
            lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.1),
        ),
    ],
)
def test_optimisers_take_the_steps_of_pytorch(command, states, make):
    value = normal(5)
    theirs = torch.tensor(value, requires_grad=True)
    optimiser = make([theirs])
    a = nnc.Tensor(value.copy(), device="numpy")
    kept = [nnc.Tensor(np.zeros(5, "float32"), device="numpy") for _ in range(states)]
    for step in range(1, 5):
        g = normal(5)
        theirs.grad = torch.tensor(g)
        optimiser.step()
        if states == 2:
            command = command.with_attributes(step_number=step)
        nnc.cmd_exec(command, [g, a, *kept], [a, *kept])
        np.testing.assert_allclose(a.array, theirs.detach(), rtol=1e-4, atol=1e-6)
