"""geon.frontends.torch.function: PyTorch's checks of gradients, memory, parameters, refusals."""

import numpy as np
import pytest

import geon

torch = pytest.importorskip("torch", reason="PyTorch is not installed: run make test-frameworks")

from geon.frontends.base.graph_function import GraphFunction  # noqa: E402
from geon.frontends.torch import function, load  # noqa: E402

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)


def leaves(dtype="float64"):
    x = geon.placeholder([N, C], dtype, name="x")
    w = geon.placeholder([C, H], dtype, name="w")
    return x, w


def tensors(*shapes, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]


def scanned(x):
    """A loop over the open axis, whose derivative is a loop too."""
    return geon.scan(lambda c, part: (geon.tanh(c + part), c * part), geon.sum(x, N) * 0, x, over=N)


GRAPHS = {
    "product": lambda x, w: geon.tanh(geon.dot(x, w)),
    "several results": lambda x, w: {
        "y": geon.softmax(geon.dot(x, w), H),
        "both": [geon.sum(x), geon.sum(geon.square(w), C)],
    },
    "an input without effect": lambda x, w: geon.exp(x),
    "a loop": lambda x, w: geon.dot(scanned(x)[0], w),
    "a result of integers": lambda x, w: (geon.argmax(x, C), geon.dot(x, geon.sin(w))),
}


def flat(value):
    values = value.values() if isinstance(value, dict) else value
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in values for tensor in flat(part)]


@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_gradients_pass_pytorchs_checks(build, transformer):
    x, w = leaves()
    f = function(build(x, w), x, w, transformer=transformer)
    given = tensors((4, 3), (3, 2))

    def floats(*args):
        return tuple(value for value in flat(f(*args)) if value.is_floating_point())

    assert torch.autograd.gradcheck(floats, given)
    assert torch.autograd.gradgradcheck(floats, given)


def test_only_the_gradients_that_are_asked_are_computed():
    x, w = leaves()
    f = function([geon.dot(x, w), geon.sum(x)], x, w)
    a, b = tensors((4, 3), (3, 2))
    f(a.detach(), b)[0].sum().backward()
    assert [key for key in f._described.graph._made if key != "program"] == [("vjp", (1,), (0,))]
    torch.testing.assert_close(b.grad, a.detach().sum(0)[:, None].expand(3, 2))


def test_no_direction_copies(monkeypatch):
    x, w = leaves("float32")
    y = geon.dot(x, w)
    seen = []
    call = GraphFunction.__call__

    def watched(self, arrays, out=None):
        values = call(self, arrays, out)
        seen.append([array.ctypes.data for array in (*arrays, *values)])
        return values

    monkeypatch.setattr(GraphFunction, "__call__", watched)
    a, b = tensors((4, 3), (3, 2), dtype=torch.float32)
    made = function(y, x, w)(a, b.detach())
    assert seen == [[a.data_ptr(), b.data_ptr(), made.data_ptr()]]
    (found,) = torch.autograd.grad(made, a, seed := torch.ones(4, 2))
    assert seen[1] == [t.data_ptr() for t in (a, b, seed, found)]


def test_a_computation_of_any_lengths_and_names():
    x, w = leaves("float32")
    f = function(geon.NumPyTransformer().computation([geon.dot(x, w)], x, w))
    for length in (1, 5):
        a, b = tensors((length, 3), (3, 2), dtype=torch.float32)
        torch.testing.assert_close(f(w=b, x=a)[0], a @ b)


def test_variables_are_parameters_that_optimisers_train(transformer):
    x, _ = leaves("float32")
    target = geon.placeholder([N, H], name="target")
    w = geon.Variable([C, H], initial_value=geon.Random(0).normal([C, H]), name="layer.w")
    scale = geon.persistent_tensor([H], initial_value=2, name="scale")
    loss = geon.mean(geon.square(geon.dot(x, w) * scale - target))
    f = function(loss, x, target, transformer=transformer)
    assert [name for name, _ in f.named_parameters()] == ["layer_w"]
    assert [name for name, _ in f.named_buffers()] == ["scale"]
    np.testing.assert_array_equal(f.layer_w.detach(), transformer.get(w))
    before = transformer.get(w).copy()
    optimiser = torch.optim.SGD(f.parameters(), lr=0.05)
    a, b = (t.detach() for t in tensors((8, 3), (8, 2), dtype=torch.float32))
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        value = f(a, b)
        value.backward()
        optimiser.step()
        losses.append(value.item())
    assert losses[-1] < 0.5 * losses[0]
    np.testing.assert_array_equal(transformer.get(w), before)
    f.store()
    np.testing.assert_array_equal(transformer.get(w), f.layer_w.detach())
    transformer.set(w, before)
    f.load()
    np.testing.assert_array_equal(f.layer_w.detach(), before)
    assert set(f.state_dict()) == {"layer_w", "scale"}


