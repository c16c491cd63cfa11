"""Convolutions that a library computes: which those are, and that they are what kernels compute."""

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.transformers.pycuda.launches.library_requests import Ask
from geon.transformers.pycuda.products import cudnn, library_dispatch, nvmath_bindings
from geon.transformers.pycuda.runtime import gpu, host
from geon.transformers.pycuda.transformer import PyCudaTransformer

from . import fake_cuda, fake_cudnn
from .devices import LateDevice, transformer_on
from .test_library_products import steps_of

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
N, C, K, D, H, W, G, Q = (geon.Axis(name) for name in "NCKDHWGQ")


@pytest.fixture(autouse=True)
def small_ones_are_large(monkeypatch):
    monkeypatch.setattr(library_dispatch, "MIN_LIBRARY_MULADDS", 1)


@pytest.fixture
def transformer():
    with transformer_on(LateDevice(), convolutions="cudnn") as made:
        yield made


@pytest.fixture(scope="module")
def numpy():
    with geon.NumPyTransformer() as made:
        yield made


def asked(f):
    """What a program asks a library for."""
    return [step.work for step in steps_of(f) if isinstance(step, Ask)]


class Case:
    """A convolution with spatial axes of ``windows``, each (filter, stride, dilation, padding)."""

    def __init__(
        self, windows, channels_last=True, grouped=False, depthwise=False, dtype="float32"
    ):
        spatial = [D, H, W][-len(windows) :]
        places = [geon.Axis(f"R{k}", each[0]) for k, each in enumerate(windows)]
        inner = [G] if depthwise else [G, C] if grouped else [C]
        image = [N, *spatial, *inner] if channels_last else [N, *inner, *spatial]
        kernel = [*([G] if grouped else []), K, *places, C] if not depthwise else [G, *places]
        if not channels_last and not depthwise:
            kernel = [*([G] if grouped else []), K, C, *places]
        self.x, self.w = (
            geon.placeholder(axes, dtype, name=n) for axes, n in ((image, "x"), (kernel, "w"))
        )
        along = {
            axis: geon.Window(place, stride=stride, dilation=dilation, pad=pad)
            for axis, place, (_, stride, dilation, pad) in zip(
                spatial, places, windows, strict=True
            )
        }
        over = [] if depthwise else [C]
        self.y = geon.convolution(self.x, self.w, along, over)
        self.up = geon.placeholder(self.y.axes, dtype, name="up")
        self.leaves = [self.x, self.w, self.up]
        loss = geon.sum(self.y * self.up)
        self.results = [self.y, geon.deriv(loss, self.w), geon.deriv(loss, self.x)]


PADDED = (3, 1, 1, 1)
CASES = {
    "padded": Case([PADDED, PADDED]),
    "channels first": Case([PADDED, PADDED], channels_last=False),
    "inside": Case([(3, 1, 1, 0), (3, 1, 1, 0)]),
    "strides": Case([(3, 2, 1, 1), (3, 2, 1, 1)]),
    "other strides": Case([(5, 3, 1, 2), (3, 2, 1, 1)]),
    "dilated": Case([(3, 1, 2, 2), (3, 1, 3, 3)]),
    "strides and dilated": Case([(3, 2, 3, 3), (3, 3, 2, 2)]),
    "one side padded": Case([(3, 1, 1, (2, 0)), (3, 2, 1, (0, 1))]),
    "even": Case([(4, 2, 1, (1, 2)), (2, 1, 1, (1, 0))]),
    "groups": Case([PADDED, PADDED], grouped=True),
    "along one axis": Case([(5, 1, 1, 2)]),
    "in space": Case([PADDED, PADDED, PADDED]),
}
DERIVATIVES = ("response", "filter", "image")
SIZES = [{"N": 2, "C": 3, "K": 4, "G": 2, "D": 5, "H": 7, "W": 8},
         {"N": 1, "C": 1, "K": 2, "G": 3, "D": 4, "H": 9, "W": 11},
         {"N": 3, "C": 4, "K": 1, "G": 2, "D": 6, "H": 10, "W": 6}]  # fmt: skip


