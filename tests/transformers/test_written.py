"""write: one file that allocates, initializes, computes, saves and restores without geon."""

import ast
import importlib.util
import json
import subprocess
import sys
import textwrap
import threading

import ml_dtypes
import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, AxisError
from geon.transformers.numpy.standalone_source import library
from tests.transformers.wild_names import WILD

C3 = geon.Axis("C", 3)

BLOCKED = """
import json, sys

class Blocker:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {blocked}:
            raise ImportError(f"{{name}} must not be imported")

sys.meta_path.insert(0, Blocker())
import importlib.util
spec = importlib.util.spec_from_file_location("written", {path})
m = importlib.util.module_from_spec(spec)
spec.loader.exec_module(m)
import numpy as np

def show(*arrays):
    for a in arrays:
        a = np.asarray(a)
        print(json.dumps([a.dtype.name, list(a.shape), a.tobytes().hex()]))

"""


def alone(path, source, blocked=("geon", "cachetools", "sympy", "ml_dtypes")):
    """What ``show`` shows in an isolated process that has the written module as ``m``, no geon."""
    head = BLOCKED.format(blocked=repr(set(blocked)), path=repr(str(path)))
    done = subprocess.run(
        [sys.executable, "-I", "-c", head + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def shown(*arrays):
    """What ``show`` shows of these arrays."""
    arrays = map(np.asarray, arrays)
    return [(a.dtype.name, list(a.shape), a.tobytes().hex()) for a in arrays]


def load(path, name="written"):
    """The written module, loaded into this process."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Training:
    """A model with everything that a file must carry: draws, open axes, guards, constants."""

    def __init__(self, transformer=None):
        C, N = geon.Axis("C", "C of a file"), geon.Axis("N", "N of a file")
        self.stream = geon.Random(2024, name="noise")
        self.w = geon.Variable(axes=C, initial_value=self.stream.normal([C], std=0.5), name="w")
        self.b = geon.Variable(initial_value=geon.sum(self.w) * 0 + 0.25, name="b")
        self.m = geon.Variable(axes=C, initial_value=0, trainable=False)
        self.ramp = geon.temporary_tensor(
            axes=C3, initial_value=lambda axes: np.arange(axes.lengths[0]), name="ramp"
        )
        large = geon.constant(np.linspace(0, 1, 300, dtype=np.float32), axes=geon.Axis("K", 300))
        x, y = geon.placeholder(axes=[C, N], name="x"), geon.placeholder(axes=N, name="y")
        rate = geon.placeholder(name="rate")
        kept = self.stream.bernoulli([C, N], 0.8)
        guess = geon.sigmoid(geon.dot(self.w, x * kept) + self.b)
        loss = geon.mean((guess - y) * (guess - y)) + geon.sum(large) * 0
        moved = self.m * 0.9 + geon.deriv(loss, self.w)
        update = geon.sequential(
            [geon.assign(self.m, moved), geon.assign(self.w, self.w - rate * self.m)]
        )
        bias = geon.assign(self.b, self.b - rate * geon.deriv(loss, self.b))
        self.t = transformer or geon.NumPyTransformer()
        self.step = self.t.computation([loss, update, bias], rate, x, y, name="step")
        self.predict = self.t.computation(
            geon.sigmoid(geon.dot(self.w, x) + self.b) * self.ramp[1], x, name="predict"
        )
        self.parts = self.t.computation([x[0:2], large * 2], x, name="parts")
        self.variables = [self.w, self.b, self.m, self.stream.counter]

    def data(self, seed, n=8):
        random = np.random.default_rng(seed)
        x = random.normal(size=(4, n)).astype(np.float32)
        return x, (x[0] > 0).astype(np.float32)

    def run(self, seeds):
        return [self.step(0.1, *self.data(seed, 5 + seed))[0] for seed in seeds]


RUN = """
def data(seed, n=8):
    random = np.random.default_rng(seed)
    x = random.normal(size=(4, n)).astype(np.float32)
    return x, (x[0] > 0).astype(np.float32)

def run(seeds):
    for seed in seeds:
        loss, update, bias = m.step(0.1, *data(seed, 5 + seed))
        assert update is None and bias is None
        show(loss)

NAMES = ["w", "b", "variable(C).0", "noise.calls"]
"""


def test_every_transformer_writes_the_module(make, tmp_path):
    """Its programs are NumPy's; variables, their names and draws are those of the transformer."""
    model = Training(make())
    before = model.run(range(3))
    model.t.write(tmp_path / "m.py")
    module = load(tmp_path / "m.py", f"written_by_{model.t.target.name}")
    data = [model.data(seed, 5 + seed) for seed in range(3)]
    np.testing.assert_allclose([module.step(0.1, *d)[0] for d in data], before, rtol=1e-5)
    model.t.save(tmp_path / "file")
    module.restore(tmp_path / "file")
    for name in ("w", "b", "variable(C).0", "noise.calls"):
        np.testing.assert_array_equal(module.get(name), model.t.get(name))
    x, _ = model.data(7)
    np.testing.assert_allclose(module.predict(x), model.predict(x), rtol=1e-5)
    assert len(model.t.computations) == 3 and model.run([5])


def test_every_transformer_writes_what_was_asked_for(make, tmp_path):
    """Options, kept tensors, structures and lengths that data have given."""
    N, K = geon.Axis("N", "N of options"), geon.Axis("K", "K of options")
    x = geon.placeholder(N, name="x")
    v = geon.Variable(K, initial_value=lambda axes: np.arange(axes.lengths[0]), name="v")
    twice = 2 * x
    transformer = make()
    transformer.computation({"a": twice, "b": [v * 1]}, x, keep=[twice], name="f", lengths={K: 4})
    transformer.computation(geon.log(x), x, check="nan", name="checked")
    transformer.computation(x + 1, x, specialize={N: 2}, plan=False, name="two")
    transformer.allocate({K: 4})
    transformer.write(tmp_path / "m.py")
    module = load(tmp_path / "m.py", f"asked_of_{transformer.target.name}")
    found = module.f([1, 2, 3])
    np.testing.assert_array_equal(found["a"], [2, 4, 6])
    np.testing.assert_array_equal(found["b"][0], [0, 1, 2, 3])
    np.testing.assert_array_equal(module.two([1, 2]), [2, 3])
    with pytest.raises(ValueError, match="specialized at .*test_written.py"):
        module.two([1, 2, 3])
    with pytest.raises(ArithmeticError, match="log"):
        module.checked([-1])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "model.py"
    Training().t.write(path)
    return path


# The same results -------------------------------------------------------------------------------


def test_results_are_equal_bit_for_bit(written):
    model = Training()
    losses = model.run([1, 2, 3])
    guess = model.predict(model.data(7)[0])
    ours = shown(*losses, guess, *(model.t.get(v) for v in model.variables))
    theirs = alone(
        written,
        RUN + "run([1, 2, 3]); show(m.predict(x=data(7)[0]), *map(m.get, NAMES))",
    )
    assert theirs == ours
    assert len({loss for _, _, loss in ours[:3]}) == 3


def test_a_checkpoint_goes_from_one_to_the_other_and_back(written, tmp_path):
    whole = shown(*Training().run(range(6)))
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    model = Training()
    found = shown(*model.run(range(2)))
    model.t.save(first)
    found += alone(written, RUN + f"m.restore({first!r}); run(range(2, 4)); m.save({second!r})")
    again = Training()
    again.t.restore(second)
    found += shown(*again.run(range(4, 6)))
    assert found == whole


def test_a_file_has_no_names_of_this_machine_but_the_users_lines(written):
    text = written.read_text()
    ast.parse(text)
    assert "import geon" not in text and "from geon" not in text
    assert "test_written.py" in text
    assert "import ml_dtypes" not in text.partition("def _library")[0]


def test_what_the_file_offers(written):
    m = load(written)
    x = np.ones((4, 3), np.float32)
    assert m.parts(x)[0].shape == (2, 3)
    m.allocate(**{"C of a file": 4})
    m.initialize()
    w = m.get("w")
    m.set("w", w + 1)
    m.initialize()
    np.testing.assert_array_equal(m.get("w"), w + 1)
    m.initialize(force=True)
    np.testing.assert_array_equal(m.get("w"), w)
    np.testing.assert_array_equal(m.get("ramp"), [0, 1, 2])
    with pytest.raises(TypeError, match="no variable .v.; there are w, .* ramp, variable"):
        m.get("v")
    with pytest.raises(ValueError, match=r"variable w.*test_written.py.*it needs \(C of a file"):
        m.set("w", [[1, 2]])
    with pytest.raises(ValueError, match="placeholder x.*test_written.py"):
        m.parts(np.ones(3))
    with pytest.raises(TypeError, match="no placeholder named 'z'"):
        m.parts(z=x)
    with pytest.raises(ValueError, match="Slice|slice|lies outside|<="):
        load(written).parts(np.ones((1, 3)))
    first = m.predict(x)
    first[:] = 9
    assert (m.predict(x) != 9).any()


def test_allocate_takes_lengths(tmp_path):
    A, B = geon.Axis("A", "A of lengths"), geon.Axis("B", "B of lengths")
    v = geon.Variable(axes=[A, B], initial_value=1, name="v")
    with geon.NumPyTransformer() as t:
        t.computation(geon.sum(v), name="total")
        t.write(tmp_path / "m.py")
        B.length = 4
        t.write(tmp_path / "default.py")
    m = load(tmp_path / "m.py")
    with pytest.raises(ValueError, match="A of lengths"):
        m.total()
    m.allocate(**{"A of lengths": 2, "B of lengths": 3})
    assert m.total() == 6
    m = load(tmp_path / "default.py")
    m.initialize(**{"A of lengths": 2})
    assert m.total() == 8


def test_two_files_and_two_loads_share_nothing(written):
    one, two = load(written), load(written)
    one.set("b", 5)
    two.set("b", 6)
    assert (one.get("b"), two.get("b")) == (5, 6)


def test_threads_in_a_written_module(written):
    m, model = load(written), Training()
    x, y = model.data(1)
    expected = m.predict(x)
    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(m.predict(x) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    for got in found:
        np.testing.assert_array_equal(got, expected)


# Errors -----------------------------------------------------------------------------------------


def test_errors_in_the_file_name_ops_and_lines(tmp_path):
    x = geon.placeholder(axes=C3, name="x")
    p = geon.placeholder(axes=C3, dtype="int64", name="p")
    v = geon.Variable(axes=C3, initial_value=1, name="v")
    with geon.NumPyTransformer() as t:
        t.computation([geon.log(x), geon.assign(v, v * x)], x, name="logs", check="nan")
        t.computation([geon.gather(x, p, C3), geon.assign(v, v + 1)], x, p, name="pick")
        t.write(tmp_path / "m.py")
    m = load(tmp_path / "m.py")
    with pytest.raises(FloatingPointError, match=r"log\(C:3\) made at .*test_written.py:\d+, in"):
        m.logs([1, 0, 1])
    with pytest.raises(IndexError, match=r"test_written.py:\d+.*0 to 3 where"):
        m.pick([1, 2, 3], [0, 3, 0])
    np.testing.assert_array_equal(m.get("v"), [1, 1, 1])
    np.testing.assert_array_equal(m.pick([1, 2, 3], [2, 1, 0])[0], [3, 2, 1])
    assert m.rt.NonFiniteError.__qualname__ == "NonFiniteError"


def test_names_of_computations(tmp_path):
    x = geon.placeholder()
    with geon.NumPyTransformer() as t:
        for bad in ("two words", "1st", "class", "_hidden", "", "save", "set", "np", "len"):
            with pytest.raises(ArgumentError, match="name="):
                t.computation(x, x, name=bad)
        t.computation(x + 1, x)
        t.computation(x + 2, x, name="addiert_zwei_ä")
        t.computation(x + 3, x)
        t.write(tmp_path / "m.py")
        m = load(tmp_path / "m.py")
        assert (m.computation_0(1), m.addiert_zwei_ä(1), m.computation_2(1)) == (2, 3, 4)
        t.computation(x + 4, x, name="computation_0")
        with pytest.raises(ArgumentError, match="two computations have the name 'computation_0'"):
            t.write(tmp_path / "m.py")
    assert load(tmp_path / "m.py").computation_0(1) == 2


def test_a_callable_first_value_needs_its_lengths(tmp_path):
    C = geon.Axis("C", "C of a callable")
    v = geon.Variable(axes=C, initial_value=lambda axes: np.arange(axes[0].length), name="v")
    x = geon.placeholder(axes=C, name="x")
    with geon.NumPyTransformer() as t:
        f = t.computation(v * x, x, name="f")
        with pytest.raises(AxisError, match="C of a callable"):
            t.write(tmp_path / "m.py")
        assert not list(tmp_path.iterdir())
        f([1, 1, 1])
        t.set(v, [5, 5, 5])
        t.write(tmp_path / "m.py")
    m = load(tmp_path / "m.py")
    np.testing.assert_array_equal(m.f([2, 2, 2]), [0, 2, 4])


# Texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WILD)
def test_names_never_break_out_of_the_text(tmp_path, name):
    C = geon.Axis(name, name)
    x = geon.placeholder(axes=C, name=name)
    v = geon.Variable(axes=C, initial_value=lambda axes: 2, name=name)
    w = geon.Variable(axes=C, initial_value=3)
    k = geon.constant(np.arange(100, dtype=np.float32), axes=geon.Axis(name + "k", 100))
    y = geon.exp(x * v) * w
    y.name = name
    shown = geon.print(geon.sum(y), name)
    with geon.NumPyTransformer() as t:
        f = t.computation([y, shown, geon.sum(k)], x, keep=[y], check="nan")
        expected = f([0.5, 0.25])
        g = t.computation(x[0:2], x)
        g([1, 2, 3])
        t.write(tmp_path / "m.py")
    text = (tmp_path / "m.py").read_text(encoding="utf-8")
    ast.parse(text)
    m = load(tmp_path / "m.py")
    for got, wanted in zip(m.computation_0(**{name: [0.5, 0.25]}), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(m.get(name), [2, 2])
    with pytest.raises(ValueError):
        m.computation_1([1])


def test_a_float8_program_uses_ml_dtypes(tmp_path):
    x = geon.placeholder(axes=C3, dtype="float64", name="x")
    v = geon.Variable(axes=C3, dtype="float8_e5m2", initial_value=[1, 2, 3], name="v")
    small = geon.cast(x, "float8_e4m3fn")
    with geon.NumPyTransformer() as t:
        results = [small, geon.cast(v, "float32") * x, geon.assign(v, geon.cast(x, v.dtype))]
        f = t.computation(results, x, name="f")
        data = [0.5, 1 + 2.0**-4 + 2.0**-40, 1000.0]
        expected = f(data)[:2]
        t.write(tmp_path / "m.py")
        after = t.get(v)
    path = str(tmp_path / "file")
    source = f"""
        show(*m.f({data})[:2])
        m.save({path!r})
        m.restore({path!r})
        show(m.get("v"))
    """
    found = alone(tmp_path / "m.py", source, blocked=("geon", "cachetools", "sympy"))
    assert found == shown(*expected, after)


def test_a_bfloat16_program_uses_ml_dtypes(tmp_path):
    x = geon.placeholder(axes=C3, dtype="bfloat16", name="x")
    v = geon.Variable(axes=C3, dtype="bfloat16", initial_value=[1, 2, 3], name="v")
    large = geon.constant(np.ones(200).astype(ml_dtypes.bfloat16), axes=geon.Axis("K", 200))
    with geon.NumPyTransformer() as t:
        f = t.computation([x * v, geon.sum(large), geon.assign(v, v + x)], x, name="f")
        expected = f([0.5, 1.5, 2.5])[:2]
        t.write(tmp_path / "m.py")
        after = t.get(v)
    path = str(tmp_path / "file")
    source = f"""
        show(*m.f([0.5, 1.5, 2.5])[:2])
        show(m.get("v"))
        m.save({path!r})
        m.restore({path!r})
        show(m.get("v"))
    """
    found = alone(tmp_path / "m.py", source, blocked=("geon", "cachetools", "sympy"))
    assert found == shown(*expected, after, after)


def test_every_kind_of_row(tmp_path):
    N = geon.Axis("N", "N of rows")
    x = geon.placeholder(axes=[C3, N], name="x")
    i = geon.cast(geon.floor(x * 3), "int32")
    results = [
        geon.cumsum(x, C3), geon.sort(x, N), geon.argsort(x, N), geon.argmax(x, C3),
        geon.top_k(x, 2, N)[0], geon.erf(x), geon.lgamma(x + 3), i << 2, i >> 1, i**2, i // 2,
        geon.flatten(x), geon.pad(x, {C3: (1, 2)}), geon.concat([x, x], C3), geon.iota(N),
        geon.dot(x, x, over=C3), geon.where(x > 0, x, -x), geon.cast(x, "int8"), x[::2, 1:],
        geon.softmax(x, normalization_axes=C3), geon.tensor_size(x) * 1.5,
    ]  # fmt: skip
    with geon.NumPyTransformer() as t:
        f = t.computation(results, x, name="rows")
        data = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
        expected = f(data)
        t.write(tmp_path / "m.py")
    found = alone(
        tmp_path / "m.py",
        "show(*m.rows(np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)))",
    )
    assert found == shown(*expected)


def test_an_empty_transformer_writes_a_module(tmp_path):
    with geon.NumPyTransformer() as t:
        t.write(tmp_path / "m.py")
    alone(tmp_path / "m.py", f"m.initialize(); m.save({str(tmp_path / 'file')!r})")


def test_geons_own_files_need_nothing_of_geon_and_share_no_name():
    owners = {}
    for node in ast.parse(library()).body[0].body:
        assert not (isinstance(node, ast.ImportFrom) and (node.level or node.module == "geon"))
        names = [getattr(node, "name", None)]
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets]
        for name in filter(None, names):
            text = ast.unparse(node)
            assert name == "Array" or owners.setdefault(name, text) == text, name
