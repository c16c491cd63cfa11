"""What PyTorch computes, as arrays that the tests compare with: ``references.npz``.

    python tests/frontends/neon/make_references.py

It needs PyTorch, which the tests do not. Each case has its inputs, weights, result, the cotangent
of the result, and the derivative by each input and weight, as ``case/name``; all are float32.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ARRAYS = {}
RANDOM = np.random.default_rng(0)


def draw(*shape):
    """Normal numbers as a leaf tensor."""
    return torch.tensor(RANDOM.normal(size=shape).astype(np.float32), requires_grad=True)


def keep(case, **values):
    """Keep arrays under the name of a case."""
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            value = value.detach().numpy()
        ARRAYS[f"{case}/{name}"] = np.array(value)


def record(case, y, **leaves):
    """Keep a result, its cotangent, and the leaves with the derivative by each that is a float."""
    g = torch.tensor(RANDOM.normal(size=tuple(y.shape)).astype(np.float32))
    (y * g).sum().backward()
    keep(case, y=y, g=g, **leaves)
    for name, leaf in leaves.items():
        if leaf.requires_grad:
            keep(case, **{f"d{name}": leaf.grad})


def products():
    x, w, b = draw(5, 4), draw(4, 3), draw(3)
    record("affine", F.relu(x @ w + b), x=x, w=w, b=b)
    numbers, table = torch.tensor([[1, 0, 4], [2, 2, 0]]), draw(5, 3)
    padded = torch.where((numbers == 2)[..., None], 0, F.embedding(numbers, table, padding_idx=2))
    record("lookup", padded, x=numbers, w=table)


def windows():
    x, w, b = draw(2, 4, 7, 6), draw(3, 4, 3, 2), draw(3)
    y = F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    record("convolution", y, x=x, w=w, b=b)
    x, w, b = draw(2, 6, 5, 5), draw(4, 3, 3, 3), draw(4)
    record("groups", F.conv2d(x, w, b, padding=1, groups=2), x=x, w=w, b=b)
    x, w = draw(2, 3, 5, 5), draw(3, 1, 3, 3)
    record("depthwise", F.conv2d(x, w, groups=3), x=x, w=w)
    x, w, b = draw(2, 4, 3, 5), draw(4, 3, 3, 3), draw(3)
    y = F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=(1, 0))
    record("deconvolution", y, x=x, w=w, b=b)
    x = draw(2, 3, 6, 7)
    record("max_pool", F.max_pool2d(x, 2), x=x)
    x = draw(2, 3, 6, 7)
    record("average_pool", F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), x=x)
    x = draw(2, 3, 6, 7)
    record("norm_pool", F.lp_pool2d(x, 2, 2), x=x)


def norms():
    for case, shape in (("batch_norm", (4, 3, 2, 5)), ("batch_norm_rows", (6, 3))):
        layer = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(3, momentum=0.2)
        layer.weight, layer.bias = (nn.Parameter(draw(3).detach()) for _ in range(2))
        x = draw(*shape)
        record(case, layer(x), x=x, scale=layer.weight, shift=layer.bias)
        with torch.no_grad():
            layer(x * 2)
            keep(case, mean=layer.running_mean, variance=layer.running_var)
            layer.eval()
            keep(case, inference=layer(x))
    x, scale, shift = draw(3, 4, 5), draw(4, 5), draw(4, 5)
    record("layer_norm", F.layer_norm(x, (4, 5), scale, shift), x=x, scale=scale, shift=shift)
    x, scale = draw(3, 5), draw(5)
    record("rms_norm", F.rms_norm(x, (5,), scale, 1e-5), x=x, scale=scale)
    x, scale, shift = draw(2, 6, 3, 4), draw(6), draw(6)
    record("group_norm", F.group_norm(x, 3, scale, shift), x=x, scale=scale, shift=shift)


def activations():
    functions = {
        "elu": F.elu, "gelu": F.gelu, "hard_sigmoid": F.hardsigmoid, "hard_tanh": F.hardtanh,
        "leaky_relu": F.leaky_relu, "log_softmax": lambda x: F.log_softmax(x, 1), "mish": F.mish,
        "relu": F.relu, "selu": F.selu, "sigmoid": torch.sigmoid, "silu": F.silu,
        "softmax": lambda x: F.softmax(x, 1), "softplus": F.softplus, "softsign": F.softsign,
        "tanh": torch.tanh,
    }  # fmt: skip
    for name, function in functions.items():
        x = (4 * draw(3, 7)).detach().requires_grad_()
        record(f"activation_{name}", function(x), x=x)


def costs():
    classes = torch.tensor([2, 0, 1, 2, 2])
    x = draw(5, 3)
    record("cross_entropy", F.cross_entropy(x, classes, reduction="none"), x=x, t=classes)
    x = draw(5, 3)
    y = F.cross_entropy(x, classes, reduction="none", label_smoothing=0.1)
    record("smoothed", y, x=x, t=classes)
    x, t = draw(5, 3), torch.softmax(draw(5, 3), 1).detach()
    record("cross_entropy_soft", F.cross_entropy(x, t, reduction="none"), x=x, t=t)
    x, t = draw(5, 3), torch.sigmoid(draw(5, 3)).detach()
    y = F.binary_cross_entropy_with_logits(x, t, reduction="none").mean(1)
    record("binary_cross_entropy", y, x=x, t=t)
    for name, cost in {
        "squared_error": F.mse_loss,
        "absolute_error": F.l1_loss,
        "huber": lambda x, t, reduction: F.huber_loss(x, t, reduction=reduction, delta=0.7),
    }.items():
        x, t = draw(5, 3), draw(5, 3).detach()
        record(name, cost(x, t, reduction="none").mean(1), x=x, t=t)
    x = draw(5, 3)
    record("hinge", F.multi_margin_loss(x, classes, reduction="none") * 3, x=x, t=classes)
    x, t = draw(5, 3), torch.tensor(np.sign(RANDOM.normal(size=(5, 3))).astype(np.float32))
    record("binary_hinge", F.relu(1 - x * t).mean(1), x=x, t=t)
    x = draw(5, 3)
    p = torch.softmax(x, 1)[torch.arange(5), classes]
    record("focal", -((1 - p) ** 2) * torch.log(p), x=x, t=classes)


def optimisers():
    """Weights after each of five steps on a fixed sequence of slopes."""
    made = {
        "sgd": lambda p: torch.optim.SGD(p, 0.1),
        "momentum": lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.01),
        "nesterov": lambda p: torch.optim.SGD(p, 0.1, 0.9, nesterov=True),
        "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, 0.9, momentum=0.5, weight_decay=0.01),
        "adagrad": lambda p: torch.optim.Adagrad(p, 0.1, weight_decay=0.01),
        "adadelta": lambda p: torch.optim.Adadelta(p, 1.0, weight_decay=0.01),
        "adam": lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.1),
    }
    slopes = RANDOM.normal(size=(5, 2, 3)).astype(np.float32)
    keep("slopes", both=slopes)
    for name, make in made.items():
        w = draw(2, 3)
        first, path = w.detach().clone(), []
        optimiser = make([w])
        for slope in slopes:
            w.grad = torch.tensor(slope)
            optimiser.step()
            path.append(w.detach().numpy().copy())
        keep(f"optimiser_{name}", first=first, path=path)
    for name, clip in {
        "clip_value": lambda p: nn.utils.clip_grad_value_(p, 0.5),
        "clip_global_norm": lambda p: nn.utils.clip_grad_norm_(p, 1.0),
    }.items():
        leaves = draw(2, 3), draw(4)
        for leaf in leaves:
            leaf.grad = draw(*leaf.shape).detach()
            keep(name, **{f"in{leaf.ndim}": leaf.grad.clone()})
        clip(leaves)
        for leaf in leaves:
            keep(name, **{f"out{leaf.ndim}": leaf.grad})


def schedules():
    """The rate at each of the first steps."""
    made = {
        "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
        "exponential": lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
        "polynomial": lambda o: torch.optim.lr_scheduler.PolynomialLR(o, 8, 2.0),
        "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 8, 0.01),
        "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(
            o, 0.1, total_steps=10, pct_start=0.3, div_factor=25, final_div_factor=100
        ),
    }
    for name, make in made.items():
        optimiser = torch.optim.SGD([draw(1)], 0.1)
        schedule, rates = make(optimiser), []
        for _ in range(8):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            schedule.step()
        keep(f"schedule_{name}", rates=rates)


def recurrent():
    for case, layer in {
        "rnn": nn.RNN(4, 3),
        "lstm": nn.LSTM(4, 3),
        "gru": nn.GRU(4, 3),
        "bi_rnn": nn.LSTM(4, 3, bidirectional=True),
    }.items():
        x = draw(6, 2, 4)
        y, last = layer(x)
        record(case, y, x=x, **dict(layer.named_parameters()))
        keep(case, last=last[0] if isinstance(last, tuple) else last)


def matrices():
    """Muon's weights after each of four steps, (out, in) as PyTorch has them.

    Its products are taken in float32: by itself it takes them in bfloat16.
    """
    half = torch.Tensor.bfloat16
    torch.Tensor.bfloat16 = torch.Tensor.clone
    try:
        for case, shape, nesterov in (
            ("wide", (3, 7), True),
            ("tall", (7, 3), True),
            ("plain", (4, 4), False),
        ):
            w = draw(*shape)
            first, path = w.detach().clone(), []
            slopes = RANDOM.normal(size=(4, *shape)).astype(np.float32)
            optimiser = torch.optim.Muon([w], 0.1, 0.5, 0.9, nesterov)
            for slope in slopes:
                w.grad = torch.tensor(slope)
                optimiser.step()
                path.append(w.detach().numpy().copy())
            keep(f"muon_{case}", first=first, slopes=slopes, path=path)
    finally:
        torch.Tensor.bfloat16 = half


def curvature():
    """L-BFGS on the logistic regression of 20 points, whose first slopes are small."""
    points = RANDOM.normal(size=(20, 3))
    truths = (points @ [1.0, -2.0, 0.5] + RANDOM.normal(size=20) > 0).astype(np.float64)
    for history in (1, 3):
        w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [w], max_iter=1, history_size=history, tolerance_grad=0, tolerance_change=0
        )

        def cost(w=w, optimiser=optimiser):
            optimiser.zero_grad()
            scores = torch.tensor(points) @ w
            found = F.binary_cross_entropy_with_logits(scores, torch.tensor(truths))
            found = found + 0.05 * (w * w).sum()
            found.backward()
            return found

        path = []
        for _ in range(8):
            optimiser.step(cost)
            path.append(w.detach().numpy().copy())
        keep(f"lbfgs_{history}", points=points, truths=truths, path=path)


def around():
    """Averages of weights, and a scaled cost of which two steps overflow."""
    slopes = RANDOM.normal(size=(7, 2, 3)).astype(np.float32)
    layer = nn.Linear(3, 2, bias=False)
    layer.weight = nn.Parameter(draw(2, 3).detach())
    first, path = layer.weight.detach().clone(), []
    averaging = torch.optim.swa_utils.get_ema_avg_fn(0.8)
    averaged = torch.optim.swa_utils.AveragedModel(layer, avg_fn=averaging)
    averaged.update_parameters(layer)  # the first values
    optimiser = torch.optim.Adam(layer.parameters(), 0.1)
    for slope in slopes:
        layer.weight.grad = torch.tensor(slope)
        optimiser.step()
        averaged.update_parameters(layer)
        path.append(averaged.module.weight.detach().numpy().copy())
    keep("averaged", first=first, slopes=slopes, path=path)

    slopes = slopes.copy()
    slopes[1, 0, 1], slopes[4, 1, 2] = np.inf, np.nan
    w = draw(2, 3)
    first, path, scales = w.detach().clone(), [], []
    optimiser = torch.optim.Adam([w], 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
    for slope in slopes:
        optimiser.zero_grad()
        scaler.scale((w * torch.tensor(slope)).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
        path.append(w.detach().numpy().copy())
        scales.append(scaler.get_scale())
    keep("scaled", first=first, slopes=slopes, path=path, scales=scales)


if __name__ == "__main__":
    torch.manual_seed(0)
    for make in (
        products, windows, norms, activations, costs, optimisers, schedules, recurrent,
        matrices, curvature, around,
    ):  # fmt: skip
        make()
    np.savez_compressed(Path(__file__).with_name("references.npz"), **ARRAYS)
    print(f"PyTorch {torch.__version__}: {len(ARRAYS)} arrays")