def data(leaves, sizes):
    random = np.random.default_rng(sum(sizes.values()))
    shapes = [[evaluate(n, sizes) for n in leaf.axes.lengths] for leaf in leaves]
    return [
        random.normal(size=shape).astype(leaf.dtype)
        for shape, leaf in zip(shapes, leaves, strict=True)
    ]


def same(found, expected, near=1e-5):
    """Within so much of the largest."""
    assert found.dtype == expected.dtype
    found, expected = found.astype(float), expected.astype(float)
    largest = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=near, atol=near * largest)


@pytest.mark.parametrize("made", DERIVATIVES)
@pytest.mark.parametrize("name", CASES)
def test_convolutions_are_those_of_numpy(transformer, numpy, name, made):
    case = CASES[name]
    result, leaves = case.results[DERIVATIVES.index(made)], case.leaves
    f, g = (each.computation(result, *leaves) for each in (transformer, numpy))
    assert [work.made for work in asked(f)] == [made]
    for sizes in SIZES:
        given = data(leaves, sizes)
        for _ in range(3):
            same(f(*given), g(*given))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(transformer, numpy, dtype):
    case = Case([PADDED, (3, 2, 1, 1)], dtype=dtype)
    near = {"float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    for made, result in zip(DERIVATIVES, case.results, strict=True):
        f, g = (each.computation(result, *case.leaves) for each in (transformer, numpy))
        assert [(work.made, work.dtype, work.ends) for work in asked(f)] == [(made, dtype, True)]
        given = data(case.leaves, SIZES[0])
        same(f(*given), g(*given), near)


def test_what_follows_is_a_kernel_over_the_sums(transformer, numpy):
    case = CASES["padded"]
    bias = geon.placeholder([K], name="bias")
    result = geon.relu(case.y + bias) * 0.5
    f, g = (each.computation(result, case.x, case.w, bias) for each in (transformer, numpy))
    assert [work.ends for work in asked(f)] == [False]
    assert "result 0 = response of x(N, H, W, C) and w(K, R0:3, R1:3, C), by a library" in f.source
    for sizes in SIZES:
        given = data([case.x, case.w, bias], sizes)
        for _ in range(3):
            same(f(*given), g(*given))


def test_what_follows_sums_of_halves_has_them_in_float32(transformer, numpy):
    case = Case([PADDED, PADDED], dtype="float16")
    bias = geon.placeholder([K], "float16", name="bias")
    result = geon.relu(case.y + bias)
    f, g = (each.computation(result, case.x, case.w, bias) for each in (transformer, numpy))
    (work,) = asked(f)
    assert (work.dtype, work.result, work.ends, work.apart) == ("float16", "float32", False, True)
    given = data([case.x, case.w, bias], SIZES[0])
    for _ in range(3):
        same(f(*given), g(*given), 4e-3)


def test_steps_of_training_put_slopes_apart(transformer, numpy):
    """The new weights are made of sums and of the old ones, which lie in the same place."""
    results = []
    for each in (transformer, numpy):
        x, r, s = geon.placeholder([N, H, W, C], name="x"), geon.Axis("R", 3), geon.Axis("S", 3)
        w = geon.Variable([K, r, s, C], initial_value=0.1, name="w")
        windows = {H: geon.Window(r, pad=1), W: geon.Window(s, pad=1)}
        loss = geon.mean(geon.square(geon.convolution(x, w, windows, C) - 1.0))
        step = geon.assign(w, w - 0.1 * geon.deriv(loss, w))
        f = each.computation([loss, step], x, lengths={C: 3, K: 2})
        losses = [f(*data([x], sizes | {"C": 3}))[0] for sizes in SIZES]
        results.append((losses, each.get(w)))
        if each is transformer:
            found = {work.made: work.apart for work in asked(f)}
            assert found == {"response": False, "filter": True}
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


NOT = {
    "windows that do not meet": Case([(2, 2, 1, 0), (2, 2, 1, 0)]),
    "depthwise": Case([PADDED, PADDED], depthwise=True),
    "channels of groups that do not follow each other": Case(
        [PADDED, PADDED], grouped=True, channels_last=False
    ),
}


# Which window an element is in has borders, if windows have none.
GUARDED = [("windows that do not meet", "image")]


@pytest.mark.parametrize("made", DERIVATIVES)
@pytest.mark.parametrize("name", NOT)
def test_what_is_none_is_generated(transformer, numpy, name, made):
    case = NOT[name]
    result = case.results[DERIVATIVES.index(made)]
    f, g = (each.computation(result, *case.leaves) for each in (transformer, numpy))
    if (name, made) not in GUARDED:
        assert asked(f) == []
    for sizes in SIZES:
        given = data(case.leaves, sizes)
        same(f(*given), g(*given))


def test_factors_that_are_computed_or_masked_are_generated(transformer, numpy):
    case = CASES["padded"]
    masked = geon.where(geon.iota(H) < 3, case.x, 0.0)
    for image in (geon.exp(case.x), masked, case.x[:, 1:], case.x[:, ::2]):
        r, s = geon.Axis("R", 3), geon.Axis("S", 3)
        kernel = geon.placeholder([K, r, s, C], name="kernel")
        y = geon.convolution(image, kernel, {H: geon.Window(r, pad=1), W: geon.Window(s)}, C)
        f, g = (each.computation(y, case.x, kernel) for each in (transformer, numpy))
        for sizes in SIZES:
            given = data([case.x, kernel], sizes)
            same(f(*given), g(*given))


def test_one_weight_for_all_places_of_a_window_is_generated(transformer, numpy):
    """A filter that does not lie in memory as one: steps of 0 are no strides of a library."""
    r = geon.Axis("R", 3)
    x, w = geon.placeholder([N, H, C], name="x"), geon.placeholder([K, C], name="w")
    y = geon.convolution(x, geon.broadcast(w, [K, r, C]), {H: geon.Window(r, pad=1)}, C)
    f, g = (each.computation(y, x, w) for each in (transformer, numpy))
    for work in asked(f):
        assert all(step != 0 for axis in work.spatial for step in axis.steps)
    given = data([x, w], SIZES[0])
    same(f(*given), g(*given))


class Counting(LateDevice):
    """Notes what it is asked for, and takes what ``taken`` says."""

    def __init__(self):
        super().__init__()
        self.called, self.taken = [], True

    def takes(self, convolution):
        return self.taken

    def call(self, call, addresses, works):
        self.called.append(call)
        super().call(call, addresses, works)


@pytest.mark.parametrize(("n", "taken"), [(1, False), (2, True), (3, True)])
def test_lengths_choose(monkeypatch, numpy, n, taken):
    """From so many multiplications on, and up to so many float32 terms."""
    case = CASES["padded"]
    monkeypatch.setattr(library_dispatch, "MIN_LIBRARY_MULADDS", 2 * 8 * 8 * 3 * 4 * 9)
    for deepest, asks in ((27, taken), (26, False)):
        monkeypatch.setattr(library_dispatch, "MAX_FLOAT32_TERMS", deepest)
        device = Counting()
        with transformer_on(device, convolutions="cudnn") as transformer:
            f = transformer.computation(case.y, case.x, case.w)
            g = numpy.computation(case.y, case.x, case.w)
            given = data([case.x, case.w], {"N": n, "H": 8, "W": 8, "C": 3, "K": 4})
            same(f(*given), g(*given))
            assert bool(device.called) == asks


def test_spatial_axes_are_in_the_order_of_memory():
    """Of the image: libraries have plans for few orders. Here what comes back has another one."""
    case, device = CASES["padded"], Counting()
    up = geon.placeholder([case.y.axes[each] for each in "NWHK"], name="up")
    with transformer_on(device, convolutions="cudnn") as transformer:
        for by in (case.w, case.x):
            slope = geon.deriv(geon.sum(case.y * up), by)
            f = transformer.computation(slope, case.x, case.w, up)
            f(*data([case.x, case.w, up], SIZES[0]))
    assert [call.made for call in device.called] == ["filter", "image"]
    for call in device.called:
        image, _, response = call.steps
        assert image[2] > image[3] and response[2] < response[3]


def test_lengths_that_leave_nothing(transformer, numpy):
    case = CASES["padded"]
    for result in case.results:
        f, g = (each.computation(result, *case.leaves) for each in (transformer, numpy))
        for empty in "NCK":
            given = data(case.leaves, SIZES[0] | {empty: 0})
            same(f(*given), g(*given))


def test_an_image_that_ends_behind_its_last_window(transformer, numpy):
    """Its slopes are 0 there, and less than a stride of them is left to the library."""
    r = geon.Axis("R", 3)
    for size, stride, cut in ((10, 2, 4), (9, 3, 3), (12, 2, 3)):
        h = geon.Axis("H", size)
        x, w = geon.placeholder([N, h, C], name="x"), geon.placeholder([K, r, C], name="w")
        y = geon.convolution(x, w, {h: geon.Window(r, stride=stride, pad=(1, 0))}, C)[:, :cut]
        up = geon.placeholder(y.axes, name="up")
        for by in (x, w):
            slope = geon.deriv(geon.sum(y * up), by)
            f, g = (each.computation(slope, x, w, up) for each in (transformer, numpy))
            given = data([x, w, up], {"N": 2, "C": 3, "K": 4})
            same(f(*given), g(*given))


def test_what_the_library_refuses_is_generated(numpy):
    case = CASES["strides"]
    device = Counting()
    device.taken = False
    with transformer_on(device, convolutions="cudnn") as transformer:
        for made, result in zip(DERIVATIVES, case.results, strict=True):
            f, g = (each.computation(result, *case.leaves) for each in (transformer, numpy))
            assert [work.made for work in asked(f)] == [made]
            given = data(case.leaves, SIZES[0])
            same(f(*given), g(*given))
    assert device.called == []


def test_peak_has_what_the_library_works_in(transformer):
    case = CASES["padded"]
    f = transformer.computation(case.y, case.x, case.w)
    axes = {N: 2, C: 3, K: 4, H: 8, W: 8}
    peak = f.peak_bytes(axes)
    assert peak > library_dispatch.WORKSPACE_BYTES
    most = f.peak_bytes().evaluate({axis.name: size for axis, size in axes.items()})
    assert peak <= most


def test_options_are_some_of_these():
    with pytest.raises(geon.ArgumentError, match="convolutions='cuda' is none of generated, cudnn"):
        geon.make_transformer("cuda-on-host", convolutions="cuda")
    with pytest.raises(geon.ArgumentError, match="convolutions='cudnn' multiplies float32 as it"):
        geon.make_transformer("cuda-on-host", convolutions="cudnn", tf32=True)
    case = CASES["padded"]
    with geon.make_transformer("cuda-on-host") as made:
        assert not asked(made.computation(case.y, case.x, case.w))


# cuDNN --------------------------------------------------------------------------------------------


@pytest.fixture
def driver(monkeypatch):
    made = fake_cuda.Driver().install(monkeypatch)
    made.cudnn = fake_cudnn.Fake(made).install(monkeypatch)
    monkeypatch.setattr(gpu, "device", gpu.GpuDevice)
    monkeypatch.setattr(gpu, "missing", lambda: None)
    return made


@pytest.mark.parametrize(
    "name", ["padded", "strides and dilated", "groups", "along one axis", "in space"]
)
def test_cudnn_is_asked_for_the_same(driver, numpy, name):
    case = CASES[name]
    with transformer_on(gpu.GpuDevice(0), convolutions="cudnn") as transformer:
        for result in case.results:
            f, g = (each.computation(result, *case.leaves) for each in (transformer, numpy))
            for sizes in SIZES:
                given = data(case.leaves, sizes)
                for _ in range(3):
                    same(f(*given), g(*given))
    assert driver.cudnn.executed >= 9
    for plan in driver.cudnn.plans:
        assert {"NONDETERMINISTIC", "WINOGRAD", "TENSOR_CORE"} <= plan.left_out
        assert plan.most == library_dispatch.WORKSPACE_BYTES


def test_halves_may_be_multiplied_by_tensor_cores(driver, numpy):
    case = Case([PADDED, PADDED], dtype="float16")
    with transformer_on(gpu.GpuDevice(0), convolutions="cudnn") as transformer:
        f, g = (each.computation(case.y, case.x, case.w) for each in (transformer, numpy))
        given = data([case.x, case.w], SIZES[0])
        same(f(*given), g(*given), 4e-3)
    (plan,) = driver.cudnn.plans
    assert "TENSOR_CORE" not in plan.left_out and "NONDETERMINISTIC" in plan.left_out


def test_graphs_are_kept_and_bounded(driver, monkeypatch):
    monkeypatch.setattr(nvmath_bindings, "MAX_CACHED_PLANS", 2)
    case = CASES["padded"]
    with transformer_on(gpu.GpuDevice(0), convolutions="cudnn") as transformer:
        f = transformer.computation(case.y, case.x, case.w)
        for n in (1, 1, 2, 3, 3):
            f(*data([case.x, case.w], SIZES[0] | {"N": n}))
        assert len(transformer.device.libraries["convolutions"].known.plans) == 2
    assert len(driver.cudnn.plans) == 3


@pytest.mark.parametrize("error", [fake_cudnn.NotSupported("no engine"), RuntimeError("BAD_PARAM")])
def test_what_cudnn_has_no_plan_for_is_generated(driver, numpy, error):
    def refuses(graph):
        raise error

    driver.cudnn.refuses = refuses
    case = CASES["padded"]
    with transformer_on(gpu.GpuDevice(0), convolutions="cudnn") as transformer:
        f, g = (each.computation(case.y, case.x, case.w) for each in (transformer, numpy))
        given = data([case.x, case.w], SIZES[0])
        for _ in range(3):
            same(f(*given), g(*given))
    assert driver.cudnn.executed == 0


def test_what_fails_names_the_kernel(driver):
    case = CASES["padded"]
    with transformer_on(gpu.GpuDevice(0), convolutions="cudnn") as transformer:
        f = transformer.computation(case.y, case.x, case.w)
        driver.fails["execute"] = RuntimeError("EXECUTION_FAILED")
        with pytest.raises(
            geon.DeviceError, match=r"cuDNN computes a convolution \(.*generated.*\): EXEC"
        ):
            f(*data([case.x, case.w], SIZES[0]))


OTHERS = dict.fromkeys(("products", "matrices", "transforms"), "generated")


def test_it_is_asked_where_it_is_installed(driver, monkeypatch):
    """And can be told not to be."""
    for options, found in (({}, {"convolutions"}), ({"convolutions": "generated"}, set())):
        made = PyCudaTransformer(0, **OTHERS, **options)
        assert made.libraries == found
        made.close()
    with PyCudaTransformer(0, **OTHERS, tf32=True) as made:
        assert made.libraries == set()


def test_without_the_binding_or_the_library(driver, monkeypatch):
    driver.cudnn.install(monkeypatch, starts=False)
    with PyCudaTransformer(0, **OTHERS) as made:
        assert made.libraries == set()
    with pytest.raises(geon.DeviceError, match="cuDNN does not start.*Unable to find symbol"):
        PyCudaTransformer(0, convolutions="cudnn")
    monkeypatch.setattr(nvmath_bindings, "is_installed", lambda module: False)
    with pytest.raises(geon.DeviceError, match=r"nvidia-cudnn-frontend.*pip install 'geon\[cudnn"):
        PyCudaTransformer(0, convolutions="cudnn")


def test_the_binding_itself_takes_the_graphs():
    """Where it is installed with its library, which needs no GPU to look at a graph."""
    try:
        import cudnn as binding
    except (ImportError, OSError):
        pytest.skip("nvidia-cudnn-frontend or its library is not installed")
    device = Counting()
    with transformer_on(device, convolutions="cudnn") as transformer:
        for case in CASES.values():
            for result in case.results:
                f = transformer.computation(result, *case.leaves)
                for sizes in SIZES:
                    f(*data(case.leaves, sizes))
    assert device.called
    for call in device.called:
        planned = cudnn.graph_of(binding, call)
        planned.graph.validate()
        for tensor, shape in zip(planned.tensors, call.shapes, strict=True):
            lone = [1] * (len(shape) == 3)
            assert list(tensor.get_dim()) == [*shape[:2], *lone, *shape[2:]]