def test_variables_may_be_inputs():
    x, _ = leaves()
    w = geon.Variable([C, H], "float64", initial_value=1, name="w")
    f = function(geon.dot(x, w), x, w)
    assert not list(f.parameters())
    assert torch.autograd.gradcheck(f, tensors((4, 3), (3, 2)))


def test_vmap_adds_an_axis(transformer):
    x, w = leaves()
    f = function((geon.tanh(geon.dot(x, w)), geon.sum(w)), x, w, transformer=transformer)
    many, b = (t.detach() for t in tensors((5, 4, 3), (3, 2)))
    found, total = torch.vmap(f, in_dims=(0, None), out_dims=(0, None))(many, b)
    torch.testing.assert_close(found, torch.tanh(many @ b))
    torch.testing.assert_close(total, b.sum())
    turned = torch.vmap(lambda a: f(a, b)[0], in_dims=1)(many.movedim(0, 1).contiguous())
    torch.testing.assert_close(turned, found)
    each = torch.vmap(torch.func.grad(lambda a: f(a, b)[0].sum()))(many)
    torch.testing.assert_close(each, (1 - found**2) @ b.T)


def test_halves():
    x = geon.placeholder([N], "bfloat16", name="x")
    (a,) = tensors((4,), dtype=torch.bfloat16)
    made = function(geon.square(x), x)(a)
    made.backward(torch.ones_like(made))
    assert made.dtype == torch.bfloat16
    torch.testing.assert_close(made, a * a)
    torch.testing.assert_close(a.grad, 2 * a.detach())


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_float8(name):
    dtype = getattr(torch, name)
    w = geon.Variable([N], name, initial_value=np.arange(4), name="w")
    x = geon.placeholder([N], name, name="x")
    given = torch.tensor([0.3, -1.0, 7.0, 100.0]).to(dtype)
    f = function([x, x.cast("float32") * w.cast("float32")], x)
    same, product = f(given)
    assert same.dtype == dtype and [*dict(f.named_buffers())] == ["w"]
    torch.testing.assert_close(same.float(), given.float())
    torch.testing.assert_close(product, given.float() * torch.arange(4.0))

    class Stored(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.arange(6.0).reshape(2, 3).to(dtype))

        def forward(self, x):
            return x @ self.w.to(torch.float32), x.to(dtype)

    data = torch.tensor([[0.3, 2.0], [5.0, -1.1]])
    model = load(torch.export.export(Stored(), (data,)))
    found = [*model.computation(geon.NumPyTransformer())(data.numpy()).values()]
    np.testing.assert_allclose(found[0], Stored()(data)[0], rtol=1e-6)
    assert found[1].dtype.name == name
    np.testing.assert_array_equal(found[1].astype("float32"), data.to(dtype).float())


def test_views_that_are_not_contiguous_are_right():
    x, w = leaves()
    f = function(geon.dot(x, w), x, w)
    a, b = tensors((3, 4), (3, 2))
    torch.testing.assert_close(f(a.T, b), a.T @ b)


V = geon.Variable([C], initial_value=0, name="v")
X = geon.placeholder([C], name="x")
REFUSED = {
    "an effect": (lambda: function([geon.assign(V, X)], X), "no tensor.*no effects"),
    "an effect inside": (
        lambda: function(geon.sequential([geon.assign(V, X), X * 1]), X),
        "effects",
    ),
    "a draw": (
        lambda: function(X + geon.Random(0).normal([C]), X),
        "random draw.*noise as an input",
    ),
    "a missing input": (lambda: function(X * 2), "x.*which is no input"),
    "an array as input": (lambda: function(X * 2, np.ones(3)), "an input is array"),
    "another transformer": (
        lambda: function(
            geon.NumPyTransformer().computation(X, X), transformer=geon.NumPyTransformer()
        ),
        "its own transformer",
    ),
    "too many": (lambda: function(X * 2, X)(1, 2), r"takes 1 tensors \(x\)"),
    "a name": (lambda: function(X * 2, X)(y=1), "0 by position and y by name"),
    "a dtype": (
        lambda: function(X * 2, X)(torch.ones(3, dtype=torch.float64)),
        r"is float32 and .* torch.float64.*\.to\(torch.float32\)",
    ),
    "a shape": (lambda: function(X * 2, X)(torch.ones(4)), r"array of shape \(4,\)"),
    "a device": (lambda: function(X * 2, X)(torch.ones(3, device="meta")), "tensor on meta"),
}


@pytest.mark.parametrize(("call", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(call, text):
    with pytest.raises(geon.GeonError, match=text):
        call()
