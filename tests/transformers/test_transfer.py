"""restore in part, with other names, from other programs' files; variables by name."""

import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import geon
from geon.errors import ArgumentError, CheckpointError, FeedError
from geon.transformers.runtime.checkpoint_selection import _texts

C, H = geon.Axis("C", 3), geon.Axis("H", 2)
X = np.arange(3, dtype=np.float32)


def predicting(transformer, prefix="", unnamed=False):
    """A computation of a small network, and its variables."""
    x = geon.placeholder(C)
    first = geon.Random(0, name=prefix + "first").normal([C, H])
    w = geon.Variable([C, H], initial_value=first, name=None if unnamed else prefix + "w")
    b = geon.Variable(H, initial_value=0, name=prefix + "b")
    y = geon.tanh(geon.dot(x, w) + b)
    return transformer.computation(y, x, name="predict"), x, y, [w, b]


def training(transformer, **options):
    """The same with a step of an optimiser, whose state is variables too."""
    predict, x, y, variables = predicting(transformer, **options)
    loss = geon.sum(geon.square(y - 1))
    updates = []
    for v in variables:
        m = geon.persistent_tensor(v.axes, initial_value=0, name=f"adam.m.{v.name}")
        updates += [
            geon.assign(m, 0.9 * m + geon.deriv(loss, v)),
            geon.assign(v, v - 0.1 * (0.9 * m + geon.deriv(loss, v))),
        ]
    return predict, transformer.computation([loss, *updates], x), variables


@pytest.fixture
def trained(make, tmp_path):
    """The path of a training file, and what the trained network predicts."""
    with make() as transformer:
        predict, step, _ = training(transformer)
        for _ in range(3):
            step(X)
        transformer.save(tmp_path / "trained")
        return tmp_path / "trained", predict(X)


def test_a_training_file_goes_into_a_model_that_only_predicts(trained, make):
    path, wanted = trained
    for options in ({"only": "*"}, {"strict": False}, {"only": ["w", "b", "first.*"]}):
        with make() as transformer:
            predict, *_ = predicting(transformer)
            with pytest.raises(CheckpointError, match=r'extra entry.*only="\*"'):
                transformer.restore(path)
            report = transformer.restore(path, **options)
            np.testing.assert_array_equal(predict(X), wanted)
            assert set(report.taken) == {"w", "b", "first.calls"} and not report.kept
            assert set(report.left) == {"adam.m.w", "adam.m.b"}
            assert len(transformer.variables.leaves) == 3  # no optimiser was built


def test_names_of_the_file_are_given_others(trained, make):
    path, wanted = trained
    renames = [
        {"w": "net.w", "b": "net.b", "first.*": "net.first.*"},
        {"adam.*": "adam.*", "*": "net.*"},
        lambda name: None if name.startswith("adam") else "net." + name,
    ]
    for rename in renames:
        with make() as transformer:
            predict, *_ = predicting(transformer, prefix="net.")
            report = transformer.restore(path, rename=rename, only="net.*")
            np.testing.assert_array_equal(predict(X), wanted)
            taken = {"net.w": "w", "net.b": "b", "net.first.calls": "first.calls"}
            assert report.taken == taken
            assert "net.w from w" in str(report)
            report = transformer.restore(path, rename=rename, only="net.w")
            assert report.left["b"] == "its variable is not among only="


def test_stars_stand_for_the_texts_of_stars(transformer, tmp_path):
    v = geon.Variable(initial_value=0, name="block.7.weight.of.layer.2")
    transformer.get(v)
    save_file({"layers.2/7[x].weight": np.array(5, np.float32)}, tmp_path / "file")
    transformer.restore(tmp_path / "file", rename={"*ers.*/7[x].weight": "block.7.weight.of.*er.*"})
    assert transformer.get(v) == 5
    transformer.set(v, 1)
    transformer.restore(tmp_path / "file", rename={"*.*/*[x].*": "block.7.weight.of.layer.2"})
    assert transformer.get(v) == 5


@pytest.mark.parametrize(
    ("pattern", "name", "texts"),
    [
        ("a", "a", []),
        ("a", "b", None),
        ("*", "", [""]),
        ("*", "a.b", ["a.b"]),
        ("a*", "ab", ["b"]),
        ("a*", "b", None),
        ("*a", "ba", ["b"]),
        ("*a", "ab", None),
        ("a*a", "a", None),
        ("a*b*c", "a1b2b3c", ["1", "2b3"]),
        ("a*b*c", "a1b2", None),
        ("a*b*c", "a1c", None),
        ("**", "xy", ["", "xy"]),
        ("a[0].*", "a[0].w", ["w"]),
        ("a.w", "a_w", None),
        ("*", "two\nlines", ["two\nlines"]),
    ],
)
def test_patterns(pattern, name, texts):
    assert _texts(pattern, name) == texts


def test_what_does_not_fit_stays_and_is_told(transformer, tmp_path):
    a = geon.Variable(C, initial_value=1, name="a")
    b = geon.Variable(C, initial_value=2, name="b")
    c = geon.Variable(C, "float64", initial_value=3, name="c")
    d = geon.Variable(C, initial_value=4, name="d")
    transformer.computation([a, b, c, d])
    with geon.NumPyTransformer() as other:
        made = [
            geon.Variable(C, initial_value=9, name="a"),
            geon.Variable(H, initial_value=9, name="b"),
            geon.Variable(C, initial_value=9, name="c"),
            geon.Variable(C, initial_value=9, name="e"),
        ]
        other.computation(made)
        other.save(tmp_path / "file")
    report = transformer.restore(tmp_path / "file", strict=False)
    assert report.taken == {"a": "a"}
    assert set(report.kept) == {"b", "c", "d"} and set(report.left) == {"b", "c", "e"}
    assert "axes (H=2), but (C=3)" in report.kept["b"] and b.file_info in report.kept["b"]
    assert "dtype float32, but float64" in report.kept["c"]
    assert report.kept["d"] == "the file has no such entry"
    assert report.left["e"] == "no variable has its name"
    assert report.left["b"] == "it did not fit"
    text = str(report)
    for line in ("set:\n  a\n", "kept as it was:\n  b: entry", "left in the file:\n  b: it"):
        assert line in text
    for name, value in {"a": 9, "b": 2, "c": 3, "d": 4}.items():
        assert (transformer.get(name) == value).all()


def test_a_whole_file_gives_a_report_too(transformer, tmp_path):
    v = geon.Variable(initial_value=1, name="v")
    transformer.get(v)
    transformer.save(tmp_path / "file")
    report = transformer.restore(tmp_path / "file")
    assert str(report) == f"checkpoint {str(tmp_path / 'file')!r}\nset:\n  v"
    assert (report.kept, report.left) == ({}, {})


REFUSED = {
    "no variable": ({"only": "z*"}, CheckpointError, r"only='z\*'.*'w', .*'b'"),
    "no entry": ({"rename": {"zz": "w"}}, CheckpointError, "rename='zz'.*no entry"),
    "two of one name": (
        {"rename": {"adam.m.*": "*"}},
        CheckpointError,
        "adam.m.* and .* both renamed",
    ),
    "more stars": ({"rename": {"a": "b*"}}, ArgumentError, r"more \* on the right"),
    "no text": ({"rename": {1: "b"}}, ArgumentError, "1, which is no text"),
    "no names": ({"only": [3]}, ArgumentError, "3, which is no text"),
    "no dictionary": ({"rename": 5}, ArgumentError, "no dictionary of names"),
    "gives no text": ({"rename": lambda name: 3}, ArgumentError, "gave 3 for"),
    "nothing": ({"strict": False, "rename": lambda name: "x" + name}, CheckpointError, "nothing"),
    "missing": ({"only": "*", "rename": {"w": "u"}}, CheckpointError, "'w'.*rename= makes it 'u'"),
}


@pytest.mark.parametrize(("options", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(trained, make, options, error, words):
    path, _ = trained
    with make() as transformer:
        predict, *_ = predicting(transformer)
        before = predict(X)
        with pytest.raises(error, match=words):
            transformer.restore(path, **options)
        np.testing.assert_array_equal(predict(X), before)


def test_damage_is_found_in_parts_that_are_not_taken(trained, make):
    path, _ = trained
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with make() as transformer:
        predicting(transformer)
        for options in ({"only": "b"}, {"strict": False}, {"only": "*"}):
            with pytest.raises(CheckpointError, match="digest"):
                transformer.restore(path, **options)


def test_names_made_by_counting_are_not_trusted_in_parts(make, tmp_path):
    """The first of two unnamed variables of a file may be another's than the only one here."""
    with make() as transformer:
        moment = geon.persistent_tensor([C, H], "float64", initial_value=5)
        transformer.get(moment)
        predicting(transformer, unnamed=True)
        transformer.save(tmp_path / "file")
    with make() as transformer:
        _, _, _, (w, b) = predicting(transformer, unnamed=True)
        before = transformer.get(w)
        with pytest.raises(CheckpointError, match=r"by counting.*2 of variable\(C,H\).*1 here"):
            transformer.restore(tmp_path / "file", only="*")
        report = transformer.restore(tmp_path / "file", strict=False)
        assert "made by counting" in report.kept["variable(C,H).0"] and "b" in report.taken
        np.testing.assert_array_equal(transformer.get(w), before)
        named = {"variable(C,H).1": "variable(C,H).0", "variable(C,H).0": "moment"}
        with pytest.raises(CheckpointError, match="made by counting"):
            transformer.restore(tmp_path / "file", only="*", rename=named)
        w.name = "w"
        transformer.restore(tmp_path / "file", only="*", rename={"variable(C,H).1": "w"})
        np.testing.assert_array_equal(transformer.get(b), 0)


# Files of other programs -------------------------------------------------------------------------


def test_files_of_other_programs_go_by_name_and_shape(make, tmp_path):
    w = np.random.default_rng(0).normal(size=(3, 2))
    arrays = {"w": w.astype(np.float16), "b": np.ones(2), "rest": np.zeros(5, np.int8)}
    save_file(arrays, tmp_path / "file", {"format": "pt"})
    with make() as transformer:
        predict, *_ = predicting(transformer)
        report = transformer.restore(tmp_path / "file", only=["w", "b"])
        assert set(report.left) == {"rest"}
        values = transformer.values()
        np.testing.assert_array_equal(values["w"], w.astype(np.float16).astype(np.float32))
        np.testing.assert_allclose(predict(X), np.tanh(X @ values["w"] + 1), rtol=1e-5)
    arrays["w"] = arrays["w"].T.copy()
    arrays["b"] = np.array([1e300, 1])
    save_file(arrays, tmp_path / "file", {"format": "pt"})
    with make() as transformer:
        predicting(transformer)
        with pytest.raises(CheckpointError, match=r"'w' has shape \(2, 3\), but \(C=3, H=2\)"):
            transformer.restore(tmp_path / "file", only="w")
        with pytest.raises(CheckpointError, match="'b'.*too large for float32"):
            transformer.restore(tmp_path / "file", only="b")


def test_files_written_by_safetensors_give_open_axes_their_lengths(transformer, tmp_path):
    K = geon.Axis("K", "K of a plain file")
    v = geon.Variable(K, initial_value=0, name="v")
    f = transformer.computation(v * 2)
    save_file({"v": np.arange(4, dtype=np.float32)}, tmp_path / "file")
    transformer.restore(tmp_path / "file")
    np.testing.assert_array_equal(f(), [0, 2, 4, 6])


# Variables by name -------------------------------------------------------------------------------


def test_values_are_what_save_writes(transformer, tmp_path):
    predict, step, (w, b) = training(transformer)
    step(X)
    values = transformer.values()
    transformer.save(tmp_path / "file")
    report = transformer.restore(tmp_path / "file")
    assert set(values) == set(report.taken)
    np.testing.assert_array_equal(values["w"], transformer.get(w))
    values["w"][...] = 0  # they are the caller's
    assert transformer.get(w).any()


def test_get_and_set_take_names(transformer):
    v = geon.Variable(C, initial_value=1, name="v")
    unnamed = geon.Variable(C, initial_value=2)
    temporary = geon.temporary_tensor(C, initial_value=3, name="t")
    transformer.computation([v, unnamed, temporary])
    transformer.set("v", [1, 2, 3])
    transformer.set("variable(C).0", 2 * X)
    np.testing.assert_array_equal(transformer.get("v"), [1, 2, 3])
    np.testing.assert_array_equal(transformer.get(unnamed), 2 * X)
    np.testing.assert_array_equal(transformer.get("t"), [3, 3, 3])
    assert set(transformer.values()) == {"v", "variable(C).0"}
    v.name = "late"
    np.testing.assert_array_equal(transformer.get("late"), [1, 2, 3])
    with pytest.raises(ArgumentError, match=r"'w'; there are late, t, variable\(C\)\.0"):
        transformer.get("w")
    with pytest.raises(FeedError, match=r"variable late\(C:3\)"):
        transformer.set("late", [1, 2])
    again = geon.Variable(C, initial_value=0, name="again")
    transformer.get(again)
    again.name = "late"
    with pytest.raises(ArgumentError, match="have one name"):
        transformer.get("late")


# Written modules ---------------------------------------------------------------------------------

IN_PARTS = """
import sys
import numpy as np
import written

report = written.restore(sys.argv[1], only="*")
assert set(report.left) == {"adam.m.w", "adam.m.b"}, report
try:
    written.restore(sys.argv[1])
except ValueError as error:
    assert "extra entry" in str(error)
print(*written.predict(np.arange(3)))
assert not any(name.split(".")[0] == "geon" for name in sys.modules)
"""


def test_a_written_module_restores_in_parts(trained, tmp_path):
    path, wanted = trained
    with geon.NumPyTransformer() as transformer:
        predicting(transformer)
        transformer.write(tmp_path / "written.py")
    done = subprocess.run(
        [sys.executable, "-c", IN_PARTS, path], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.array(done.stdout.split(), float), wanted, rtol=1e-5)


FIRST_OF_BFLOAT16 = """
import json, struct, sys
import numpy as np
import geon
head = json.dumps({"w": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(head)) + head + bytes([128, 63]) * 3)
assert "ml_dtypes" not in sys.modules
w = geon.Variable([geon.Axis("A", 3)], initial_value=0.0, name="w")
with geon.NumPyTransformer() as transformer:
    transformer.computation(w + 1)
    transformer.restore(sys.argv[1])
    np.testing.assert_array_equal(transformer.get(w), [1, 1, 1])
"""


def test_halves_of_a_file_in_a_process_that_has_had_none(tmp_path):
    """NumPy learns of bfloat16 where the first one is read."""
    command = [sys.executable, "-c", FIRST_OF_BFLOAT16, str(tmp_path / "other")]
    subprocess.run(command, check=True)
